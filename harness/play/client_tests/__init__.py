"""A server that plays scenarios for somebody else's client, and its report.

It passes on messages in both directions, and does not know the rules that judge them.
"""
