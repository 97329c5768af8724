"""Use cases that write: load, decide by the pure rules, commit with an audit entry."""
