"""Recording a session between a client and a server that are not ours."""
