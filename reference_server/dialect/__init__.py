"""The edge at which the server speaks a release of the shipping server.

The engine stays in the specification's words. A dialect (`harness/protocol/dialects`) is applied
between the outbox and the transport, both ways; without one nothing here is imported.
"""
