"""The four guards an agent host embeds: a state and an event in, a new state and a decision out."""
