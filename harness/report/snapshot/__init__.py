"""Snapshots: transcripts that a person reviewed, and what changed in them."""
