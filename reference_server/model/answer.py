"""The interface of a connection to a model, whichever way it takes.

The ways are `direct` (plain HTTP), `through_httpx` (everything else) and `scripted` (in this
process).
"""

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol, runtime_checkable


class TransportError(Exception):
    """No answer, or no more of it; str() is the kind of failure and its text."""

    def __init__(self, details: str, *, retryable: bool = True) -> None:
        super().__init__(details)
        self.retryable = retryable


class Answer(Protocol):
    """The status and the headers of an answer, and its body as it comes."""

    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""

    def chunks(self) -> AsyncGenerator[bytes]:
        """Return the pieces of the body as they come, called once. They raise TransportError."""
        ...

    async def aclose(self) -> None:
        """Take no more of the body; the connection stays open only if the body was read whole."""
        ...


@runtime_checkable
class ModelConnection(Protocol):
    """A connection for one call at a time, open or still to be made."""

    async def post(self, address: str, headers: Mapping[str, str], content: bytes) -> Answer:
        """Send a request; return the answer when its headers are there. Raises TransportError."""
        ...

    async def aclose(self) -> None:
        """Close it."""
        ...
