"""Decoding of a response body (Content-Encoding).

Every call requests no encoding (`Accept-Encoding: identity`), since events are read as they arrive,
but some proxies encode nevertheless.
"""

import zlib
from collections.abc import AsyncGenerator, AsyncIterator

import anyio.lowlevel

PIECE = 1 << 16
"""Maximum decoded bytes per piece."""
_FORMATS = {
    "gzip": 16 + zlib.MAX_WBITS,
    "x-gzip": 16 + zlib.MAX_WBITS,
    "deflate": zlib.MAX_WBITS,
}


class Undecodable(Exception):
    """The bytes are not in the encoding of the header; str() says so."""


def is_plain(encoding: str) -> bool:
    """Return whether a Content-Encoding means an unencoded body."""
    return encoding.strip().lower() in ("", "identity")


def is_readable(encoding: str) -> bool:
    """Return whether `decode` supports a Content-Encoding; combinations are not supported."""
    return encoding.strip().lower() in _FORMATS


async def decode(chunks: AsyncIterator[bytes], encoding: str) -> AsyncGenerator[bytes]:
    """Yield decoded pieces; `encoding` is readable. Raises Undecodable and errors of `chunks`."""
    name = encoding.strip().lower()
    decoder = zlib.decompressobj(_FORMATS[name])
    first = True
    async for chunk in chunks:
        if first and name == "deflate" and not _has_zlib_header(chunk):
            # Some servers send raw deflate, without the zlib header, under this name.
            decoder = zlib.decompressobj(-zlib.MAX_WBITS)
        first = False
        data = chunk
        while True:
            try:
                piece = decoder.decompress(data, PIECE)
            except zlib.error as error:
                raise Undecodable(f"the answer is not the {name} that its header names") from error
            data = decoder.unconsumed_tail
            if decoder.eof and decoder.unused_data and name != "deflate":
                # Concatenated gzip members are one stream (RFC 1952, 2.2).
                data, decoder = decoder.unused_data, zlib.decompressobj(_FORMATS[name])
            if piece:
                yield piece
                await anyio.lowlevel.checkpoint()
            if not data and len(piece) < PIECE:
                break


def _has_zlib_header(data: bytes) -> bool:
    # RFC 1950, 2.2: the method is 8, and the two bytes are a multiple of 31.
    return len(data) < 2 or (data[0] & 15 == 8 and int.from_bytes(data[:2], "big") % 31 == 0)
