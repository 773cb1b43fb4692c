"""A scenario made of a trace: recorded between others, or left by a run."""
