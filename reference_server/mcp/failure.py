"""Failures of MCP servers."""


class McpFailure(Exception):
    """A server cannot be used, or a call of its tool has no result; str() is one line."""


class NotTaken(McpFailure):
    """The server has not begun the call, so it can be retried on a new connection."""
