"""One turn as a stream of events."""

import asyncio
import contextlib
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from agent_sdk import process as processes
from agent_sdk.abort import AbortSignal
from agent_sdk.errors import AgentError, ProcessError, ProtocolError
from agent_sdk.events import (
    ThreadErrorEvent,
    ThreadEvent,
    TurnCompletedEvent,
    TurnFailedEvent,
    parse_line,
)
from agent_sdk.lines import Lines
from agent_sdk.process import Interrupted, Process

_endings: set["asyncio.Task[None]"] = set()
"""Running tasks of `aclose`, referenced here so that they are not garbage-collected."""
MIN_SECRET_CHARACTERS = 4
SHOWN_CHARACTERS = 4_000
"""Maximum number of characters from the end of standard error in the message of an error."""
_CONTROLS = {number: "\ufffd" for number in range(32) if chr(number) not in "\n\t"} | {
    127: "\ufffd"
}


@dataclass(frozen=True, slots=True)
class Launch:
    """Inputs of a stream: the function that starts the agent, an observer that sees each event
    first, secrets to redact, and the signal that aborts the turn, if any.
    """

    start: Callable[[], Awaitable[Process]]
    observe: Callable[[ThreadEvent], None]
    secrets: tuple[str, ...]
    signal: AbortSignal | None


class RunStreamedResult:
    """Asynchronous iterator over the events of one turn. The first `anext` starts the agent.

    Leaving it early (`aclose()`, the end of an `async with`, cancelling the iterating task, or
    dropping the last reference) ends the agent and its descendants. After `turn.completed` or
    `turn.failed` the agent has five seconds to exit by itself.

    Iterating raises AbortError, ProcessError, ProtocolError or AgentNotFoundError, and AgentError
    if another turn of the thread runs. A failed turn raises nothing: its last event is
    `turn.failed` or `error`.
    """

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._process: Process | None = None
        self._lines = Lines()
        self._pending: deque[bytes] = deque()
        self._last: ThreadEvent | None = None
        self._begun = False
        self.closed = False
        """True once no more events will be returned."""
        self._advancing = False
        self._unsubscribe: Callable[[], None] = _do_nothing
        self._exited = False
        self._ending: asyncio.Task[None] | None = None

    @property
    def active(self) -> bool:
        """Return whether iteration has begun, and has neither ended nor been closed."""
        return self._begun and not self.closed

    @property
    def exit_code(self) -> int | None:
        """The agent's exit status, negative for a signal's number; None until it has ended."""
        return None if self._process is None else self._process.exit_status

    @property
    def stderr(self) -> str:
        """The last part of the agent's standard error so far, without secrets."""
        if self._process is None:
            return ""
        data, cut = self._process.errors()
        text = redact(data.decode("utf-8", "replace"), self._launch.secrets)
        # The first line may begin in the middle of a secret, which `redact` would not see.
        return text.partition("\n")[2] or text[256:] if cut else text

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ThreadEvent:
        event = await self.next_event()
        if event is None:
            raise StopAsyncIteration
        return event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def next_event(self) -> ThreadEvent | None:
        """Return the next event, None after the last one. An error closes the stream."""
        if self.closed:
            return None
        if self._advancing:
            raise AgentError("two tasks iterate over one stream")
        self._advancing = self._begun = True
        try:
            event = await self._advance(self._process or await self._start())
        except BaseException:
            self._advancing = False
            await self.aclose()
            raise
        self._advancing = False
        if event is None:
            self.closed = True
            self._unsubscribe()
        return event

    async def _start(self) -> Process:
        signal = self._launch.signal
        if signal is not None:
            signal.raise_if_aborted()
        process = self._process = await self._launch.start()
        if signal is not None:
            self._unsubscribe = signal.subscribe(_interrupter(signal, process))
        weakref.finalize(self, _abandon, process, self._unsubscribe).atexit = False
        return process

    async def _advance(self, process: Process) -> ThreadEvent | None:
        try:
            while True:
                if event := self._pop_event(process):
                    return event
                if process.done:
                    return self._check_exit(process)
                if data := await process.read():
                    self._pending += self._lines.feed(data)
                else:
                    await self._at_end(process)
        except Interrupted:
            # The turn has ended, but the agent did not exit in time.
            await process.end()
            return None

    def _pop_event(self, process: Process) -> ThreadEvent | None:
        """Return the next event of the pending lines, None if there is none."""
        while self._pending:
            try:
                event = parse_line(self._pending.popleft())
            except ProtocolError as error:
                secrets = self._launch.secrets
                text, line = redact(str(error), secrets), redact(error.line, secrets)
                raise ProtocolError(text, line) from None
            if event is None:
                continue
            self._last = event
            if isinstance(event, TurnCompletedEvent | TurnFailedEvent):
                process.end_turn()
            self._launch.observe(event)
            return event
        return None

    async def _at_end(self, process: Process) -> None:
        """Wait for the exit, reap the agent, and keep a last line without a line feed."""
        self._exited = await process.exits_within(processes.LINGER_SECONDS)
        await process.finish()
        rest = self._lines.rest()
        # After a crash, ignore a cut-off line: the ProcessError says more than a ProtocolError.
        if (self._exited and process.exit_status == 0) or _is_event(rest):
            self._pending.append(rest)

    def _check_exit(self, process: Process) -> None:
        """Return if the exit of the agent is a proper end of the stream, else raise an error."""
        if process.turn_ended:
            return
        if self._launch.signal is not None:
            self._launch.signal.raise_if_aborted()
        status = process.exit_status
        # A fatal error: the agent reports it as its last event, then exits.
        if isinstance(self._last, ThreadErrorEvent) and status is not None and status >= 0:
            return
        raise self._process_error(status)

    def _process_error(self, status: int | None) -> ProcessError:
        if not self._exited:
            how = "closed its output before its turn had ended, and was ended"
        elif status is not None and status < 0:
            how = f"was ended by signal {-status}"
        else:
            how = f"exited with status {status} before its turn had ended"
        output = self.stderr.strip()
        if isinstance(self._last, ThreadErrorEvent):
            output = f"{redact(self._last.message, self._launch.secrets)}\n{output}".strip()
        by_signal = status is not None and status < 0
        return ProcessError(
            f"the agent {how}" + (f": {_excerpt(output)}" if output else ""),
            exit_code=None if by_signal else status,
            signal=-status if by_signal and status is not None else None,
            stderr=self.stderr,
        )

    async def aclose(self) -> None:
        """End the agent and its descendants, if it still runs; later calls do nothing.

        The agent is ended even if the task that calls this is cancelled.
        """
        self.closed = True
        self._unsubscribe()
        if self._process is None or self._process.done:
            return
        if self._ending is None:
            self._ending = asyncio.create_task(self._process.end())
            _endings.add(self._ending)
            self._ending.add_done_callback(_endings.discard)
        await asyncio.shield(self._ending)


def _is_event(line: bytes) -> bool:
    try:
        return parse_line(line) is not None
    except ProtocolError:
        return False


def _abandon(process: Process, unsubscribe: Callable[[], None]) -> None:
    unsubscribe()
    process.abandon()


def _do_nothing() -> None:
    pass


def _interrupter(signal: AbortSignal, process: Process) -> Callable[[], None]:
    """Return the callback of an abort; it holds no reference that keeps the stream alive."""
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        with contextlib.suppress(RuntimeError):  # the loop may be closed
            loop.call_soon_threadsafe(process.interrupt, signal.error())

    return interrupt


def _excerpt(text: str) -> str:
    """Return the last SHOWN_CHARACTERS of a text, with control characters replaced."""
    cut = text if len(text) <= SHOWN_CHARACTERS else f"…{text[-SHOWN_CHARACTERS:]}"
    return cut.translate(_CONTROLS)


def redact(text: str, secrets: Iterable[str]) -> str:
    """Replace secrets by "[API key]", except for very short ones, which would garble the text."""
    for secret in secrets:
        if len(secret) >= MIN_SECRET_CHARACTERS:
            text = text.replace(secret, "[API key]")
    return text
