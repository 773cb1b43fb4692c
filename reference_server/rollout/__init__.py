"""Rollouts: threads as files, with one JSON record per line."""
