"""The server's home, and its config.toml."""
