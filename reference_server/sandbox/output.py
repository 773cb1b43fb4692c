"""Output of a command: decoded as it arrives, and limited in length, without I/O.

The joined pieces are exactly the kept output, so the streamed output is that of the completed item.
"""

import codecs

HEAD_LIMIT = 512 * 1024
"""Bytes kept from the beginning; they are passed on as they arrive."""
TAIL_LIMIT = 512 * 1024
"""Bytes kept from the end; output after the head is passed on when the command has ended."""


def marker(cut: int) -> str:
    """Return the line that replaces `cut` bytes of output."""
    return f"\n[... {cut} bytes of output cut ...]\n"


class Output:
    """Output of one command: at most HEAD_LIMIT + TAIL_LIMIT bytes and a marker.

    Limits count the printed bytes. A piece never splits a character; invalid UTF-8 becomes U+FFFD,
    as with `errors="replace"`.
    """

    def __init__(self, head_limit: int = HEAD_LIMIT, tail_limit: int = TAIL_LIMIT) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head_left = head_limit
        self._tail_limit = tail_limit
        self._tail = bytearray()
        self._pieces: list[str] = []
        self.cut_bytes = 0

    @property
    def text(self) -> str:
        """All pieces so far, joined."""
        return "".join(self._pieces)

    def feed(self, data: bytes) -> str:
        """Take bytes and return the piece to pass on now, perhaps ""."""
        head = data[: self._head_left]
        self._head_left -= len(head)
        if len(head) < len(data):
            self._keep_of_end(memoryview(data)[len(head) :])
        return self._pass_on(self._decoder.decode(head))

    def _keep_of_end(self, data: memoryview) -> None:
        self._tail += data
        # Trimmed only when twice too long, so that each byte is moved about once.
        if len(self._tail) > 2 * self._tail_limit + len(data):
            self._trim()

    def _trim(self) -> None:
        surplus = len(self._tail) - self._tail_limit
        if surplus > 0:
            self.cut_bytes += surplus
            del self._tail[:surplus]

    def finish(self) -> str:
        """Finish the output and return its last piece, perhaps ""."""
        self._trim()
        if not self.cut_bytes:
            return self._pass_on(self._decoder.decode(bytes(self._tail), final=True))
        # A character that the cut divides is cut completely.
        self.cut_bytes += len(self._decoder.getstate()[0])
        start = 0
        while start < min(3, len(self._tail)) and self._tail[start] & 0xC0 == 0x80:
            start += 1
        self.cut_bytes += start
        return self._pass_on(marker(self.cut_bytes) + self._tail[start:].decode("utf-8", "replace"))

    def _pass_on(self, piece: str) -> str:
        if piece:
            self._pieces.append(piece)
        return piece
