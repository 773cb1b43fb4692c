"""Rules on `agent mcp`: what it prints, and what it does to config.toml and to credentials."""
