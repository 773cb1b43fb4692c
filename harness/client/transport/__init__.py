"""Transports: whole lines to and from a server, over pipes, sockets or memory."""
