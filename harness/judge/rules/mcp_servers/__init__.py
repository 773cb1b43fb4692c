"""Rules on the messages between an agent and the MCP servers that the harness plays."""
