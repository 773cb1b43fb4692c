"""Comparison of the judge's book with the wire models."""
