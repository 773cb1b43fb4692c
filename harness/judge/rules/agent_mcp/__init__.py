"""Rules on `agent mcp`: its output, and its changes of config.toml and of credentials."""
