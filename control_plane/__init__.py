"""The imperative shell of guardwave: time, Redis, HTTP, OTLP and the command line."""

__version__ = "0.1.0"
