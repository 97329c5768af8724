"""Read models: one query per page or answer."""
