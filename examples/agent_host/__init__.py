"""A small agent host with guardwave's guards in it: a model, tools, channels and a person."""
