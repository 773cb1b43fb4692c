"""Plays of scenarios on a server of the session protocol."""
