"""Surfaces: ways to talk to an agent, as far as the judge must know them."""
