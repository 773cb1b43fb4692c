"""Parser of HTTP/1.1 answers, head and body (RFC 9112), without I/O.

A malformed answer raises TransportError with the same message as httpx, since clients see it.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from reference_server.model.answer import TransportError

MAX_HEAD_BYTES = 100 << 10
_MAX_LINE_BYTES = 16 << 10
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: .*)?")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:[ \t]*(.*)")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;.*)?")


class Head(NamedTuple):
    """Status and headers of an answer."""

    status: int
    headers: Mapping[str, str]
    keeps_open: bool
    """True if the connection may be used again after the body."""


def malformed_answer(words: str) -> TransportError:
    """Return the error for an answer that is not HTTP."""
    return TransportError(f"RemoteProtocolError: {words}")


def read_head(data: bytes) -> tuple[Head, bytes] | None:
    """Return head and the bytes after it, None if incomplete. Raises TransportError if invalid."""
    end = _HEAD_END.search(data)
    if end is None:
        if len(data) > MAX_HEAD_BYTES:
            raise malformed_answer("Receive buffer too long")
        return None
    first, *lines = data[: end.start()].replace(b"\r\n", b"\n").split(b"\n")
    status = _STATUS.fullmatch(first)
    if status is None:
        raise malformed_answer(f"illegal status line: {first[:80]!r}")
    headers: dict[str, str] = {}
    name = ""
    for line in lines:
        if line[:1] in (b" ", b"\t") and name:
            headers[name] += f" {line.strip().decode('latin-1')}"
            continue
        field = _FIELD.fullmatch(line)
        if field is None:
            raise malformed_answer("illegal header line")
        name, value = field[1].decode().lower(), field[2].rstrip(b" \t").decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    words = {word.strip() for word in headers.get("connection", "").lower().split(",")}
    keeps_open = status[1] == b"1" and "close" not in words
    return Head(int(status[2]), headers, keeps_open), data[end.end() :]


class Body:
    """A body that ends with the connection."""

    def __init__(self) -> None:
        self.is_whole = False
        self.excess = b""
        """Data after the end of the body."""

    def feed(self, data: bytes) -> bytes:
        """Return the bytes of the body in received data. Raises TransportError if malformed."""
        return data

    def end(self) -> None:
        """Note that the connection was closed. Raises TransportError if the body is incomplete."""
        self.is_whole = True


class CountedBody(Body):
    """A body of a length that its head states."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self._length = length
        self._received = 0
        self.is_whole = length == 0

    def feed(self, data: bytes) -> bytes:
        """Return the bytes of the body in received data; the rest becomes `excess`."""
        piece = data[: self._length - self._received]
        self.excess = data[len(piece) :]
        self._received += len(piece)
        self.is_whole = self._received == self._length
        return piece

    def end(self) -> None:
        """Note that the connection was closed. Raises TransportError if bytes are missing."""
        if not self.is_whole:
            raise malformed_answer(
                "peer closed connection without sending complete message body "
                f"(received {self._received} bytes, expected {self._length})"
            )


class ChunkedBody(Body):
    """A body in chunks, each preceded by its length."""

    def __init__(self) -> None:
        super().__init__()
        self._data = b""
        self._left = 0
        """Missing bytes of the current chunk."""
        self._after_chunk = False
        self._in_trailer = False

    def feed(self, data: bytes) -> bytes:
        """Return the bytes of the body in received data. Raises TransportError if malformed."""
        data = self._data + data
        pieces: list[bytes] = []
        offset = 0
        while True:
            if self._left:
                pieces.append(data[offset : offset + self._left])
                offset += len(pieces[-1])
                self._left -= len(pieces[-1])
                if self._left:
                    break
            if self._after_chunk:
                if len(data) < offset + 2:
                    break
                if data[offset : offset + 2] != b"\r\n":
                    raise malformed_answer("illegal end of a chunk")
                offset += 2
                self._after_chunk = False
            end = data.find(b"\n", offset)
            if end < 0:
                if len(data) - offset > _MAX_LINE_BYTES:
                    raise malformed_answer("Receive buffer too long")
                break
            line = data[offset:end].removesuffix(b"\r")
            offset = end + 1
            if self._in_trailer:
                if not line:
                    self.is_whole, self.excess = True, data[offset:]
                    break
                continue
            size = _SIZE.fullmatch(line)
            if size is None:
                raise malformed_answer(f"illegal chunk header: {line[:80]!r}")
            self._left = int(size[1], 16)
            self._in_trailer = not self._left
            self._after_chunk = not self._in_trailer
        self._data = data[offset:]
        return b"".join(pieces)

    def end(self) -> None:
        """Note that the connection was closed. Raises TransportError if a chunk is missing."""
        if not self.is_whole:
            raise malformed_answer(
                "peer closed connection without sending complete message body "
                "(incomplete chunked read)"
            )


def body_of(head: Head) -> Body:
    """Return the parser of the body that a head announces. Raises TransportError if it is wrong."""
    if head.status in (204, 304):
        return CountedBody(0)
    coding = head.headers.get("transfer-encoding")
    if coding is not None:
        if coding.strip().lower() != "chunked":
            raise malformed_answer("Sorry, I only support 'Transfer-Encoding: chunked'")
        return ChunkedBody()
    length = head.headers.get("content-length")
    if length is None:
        return Body()
    values = {value.strip() for value in length.split(",")}
    [value, *conflicting] = values
    if conflicting:
        raise malformed_answer("conflicting Content-Length headers")
    if not re.fullmatch(r"[0-9]{1,20}", value):
        raise malformed_answer("bad Content-Length")
    return CountedBody(int(value))
