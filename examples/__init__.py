"""Examples: programs that use guardwave; they ship with the source, not with the package."""
