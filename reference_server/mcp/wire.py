"""Interface of a connection to an MCP server, which `stdio` and `http` make."""

from collections.abc import Callable
from dataclasses import dataclass

from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

MESSAGE_LIMIT = 32 * 2**20
"""Maximum bytes of a server's message."""
TOO_LARGE = f"it sent a message of more than {MESSAGE_LIMIT // 2**20} MiB"


@dataclass(frozen=True, slots=True)
class Wire:
    """An open connection.

    `reason` returns why it has ended or fails, "" if that is unknown. `hide` redacts in a text the
    secrets that were sent to the server. `session_unknown` returns whether the last response of the
    server said that it does not know the session.
    """

    read_stream: ReadStream[SessionMessage | Exception]
    write_stream: WriteStream[SessionMessage]
    reason: Callable[[], str]
    hide: Callable[[str], str] = str
    session_unknown: Callable[[], bool] = bool
