"""What a client of somebody else gets from a server that plays scenarios, and what is told of it.

Here: which scenario a connection gets, its folders, the faults between it and the server, and what
the connection came to. Not here: the server. It hands on what it reads and writes, and knows none
of what judges it.
"""
