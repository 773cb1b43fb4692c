"""The handshake: `initialize` and the `initialized` notification.

The document does not show it ("Transport and connection set-up: not shown"); the shapes are those
of the shipping server, everything optional.
"""

from harness.protocol.wire.base import WireModel


class ClientInfo(WireModel):
    """The calling client."""

    name: str | None = None
    version: str | None = None
    title: str | None = None


class ClientCapabilities(WireModel):
    """The client's wishes for the connection."""

    experimental_api: bool | None = None
    opt_out_notification_methods: list[str] | None = None


class InitializeParams(WireModel):
    """Params of `initialize`."""

    client_info: ClientInfo | None = None
    capabilities: ClientCapabilities | None = None


class InitializeResult(WireModel):
    """Result of `initialize`."""

    user_agent: str
