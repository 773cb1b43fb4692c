"""`agent mcp`: the MCP servers of config.toml are listed, shown, added and removed.

`cli.mcp_servers` has the command line; `config` reads and writes the file. Source: mcp-cli-and-sdk
"Command-line commands", "MCP server configuration".

| module | content |
|---|---|
| `new_server` | the checked arguments of `add` |
| `edits` | adding a server to a text and removing one |
| `display` | a server as JSON, as lines, as the cells of a table |
| `masking` | masking of secrets, and escaping of control characters |
| `table` | the table |
"""
