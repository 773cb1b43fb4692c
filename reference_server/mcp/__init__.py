"""MCP servers: connections as configured, and calls of their tools.

This package does not know threads, turns or items; `engine/tools/mcp` does. It is imported only if
a server is configured. The SDK, whose import takes half a second, is imported in a worker thread.
"""
