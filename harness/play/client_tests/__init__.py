"""Server side of tests for clients: plays scenarios to a client and reports on it.

It passes on messages in both directions, and does not know the rules that judge them.
"""
