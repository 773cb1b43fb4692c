"""Standard output: claimed for the events, and written without holding up anything else."""

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
# JSON has these in strings as they are. But some end a line for readers that know more ends of
# lines than JSON Lines has, as splitlines of Python does, and some act on a terminal.
_UNLIKE_JSON = re.compile("[\x7f-\x9f\u2028\u2029]")


class Sink(Protocol):
    """The destination of a run's events."""

    async def tell(self, events: list[Fields]) -> None:
        """Write events, in order. Raises PeerGone where nobody reads any more."""
        ...

    async def finish(self) -> None:
        """Write the end of the output, after the last event. Raises PeerGone."""
        ...


class Stream:
    """A descriptor that is written to in a worker thread, so that a slow reader blocks only that.

    It is not made non-blocking, since other programs may write to the same pipe. With
    `may_be_unread`, a reader may leave.
    """

    def __init__(self, descriptor: int, *, may_be_unread: bool = False) -> None:
        self._descriptor = descriptor
        self._may_be_unread = may_be_unread

    async def write(self, data: bytes) -> None:
        """Write all of it. Raises PeerGone."""
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
        """Call `on_gone` if the reader leaves within the block, even if nothing is written then.

        That is known of pipes and sockets, where the system can tell it; runs on the event loop.
        """
        if not hasattr(select, "epoll"):
            yield
            return
        with select.epoll() as hangups:
            try:
                # Nothing is asked for: an error, and here that is a reader that left, always comes.
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
    """Claim standard output, and point descriptor 1 at standard error for everything else."""
    output = os.dup(1)
    os.dup2(2, 1)
    return Stream(output)


def standard_error() -> Stream:
    """Return standard error, which need not be read."""
    return Stream(2, may_be_unread=True)


def failure_of(event: Fields) -> str:
    """Return the line that reports a failure to people, "" for any other event.

    A failed turn is reported by the `error` event before it.
    """
    if event["type"] != "error":
        return ""
    return f"agent exec: {escape_controls(' '.join(event['message'].split()))}"


class JsonLines:
    """Each event is a line of JSON, and nothing else is written to `stream`.

    A failure is also written to `errors`, since an SDK shows that with the exit status.
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
        """Write nothing: the last event was the end."""


def _line(event: Fields) -> bytes:
    text = json.dumps(event, separators=(",", ":"), ensure_ascii=False)
    # As escapes they mean the same, to every reader.
    text = _UNLIKE_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        # Half of a surrogate pair has no UTF-8 form.
        return json.dumps(event, separators=(",", ":")).encode() + b"\n"
