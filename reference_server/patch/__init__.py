"""Patches of files: read, worked out, made all at once, and shown as diffs. Knows no session."""
