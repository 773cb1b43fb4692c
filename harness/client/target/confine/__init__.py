"""Confinement of servers that are not trusted: bubblewrap, limits, a network of loopback alone."""
