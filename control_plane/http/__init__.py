"""HTTP: the control plane's API and the routes that agent hosts call."""

__all__ = ["api", "blueprint", "middleware", "schema"]
