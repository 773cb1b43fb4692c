"""The synchronous interface: each turn runs in an event loop in a thread of its own.

So it also works if the caller's thread runs an event loop, as a notebook does; it blocks that one.
"""

import asyncio
import concurrent.futures
import threading
import weakref
from collections.abc import Coroutine, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from agent_sdk.events import ThreadEvent
from agent_sdk.stream import RunStreamedResult

T = TypeVar("T")


class Loop:
    """An event loop that runs in a thread until `close` or the end of a `with` block."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=_serve, args=(self._loop,), daemon=True, name="agent_sdk loop"
        )
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result. Ctrl-C while waiting cancels it."""
        ended = threading.Event()
        future = asyncio.run_coroutine_threadsafe(_run_then_set(coroutine, ended), self._loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise
        except BaseException:
            if not future.done():
                future.cancel()
                ended.wait()
            raise

    def close(self) -> None:
        """Stop the loop, cancel its tasks, and wait for the thread to end."""
        self.stop()
        self._thread.join()

    def stop(self) -> None:
        """Stop the loop as `close` does, without waiting."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        asyncio.set_event_loop(None)
        loop.close()


async def _run_then_set(coroutine: Coroutine[Any, Any, T], ended: threading.Event) -> T:
    try:
        return await coroutine
    finally:
        ended.set()


class SyncRunStreamedResult:
    """Iterator over the events of one turn. The first `next` starts the agent.

    Leaving it early (`close()`, the end of a `with`, or dropping the last reference) ends the
    agent and its descendants. It raises the same errors as `RunStreamedResult`.
    """

    def __init__(self, stream: RunStreamedResult) -> None:
        self._stream = stream
        self._loop: Loop | None = None

    @property
    def exit_code(self) -> int | None:
        """The agent's exit status, negative for a signal's number; None until it has ended."""
        return self._stream.exit_code

    @property
    def stderr(self) -> str:
        """The last part of the agent's standard error so far, without secrets."""
        return self._stream.stderr

    def __iter__(self) -> Iterator[ThreadEvent]:
        return self

    def __next__(self) -> ThreadEvent:
        if self._loop is None:
            if self._stream.closed:
                raise StopIteration
            self._loop = Loop()
            weakref.finalize(self, self._loop.stop).atexit = False
        try:
            event = self._loop.run(self._stream.next_event())
        except BaseException:
            self.close()
            raise
        if event is None:
            self.close()
            raise StopIteration
        return event

    def close(self) -> None:
        """End the agent and its descendants, if it still runs; later calls do nothing."""
        loop, self._loop = self._loop, None
        if loop is None:
            self._stream.closed = True
            return
        with loop:
            loop.run(self._stream.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
