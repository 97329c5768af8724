"""Simulated owners and waves that the statistics of the gate are proven on."""
