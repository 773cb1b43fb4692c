"""Sequences of operations with known coverage: covering sequences, their plays and their count."""
