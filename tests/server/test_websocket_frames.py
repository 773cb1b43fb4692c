"""The frames that the server's side of a WebSocket writes by itself."""

from __future__ import annotations

import pytest
from websockets.protocol import State
from websockets.server import ServerProtocol

from reference_server.transport.base import PeerGone
from reference_server.transport.descriptors import Descriptors
from reference_server.transport.websocket import WebSocketTransport


class Written(Descriptors):
    """Descriptors that keep the bytes written to them."""

    def __init__(self) -> None:
        self.data = b""

    async def write(self, data: bytes) -> None:
        self.data += data


def opened() -> ServerProtocol:
    protocol = ServerProtocol()
    protocol.state = State.OPEN
    return protocol


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65535, 65536, 70_000])
async def test_frame_of_any_length_is_as_the_library_writes_it(size: int) -> None:
    message, library, written = b"x" * size, opened(), Written()
    library.send_text(message)
    await WebSocketTransport(written, opened()).send([message])
    assert written.data == b"".join(library.data_to_send())


async def test_pong_that_waits_is_written_before_the_next_messages() -> None:
    protocol, library, written = opened(), opened(), Written()
    protocol.send_pong(b"p")
    library.send_pong(b"p")
    library.send_text(b"one")
    library.send_text(b"two")
    await WebSocketTransport(written, protocol).send([b"one", b"two"])
    assert written.data == b"".join(library.data_to_send())


async def test_nothing_is_written_after_the_close() -> None:
    protocol, written = opened(), Written()
    protocol.send_close(1000, "")
    with pytest.raises(PeerGone):
        await WebSocketTransport(written, protocol).send([b"one"])
    assert written.data == b""
