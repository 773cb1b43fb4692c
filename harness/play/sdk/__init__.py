"""Plays of scenarios on an SDK, through its driver program."""
