"""Verdicts on the duties of clients, live behind a server and in recordings."""
