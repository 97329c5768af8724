"""The kit that shows whether a machine decides as the guards do: vectors, and their adapters."""
