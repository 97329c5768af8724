"""guardwave: the rollout control plane for guards that keep AI agents from looping.

Three packages are public: `guardwave.client` (assignments and telemetry for an agent host),
`guardwave.guards` (the guards that it embeds) and `guardwave.analysis` (the statistics for a
notebook). Everything else is internal and may change with any version.
"""

__version__ = "0.1.0"
