"""The decorator that registers a handler, and the table that it fills."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from harness.protocol.wire.base import WireModel
from reference_server.call import Call

P = TypeVar("P", bound=WireModel)
Handler = Callable[[Call, P], Awaitable[None]]
AnyHandler = Callable[[Call, Any], Awaitable[None]]

_handlers: dict[str, AnyHandler] = {}


def handles(method: str) -> Callable[[Handler[P]], Handler[P]]:
    """Register the decorated handler. Raises ValueError if the method already has one."""

    def register(handler: Handler[P]) -> Handler[P]:
        if method in _handlers:
            raise ValueError(f"{method} already has a handler")
        _handlers[method] = handler
        return handler

    return register


def registered_handlers() -> Mapping[str, AnyHandler]:
    """Return the handlers of the modules imported so far, by method."""
    return _handlers
