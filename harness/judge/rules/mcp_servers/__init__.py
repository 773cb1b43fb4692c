"""Rules on what passes between an agent and the MCP servers that the harness plays."""
