"""The failures of MCP servers."""


class McpFailure(Exception):
    """A server cannot be used, or a call of its tool has no result; str() is one line."""


class NotTaken(McpFailure):
    """The server has not begun the call; it may be tried again on a new connection."""
