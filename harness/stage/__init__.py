"""What a client of somebody else gets from a server that plays scenarios, and what is told of it.

It hands on what it reads and writes, and knows none of what judges it.
"""
