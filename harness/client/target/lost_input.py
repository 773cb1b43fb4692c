"""Processes that close their input while it is being written, kept out of asyncio's log.

The writer gets the error. If nothing awaits the end of the pipe, Python 3.11.2 reports it a second
time on standard error, as a future whose exception was never retrieved; newer versions do not.
"""

import asyncio
from collections.abc import Callable
from typing import Any

_Handler = Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object]


class _LostInputFilter:
    def __init__(self, fallback: _Handler | None) -> None:
        self._fallback = fallback

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        is_lost_pipe = isinstance(context.get("exception"), BrokenPipeError | ConnectionResetError)
        if is_lost_pipe and "never retrieved" in context["message"]:
            return
        if self._fallback is None:
            loop.default_exception_handler(context)
        else:
            self._fallback(loop, context)


def ignore_lost_input() -> None:
    """Keep the running loop from logging that a process closed its input."""
    loop = asyncio.get_running_loop()
    handler = loop.get_exception_handler()
    if not isinstance(handler, _LostInputFilter):
        loop.set_exception_handler(_LostInputFilter(handler))
