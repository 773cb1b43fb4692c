"""Loaded threads: their status, settings and subscribers."""
