"""Interface of a connection to a model.

Implementations are `direct` (plain HTTP), `through_httpx` (TLS, proxies) and `scripted` (in this
process).
"""

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol, runtime_checkable


class TransportError(Exception):
    """A call got no answer, or only a part; str() is the type of the failure and its text."""

    def __init__(self, details: str, *, retryable: bool = True) -> None:
        super().__init__(details)
        self.retryable = retryable


class Answer(Protocol):
    """Status and headers of an answer, and its body as a stream."""

    status: int
    headers: Mapping[str, str]
    """Headers by name in lower case."""

    def chunks(self) -> AsyncGenerator[bytes]:
        """Yield the pieces of the body as they arrive; called once. Raises TransportError."""
        ...

    async def aclose(self) -> None:
        """Stop reading the body; the connection stays open only if the whole body was read."""
        ...


@runtime_checkable
class ModelConnection(Protocol):
    """A connection for one call at a time, opened by the first call."""

    async def post(self, address: str, headers: Mapping[str, str], content: bytes) -> Answer:
        """Send a request; return the answer once its headers are read. Raises TransportError."""
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...
