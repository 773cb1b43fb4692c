"""`agent mcp`: the MCP servers of config.toml are listed, shown, added and removed.

The command line lives in `cli.mcp_servers`, reading and writing the file in `config`. Source:
mcp-cli-and-sdk "Command-line commands", "MCP server configuration".

| module | what lives there |
|---|---|
| `new_server` | what `add` is given, checked |
| `edits` | adding a server to a text and removing one |
| `display` | a server as JSON, as lines, as the cells of a table |
| `masking` | hiding secrets, and escaping control characters |
| `table` | the table |
"""
