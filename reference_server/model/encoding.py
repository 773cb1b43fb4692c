"""Decoding a response body (Content-Encoding).

Every call asks for none (`Accept-Encoding: identity`), since events are read as they arrive, but
some proxies encode all the same.
"""

import zlib
from collections.abc import AsyncGenerator, AsyncIterator

import anyio.lowlevel

PIECE = 1 << 16
"""Decoded bytes that are made at once."""
_FORMATS = {
    "gzip": 16 + zlib.MAX_WBITS,
    "x-gzip": 16 + zlib.MAX_WBITS,
    "deflate": zlib.MAX_WBITS,
}


class Undecodable(Exception):
    """The bytes are not in the encoding that the header names; str() says so."""


def is_plain(encoding: str) -> bool:
    """Return whether a Content-Encoding leaves the body as it is."""
    return encoding.strip().lower() in ("", "identity")


def is_readable(encoding: str) -> bool:
    """Return whether `decode` can decode it; it decodes no combination of encodings."""
    return encoding.strip().lower() in _FORMATS


async def decode(chunks: AsyncIterator[bytes], encoding: str) -> AsyncGenerator[bytes]:
    """Decode a readable encoding. Raises Undecodable, and whatever `chunks` raises."""
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
