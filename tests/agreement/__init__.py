"""Whether the judge's book and the wire models say the same. Not here: tests of either alone."""
