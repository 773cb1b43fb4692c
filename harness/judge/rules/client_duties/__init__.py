"""Duties of clients: rules that judge what a client sends, and what it never sends."""
