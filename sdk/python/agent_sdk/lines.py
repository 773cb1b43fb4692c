"""Splitter of a byte stream into lines."""

from agent_sdk.errors import ProtocolError

MAX_LINE_BYTES = 256 * 1024 * 1024
"""Maximum bytes of a line: an agent that never ends its line must not fill the memory."""


class Lines:
    """Buffer that splits at line feeds only: U+2028 and a carriage return are part of a line."""

    def __init__(self, longest: int = MAX_LINE_BYTES) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._longest = longest

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes, without line feeds, and keep the rest.

        Raises ProtocolError if the unfinished line exceeds the limit.
        """
        *complete, rest = data.split(b"\n")
        lines: list[bytes] = []
        for part in complete:
            lines.append(b"".join([*self._parts, part]))
            self._parts.clear()
            self._size = 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
            if self._size > self._longest:
                raise ProtocolError(
                    f"the agent wrote a line of more than {self._longest} bytes", ""
                )
        return lines

    def rest(self) -> bytes:
        """Remove and return the bytes after the last line feed; b"" if there are none."""
        rest = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return rest
