"""A server that listens: choosing its address, and connecting as soon as possible.

There is no event when another process begins to listen, and reading the system's tables is polling
too. So the harness tries to connect, and waits for the end of the process between two attempts: a
server that ends is noticed at once.
"""

import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from harness.client.target.profile import Listening
from harness.client.transport.connect import Connection, connect
from harness.client.transport.websocket import HandshakeFailed
from harness.errors import TargetError, UsageError

# The time between two attempts to connect, in seconds.
_RETRY_SECONDS = 0.02
# The longest path of a unix socket, in bytes, that works on every supported system.
_MAX_PATH_BYTES = 100


def free_address(kind: Listening, folder: Path) -> str:
    """Return an address where nothing listens: a port on loopback, or a socket in an empty folder.

    Another program may still take the port before the server does; then the server reports that
    and ends. Raises `UsageError` if the path is too long.
    """
    if kind == "ws":
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return f"ws://127.0.0.1:{probe.getsockname()[1]}"
    # The server runs in our current folder, and only the shorter of two paths may fit.
    paths = (str(folder / "s"), os.path.relpath(folder / "s"))
    path = min(paths, key=len)
    if len(os.fsencode(path)) > _MAX_PATH_BYTES:
        raise UsageError(
            f"the path of a socket may have {_MAX_PATH_BYTES} bytes, and {path} has more; run in a "
            "folder with a shorter path"
        )
    return f"unix://{path}"


async def connect_when_ready(
    address: str, *, wait_for_end: Callable[[], Awaitable[int]], bound: float
) -> Connection:
    """Open the first connection to a server that was just started.

    `wait_for_end` waits for the end of its process and returns the exit status; `bound` is in
    seconds. Raises `TargetError` if the server ended, does not listen in time, or speaks another
    protocol.
    """
    with anyio.move_on_after(bound):
        while True:
            try:
                return await connect(address)
            except HandshakeFailed as error:
                raise TargetError(
                    f"what listens at {address} is no such server: {error}"
                ) from error
            except OSError:
                with anyio.move_on_after(_RETRY_SECONDS):
                    status = await wait_for_end()
                    raise TargetError(
                        f"the server ended with exit status {status} before it listened at "
                        f"{address}"
                    ) from None
    raise TargetError(f"the server did not listen at {address} within {bound:g} s")
