"""Drift: differences between a release of the shipping server and a double that imitates it."""
