"""A server that plays scenarios for somebody else's client, and its report.

It hands on what it reads and writes, and knows none of what judges it.
"""
