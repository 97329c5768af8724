"""The pages: views that read one model each, pure plot geometry, formatting, templates."""
