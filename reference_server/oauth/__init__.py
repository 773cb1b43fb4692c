"""OAuth for MCP servers over streamable HTTP: login, stored credentials, tokens for turns.

Here lives what both `agent mcp login` and a turn need; what is printed is in `cli.mcp_login`.
`status`, `store` and what they import are light: `agent mcp list` asks them. What speaks HTTP
imports the MCP SDK, which takes half a second.
"""
