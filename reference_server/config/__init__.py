"""Where the server's home is and what its config.toml says."""
