"""The form of a transport: it sends whole lines to a server and receives them.

`tests/contract` runs one suite over all of them. A transport never parses a message.
"""

from typing import Protocol

from harness.client.transport.jsonl import Line


class Transport(Protocol):
    """One connection to a server."""

    async def send(self, raw: bytes) -> None:
        """Write one message; `raw` has no line end. Raises `TargetGone` if the server left."""
        ...

    async def send_bytes(self, raw: bytes) -> None:
        """Write bytes as they are, for malformed input. Raises `TargetGone` if the server left."""
        ...

    async def receive(self) -> list[Line]:
        """Wait for and return at least one line. Raises `TargetGone` at the end of the stream."""
        ...

    @property
    def partial(self) -> bytes:
        """Return the beginning of a line that has not ended yet."""
        ...

    @property
    def partial_size(self) -> int:
        """Return the number of bytes of the unfinished line, including those not kept."""
        ...

    async def aclose(self) -> None:
        """Close this side. Idempotent."""
        ...
