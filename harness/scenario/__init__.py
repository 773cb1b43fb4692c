"""Scenarios: their YAML form, its loader, and the player of their steps, which never judges."""
