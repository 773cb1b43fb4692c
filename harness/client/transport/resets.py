"""Connections that are broken off, as a killed client or a broken proxy does it.

asyncio and anyio close politely; their own transports below are reached for this alone.
"""

import socket
import struct
from typing import Any

import anyio.lowlevel
from anyio.abc import ByteStream, Process

_NO_LINGER = struct.pack("ii", 1, 0)


def abort(transport: Any) -> None:
    """Abort a transport of asyncio; over TCP its peer gets a RST, and what was unsent is lost."""
    raw_socket = transport.get_extra_info("socket")
    raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    transport.abort()


async def reset_socket(stream: ByteStream) -> None:
    """Break a socket of anyio off."""
    transport: Any = getattr(stream, "_transport", None)
    if transport is None:  # A unix socket of anyio is closed at once.
        await stream.aclose()
        return
    abort(transport)
    await anyio.lowlevel.checkpoint()


async def reset_pipes(process: Process) -> None:
    """Close our ends of the standard input and output of a process."""
    transport: Any = getattr(process, "_process")._transport  # noqa: B009
    for number in (1, 0):  # At the end of its input nobody reads it any more.
        transport.get_pipe_transport(number).close()
    await anyio.lowlevel.checkpoint()
