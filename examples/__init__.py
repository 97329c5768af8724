"""Programs that show how guardwave is used; they ship with the source, not with the package."""
