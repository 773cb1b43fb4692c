"""Verdicts on the duties of clients, during a conversation and from recordings."""
