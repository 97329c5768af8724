"""Example agent host: a model, tools, channels and a person, guarded by guardwave."""
