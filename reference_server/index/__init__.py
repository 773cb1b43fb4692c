"""The index of a home's threads, for `thread/list`: a cache of the rollouts in SQLite.

The rollouts are the truth: whatever happens to the index, it is made again from them. Nothing else
of the server uses SQLite, and nothing here is imported before the first list.
"""
