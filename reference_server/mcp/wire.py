"""The form of a connection to an MCP server, however it is made.

The two ways are in `stdio` and `http`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

MESSAGE_LIMIT = 32 * 2**20
"""Bytes of the largest message of a server that is taken."""
TOO_LARGE = f"it sent a message of more than {MESSAGE_LIMIT // 2**20} MiB"


@dataclass(frozen=True, slots=True)
class Wire:
    """An open connection.

    `reason`: why it has ended or fails, empty where nothing is known. `hide` takes out of a text
    what the server was sent and nobody else may see. `session_unknown`: whether the server has said
    last that it does not know the session.
    """

    read_stream: ReadStream[SessionMessage | Exception]
    write_stream: WriteStream[SessionMessage]
    reason: Callable[[], str]
    hide: Callable[[str], str] = str
    session_unknown: Callable[[], bool] = bool
