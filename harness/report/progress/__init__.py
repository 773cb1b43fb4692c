"""The progress of a run as a file of events: written while it plays, followed by others."""
