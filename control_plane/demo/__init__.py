"""The demo: a simulated fleet on the real SDK, the history that leads there, and a fast clock."""
