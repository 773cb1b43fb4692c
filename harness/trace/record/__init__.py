"""Recording of a session between a client and a server that the harness does not play."""
