"""A bench that inserts one fault at a time between the server and the client."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import anyio

from harness.client.target.profile import Bounds
from harness.client.transport.base import Transport
from harness.faults.base import Fault
from harness.faults.live.fault import FaultActed, FaultGaveUp, LiveFault
from harness.faults.live.transport import FaultyTransport
from harness.judge.base import Monitor
from harness.judge.judge import feed_trace
from harness.judge.rows import CRASH_SUBJECT
from harness.judge.verdict import Row, Verdict
from harness.play.bench import Bench
from harness.play.run import Run
from harness.protocol.spec.book import Book
from harness.scenario.loader import Loaded
from harness.scenario.player import StepFailure
from harness.trace.frame import Frame
from harness.trace.marks import MarkBody
from harness.trace.recorder import Recorder
from harness.trace.trace import End, Mark

# Seconds of silence after which a fault passes on messages that it held back. The message that it
# waits for comes, if at all, with the rest of a scripted answer.
QUIET_SECONDS = 0.3


@dataclass(slots=True)
class FaultAtWork:
    """A fault at work in one scenario, and its effects.

    `before` is the number of violations of the rule in the scenario without the fault; `is_noticed`
    is set once the rule has more. `changes` and `awaited` are words for people.
    """

    fault: Fault
    rule: type[Monitor]
    scenario: str
    bounds: Bounds
    before: int = 0
    changes: list[str] = field(default_factory=list[str])
    awaited: str = ""
    is_noticed: bool = False

    def tell(self, event: FaultActed | FaultGaveUp) -> None:
        """Record the changes of the fault, or the message that it waited for without success."""
        if isinstance(event, FaultActed):
            self.changes += event.words
        elif event.missing:
            self.awaited = event.missing


class FaultyBench(Bench):
    """A bench that plays the scenario of `at_work` with its fault."""

    at_work: FaultAtWork | None = None

    async def _play(
        self, loaded: Loaded, *, bounds: Bounds | None = None, ending: Bounds | None = None
    ) -> Run:
        """Play a scenario; only the one of `at_work` has the fault, not sanity turns or others."""
        work = self.at_work
        if work is None or loaded.id != work.scenario:
            return await super()._play(loaded, bounds=bounds, ending=ending)
        between = FaultInsertion(work)
        try:
            await between.put(self)
            async with self.conversation_of(loaded, ending=work.bounds) as stage:
                watch = _Watch(self.book, stage.recorder, work)
                player = self.player(loaded, stage, bounds=work.bounds)
                stage.unmet = await watch.until_noticed(player.play)
            return stage.run
        finally:
            await between.remove(self)


class FaultInsertion:
    """Insertion of one fault into every connection of a conversation, from its beginning."""

    def __init__(self, work: FaultAtWork) -> None:
        self._work = work
        self._active = True

    async def put(self, bench: FaultyBench) -> None:
        """Insert the fault into the connections of the running server and of later ones."""
        bench.servers.wrap_transport = self._wrap_transport
        for transport in _faulty(bench):
            await transport.exchange(self._live())

    async def remove(self, bench: FaultyBench) -> None:
        """Remove the fault; the connections continue without it."""
        self._active = False
        for transport in _faulty(bench):
            await transport.exchange(None)

    def _wrap_transport(self, transport: Transport) -> Transport:
        return FaultyTransport(
            transport, self._live() if self._active else None, quiet_seconds=QUIET_SECONDS
        )

    def _live(self) -> LiveFault:
        return LiveFault(self._work.fault, report=self._work.tell)


def _faulty(bench: FaultyBench) -> list[FaultyTransport]:
    server = bench.servers.current
    transport = server.peer.transport if server is not None else None
    return [transport] if isinstance(transport, FaultyTransport) else []


class _Watch:
    """Judge of a running conversation with only the fault's rule."""

    def __init__(self, book: Book, recorder: Recorder, work: FaultAtWork) -> None:
        self._work = work
        self._scope = anyio.CancelScope()
        # The trace already has the handshake of a fresh process.
        self._judge = feed_trace(book, recorder.trace, [work.rule])
        recorder.listeners.append(self._feed)
        recorder.mark_listeners.append(self._feed_mark)
        self._look()

    async def until_noticed(
        self, play: Callable[[], Awaitable[StepFailure | None]]
    ) -> StepFailure | None:
        """Play until the rule notices the fault; None if it did, else the result of `play`."""
        with self._scope:
            return await play()
        return None

    def _feed(self, frame: Frame) -> None:
        self._judge.feed(frame)
        self._look()

    def _feed_mark(self, mark: Mark[MarkBody]) -> None:
        self._judge.feed_mark(mark)
        self._look()

    def _look(self) -> None:
        if (
            not self._work.is_noticed
            and violation_count(self._judge.finish(End.CLOSED)) > self._work.before
        ):
            self._work.is_noticed = True
            self._scope.cancel()


def violation_count(rows: Sequence[Row]) -> int:
    """Return the number of violations and errors, not counting a crash of the rule."""
    return sum(
        row.verdict in (Verdict.FAIL, Verdict.ERROR) and row.subject != CRASH_SUBJECT
        for row in rows
    )
