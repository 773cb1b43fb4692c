"""Loaded threads: their status, their settings and who listens."""
