"""Faults: changes of a trace or of a live stream that a rule must notice."""
