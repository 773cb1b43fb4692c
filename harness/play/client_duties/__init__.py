"""Judging clients: their duties, live behind a server and in what was recorded."""
