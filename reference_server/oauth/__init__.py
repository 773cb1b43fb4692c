"""OAuth for MCP servers over streamable HTTP: login, stored credentials, tokens for turns.

`status`, `store` and what they import are light: `agent mcp list` asks them. What speaks HTTP
imports the MCP SDK, which takes half a second.
"""
