"""What hosts send: each dialect turns its own telemetry into the records of the domain."""
