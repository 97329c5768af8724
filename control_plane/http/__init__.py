"""The HTTP doors: the control plane's API, and what agent hosts call."""
