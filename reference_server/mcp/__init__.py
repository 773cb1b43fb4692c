"""MCP servers: started or reached as configured, their tools called by the model.

Nothing here knows of threads, turns or items; the engine brings them together (`engine/tools/mcp`).
It is imported only where a server is configured, and the SDK last of all, in a worker thread: that
takes half a second.
"""
