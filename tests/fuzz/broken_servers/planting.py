"""Tools for bugs that need a sequence of requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.conformance.bugs.planting import swap

Handler = Callable[[Any, Any], Awaitable[None]]


def handled(method: str, make: Callable[[Handler], Handler]) -> None:
    """Replace the handler of a method by `make(handler)`."""
    from reference_server.handlers import discover
    from reference_server.handlers.registry import registered_handlers

    discover()
    table: Any = registered_handlers()
    table[method] = make(table[method])


def noticed(notice: Callable[[Any, Any], None]) -> None:
    """Call `notice` with the connection and the request before each request is handled."""

    def take(original: Any) -> Any:
        async def changed(server: Any, connection: Any, request: Any) -> None:
            notice(connection, request)
            await original(server, connection, request)

        return changed

    swap("reference_server.server:Server.take_request", take)
