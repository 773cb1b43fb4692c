"""Whether the judge's book and the wire models say the same."""
