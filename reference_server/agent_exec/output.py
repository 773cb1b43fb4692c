"""Standard output: reserved for the events, and written in a worker thread."""

import asyncio
import json
import os
import re
import select
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Protocol

from anyio import to_thread

from reference_server.terminal_escapes import escape_controls
from reference_server.transport.base import PeerGone

Fields = dict[str, Any]
# JSON allows these characters unescaped in strings. But some end a line for other readers, such as
# Python's splitlines, and some act on a terminal.
_UNLIKE_JSON = re.compile("[\x7f-\x9f\u2028\u2029]")


class Sink(Protocol):
    """The destination of a run's events."""

    async def tell(self, events: list[Fields]) -> None:
        """Write events, in order. Raises PeerGone if the output cannot be written."""
        ...

    async def finish(self) -> None:
        """Write the end of the output, after the last event. Raises PeerGone."""
        ...


class Stream:
    """A descriptor, written in a worker thread, so that a slow reader blocks only that.

    It is not made non-blocking, since other programs may write to the same pipe. With
    `may_be_unread` errors of writing are ignored.
    """

    def __init__(self, descriptor: int, *, may_be_unread: bool = False) -> None:
        self._descriptor = descriptor
        self._may_be_unread = may_be_unread

    async def write(self, data: bytes) -> None:
        """Write all data. Raises PeerGone, unless `may_be_unread`."""
        await to_thread.run_sync(self._write, data, abandon_on_cancel=True)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            if not self._may_be_unread:
                raise PeerGone from error

    @contextmanager
    def watch_reader(self, on_gone: Callable[[], None]) -> Generator[None]:
        """Call `on_gone` if the reader closes the output during the block, even without a write.

        Works for pipes and sockets, on systems with epoll; on the event loop.
        """
        if not hasattr(select, "epoll"):
            yield
            return
        with select.epoll() as hangups:
            try:
                # No event is requested: an error, here a closed reader, is always reported.
                hangups.register(self._descriptor, 0)
            except OSError:
                yield
                return
            loop = asyncio.get_running_loop()

            def on_hangup() -> None:
                loop.remove_reader(hangups.fileno())
                on_gone()

            loop.add_reader(hangups.fileno(), on_hangup)
            try:
                yield
            finally:
                loop.remove_reader(hangups.fileno())


def claim_output() -> Stream:
    """Return standard output, and make descriptor 1 standard error for everything else."""
    output = os.dup(1)
    os.dup2(2, 1)
    return Stream(output)


def standard_error() -> Stream:
    """Return standard error, whose reader may leave."""
    return Stream(2, may_be_unread=True)


def failure_of(event: Fields) -> str:
    """Return the line about an `error` event for standard error, "" for any other event.

    A failed turn has an `error` event before `turn.failed`.
    """
    if event["type"] != "error":
        return ""
    return f"agent exec: {escape_controls(' '.join(event['message'].split()))}"


class JsonLines:
    """Sink that writes each event as a line of JSON to `stream`.

    A failure is also written to `errors`, which an SDK shows with the exit status.
    """

    def __init__(self, stream: Stream, errors: Stream) -> None:
        self._stream = stream
        self._errors = errors

    async def tell(self, events: list[Fields]) -> None:
        """Write events. Raises PeerGone."""
        for failure in filter(None, map(failure_of, events)):
            await self._errors.write(f"{failure}\n".encode("utf-8", "backslashreplace"))
        await self._stream.write(b"".join(_line(event) for event in events))

    async def finish(self) -> None:
        """Write nothing: the last event ends the output."""


def _line(event: Fields) -> bytes:
    text = json.dumps(event, separators=(",", ":"), ensure_ascii=False)
    # The escapes mean the same to every JSON parser.
    text = _UNLIKE_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        # Half of a surrogate pair has no UTF-8 form.
        return json.dumps(event, separators=(",", ":")).encode() + b"\n"
