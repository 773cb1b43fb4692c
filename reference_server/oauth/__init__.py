"""OAuth for MCP servers over streamable HTTP: login, stored credentials, tokens for turns.

`status` and `store`, which `agent mcp list` uses, import fast. Modules that use HTTP import the MCP
SDK, which takes half a second.
"""
