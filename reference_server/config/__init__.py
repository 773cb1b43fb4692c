"""The server's home and its settings."""
