"""How a handler makes itself known.

Here live the decorator and the table it fills, and what a handler is given. No handler lives here.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from harness.wire.base import WireModel

if TYPE_CHECKING:
    from reference_server.connection import Connection
    from reference_server.server import Server

P = TypeVar("P", bound=WireModel)


class Call(Protocol):
    """One request being handled."""

    @property
    def server(self) -> "Server":
        """What all connections share."""
        ...

    @property
    def connection(self) -> "Connection":
        """Where the request came from."""
        ...

    def answer(self, result: WireModel) -> None:
        """Queue the response, exactly once; what is told afterwards comes after it."""
        ...


Handler = Callable[[Call, P], Awaitable[None]]
AnyHandler = Callable[[Call, Any], Awaitable[None]]

_handlers: dict[str, AnyHandler] = {}


def handles(method: str) -> Callable[[Handler[P]], Handler[P]]:
    """Register a handler. Raises ValueError when the method already has one."""

    def register(handler: Handler[P]) -> Handler[P]:
        if method in _handlers:
            raise ValueError(f"{method} already has a handler")
        _handlers[method] = handler
        return handler

    return register


def registered() -> Mapping[str, AnyHandler]:
    """Give what has registered so far."""
    return _handlers
