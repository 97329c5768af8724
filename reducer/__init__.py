"""The pure core of guardwave: guards that an agent host embeds, and the rules of a rollout."""
