"""Index of a home's threads, for `thread/list`: a cache of the rollouts in SQLite.

The rollouts are authoritative: the index can always be rebuilt from them. Only this package uses
SQLite, and most of it is imported with the first list.
"""
