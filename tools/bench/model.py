"""The model server of the benchmark: `python -m tools.bench.model` prints its port.

It answers every call with bytes encoded at its start, over connections kept alive, so that its own
cost hardly counts. Each event is one chunk, as a provider sends it; an answer is one write. The
process ends when its input does.
"""

import asyncio
import re
import sys

from harness.model.parts import UsageBody
from harness.model.wire.responses import ResponsesStream

STREAM_WORD = "stream-of-deltas"
"""Word in the user's text that asks for the long answer."""
DELTAS = 5000

_LENGTH = re.compile(rb"(?i)\r\ncontent-length:[ \t]*(\d+)")
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)
_NONE_LISTED = b'{"object":"list","data":[],"models":[]}'


def answer(deltas: list[str]) -> bytes:
    """Return a complete HTTP response that streams one message as `deltas`."""
    stream = ResponsesStream(1)
    events = [stream.start(UsageBody()), stream.start_message()]
    events += map(stream.message_delta, deltas)
    events.append(stream.end_message("".join(deltas), None))
    events.append(stream.complete(UsageBody()))
    chunks = (b"%x\r\n%b\r\n" % (len(event), event) for event in events)
    return _HEAD + b"".join(chunks) + b"0\r\n\r\n"


class Calls(asyncio.Protocol):
    """One HTTP connection."""

    def __init__(self, trivial: bytes, long: bytes) -> None:
        self._trivial = trivial
        self._long = long
        self._received = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport to answer on."""
        if isinstance(transport, asyncio.WriteTransport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end]
            match = _LENGTH.search(head)
            end_of_request = end + 4 + (int(match[1]) if match else 0)
            if len(self._received) < end_of_request:
                return
            body, self._received = (
                self._received[end + 4 : end_of_request],
                self._received[end_of_request:],
            )
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        if self._transport is None:
            return
        if head.startswith(b"POST "):
            wants_long = STREAM_WORD.encode() in body
            self._transport.write(self._long if wants_long else self._trivial)
        else:
            self._transport.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                b"content-length: %d\r\n\r\n%b" % (len(_NONE_LISTED), _NONE_LISTED)
            )


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    trivial = answer(["Done ", "so."])
    long = answer([f"word {number} " for number in range(DELTAS)])
    server = await loop.create_server(lambda: Calls(trivial, long), "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    ended = loop.create_future()
    loop.add_reader(sys.stdin.fileno(), lambda: ended.done() or ended.set_result(None))
    await ended
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve())
