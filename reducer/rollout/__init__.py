"""The control plane's own state machines and rules, without I/O, clock or randomness."""
