"""Scenarios made from traces: recordings of other programs, and runs of the harness."""
