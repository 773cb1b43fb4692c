"""Rollouts: a thread's record on disk, one JSON object a line."""
