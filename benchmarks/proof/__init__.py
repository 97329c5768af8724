"""Proof: simulated owners and waves on which the statistics of the gate are tested."""
