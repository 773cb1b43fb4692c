"""Runs divided among machines: the division, a shard's part of a report, the merge."""
