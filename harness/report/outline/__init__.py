"""A conversation as an outline: turns, items, deltas and the members of messages, foldable."""
