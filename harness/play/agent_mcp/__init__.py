"""Plays of scenarios on `agent mcp`: each step is a command."""
