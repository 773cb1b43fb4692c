"""Plays of scenarios on `agent exec`: each turn is a process."""
