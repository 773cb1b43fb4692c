"""JSON Lines over a pair of byte streams: the pipes of a process, or memory."""

from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, ByteStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from anyio.streams.stapled import StapledObjectStream

from harness.client.transport.jsonl import Line, LineSplitter
from harness.errors import TargetGone

_GONE = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    BrokenPipeError,
    ConnectionError,
)
_CHUNK = 256 * 1024

Receive = Callable[[int], Awaitable[bytes]]
Send = Callable[[bytes], Awaitable[None]]


class LineTransport:
    """Lines over a receiving and a sending stream of bytes."""

    def __init__(
        self,
        receive: ByteReceiveStream | ByteStream,
        send: ByteSendStream | ByteStream,
        splitter: LineSplitter | None = None,
    ) -> None:
        self._in = receive
        self._out = send
        self._splitter = splitter or LineSplitter()
        self._ended = False
        self._write_lock = anyio.Lock()

    @property
    def partial(self) -> bytes:
        """Return the beginning of a line that has not ended yet."""
        return self._splitter.partial

    @property
    def partial_size(self) -> int:
        """Return the number of bytes of the unfinished line, including those not kept."""
        return self._splitter.partial_size

    async def send(self, raw: bytes) -> None:
        """Write one message and its line end."""
        await self.send_bytes(raw + b"\n")

    async def send_bytes(self, raw: bytes) -> None:
        """Write bytes as they are; two writers never interleave."""
        async with self._write_lock:
            try:
                await self._out.send(raw)
            except _GONE as error:
                raise TargetGone("the server closed its input") from error

    async def receive(self) -> list[Line]:
        """Return the next lines, in the end an unfinished one. Raises `TargetGone` after that."""
        while not self._ended:
            try:
                chunk = await self._in.receive(_CHUNK)
            except _GONE:
                self._ended = True
                rest = self._splitter.finish()
                if rest is not None:
                    return [rest]
                break
            lines = self._splitter.feed(chunk)
            if lines:
                return lines
        raise TargetGone("the server closed its output")

    async def aclose(self) -> None:
        """Close the sending side, so that the server sees the end of its input."""
        try:
            await self._out.aclose()
        except _GONE:
            return


class _MemoryBytes(ByteStream):
    """One end of a byte stream in memory."""

    def __init__(self, stream: StapledObjectStream[bytes]) -> None:
        self._stream = stream
        self._rest = b""

    async def receive(self, max_bytes: int = 65536) -> bytes:
        data = self._rest or await self._stream.receive()
        data, self._rest = data[:max_bytes], data[max_bytes:]
        return data

    async def send(self, item: bytes) -> None:
        await self._stream.send(item)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        # Only the sending side is closed: data in flight can still be read, as with a pipe.
        await self._stream.send_stream.aclose()


def memory_pair(buffer: int = 1024) -> tuple[ByteStream, ByteStream]:
    """Return two connected ends of a byte stream in memory."""
    left_send, right_receive = _half(buffer)
    right_send, left_receive = _half(buffer)
    return (
        _MemoryBytes(StapledObjectStream(left_send, left_receive)),
        _MemoryBytes(StapledObjectStream(right_send, right_receive)),
    )


def _half(
    buffer: int,
) -> tuple[MemoryObjectSendStream[bytes], MemoryObjectReceiveStream[bytes]]:
    return anyio.create_memory_object_stream[bytes](buffer)
