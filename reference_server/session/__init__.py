"""Loaded threads: their status, their settings, their subscribers."""
