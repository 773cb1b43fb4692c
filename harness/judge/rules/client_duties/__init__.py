"""Duties of clients: rules that judge the messages that a client sends or fails to send."""
