"""Patches of files: parsed, planned, applied all at once, shown as diffs. Knows no session."""
