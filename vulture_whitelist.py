"""Names that vulture can't see used, each with its reason. Code that nothing calls is deleted."""
