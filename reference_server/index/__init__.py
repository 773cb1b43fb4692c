"""The index of a home's threads, for `thread/list`: a cache in SQLite of what the rollouts say.

Here live reading a rollout's summary, the file of the index, keeping it in step with the folders,
cursors and pages. The rollouts are the truth: whatever happens to the index, it is made again from
them. Nothing else of the server uses SQLite, and nothing here is imported before the first list.
"""
