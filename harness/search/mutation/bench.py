"""A bench on which one fault at a time is at work between the server and the client."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import anyio

from harness.client.target.profile import Bounds
from harness.client.transport.base import Transport
from harness.faults.base import Fault
from harness.faults.live.fault import Acted, LetGo, LiveFault
from harness.faults.live.transport import FaultyTransport
from harness.judge.base import Monitor
from harness.judge.judge import judged
from harness.judge.rows import BROKEN
from harness.judge.verdict import Row, Verdict
from harness.play.bench import Bench
from harness.play.run import Run
from harness.protocol.spec.book import Book
from harness.scenario.loader import Loaded
from harness.scenario.player import Unmet
from harness.trace.frame import Frame
from harness.trace.marks import MarkBody
from harness.trace.recorder import Recorder
from harness.trace.trace import End, Mark

# Silence in seconds after which what a fault holds back goes on. What it waits for comes, if at
# all, with the rest of a scripted answer.
QUIET = 0.3


@dataclass(slots=True)
class AtWork:
    """A fault that is at work in one scenario, and what it did.

    `before` is how many violations of the rule the scenario has without the fault.
    """

    fault: Fault
    rule: type[Monitor]
    scenario: str
    bounds: Bounds
    before: int = 0
    changed: list[str] = field(default_factory=list[str])
    missing: str = ""
    known: bool = False

    def tell(self, event: Acted | LetGo) -> None:
        """Note what the fault did, or waited for in vain."""
        if isinstance(event, Acted):
            self.changed += event.words
        elif event.missing:
            self.missing = event.missing


class FaultyBench(Bench):
    """A bench; with `at_work` set the scenario of that id is played with the fault at work."""

    at_work: AtWork | None = None

    async def _play(
        self, loaded: Loaded, *, bounds: Bounds | None = None, ending: Bounds | None = None
    ) -> Run:
        """Play a scenario, the sanity turn and others than that of the fault without it."""
        work = self.at_work
        if work is None or loaded.id != work.scenario:
            return await super()._play(loaded, bounds=bounds, ending=ending)
        between = Between(work)
        try:
            await between.put(self)
            async with self.conversation_of(loaded, ending=work.bounds) as stage:
                watch = _Watch(self.book, stage.recorder, work)
                player = self.player(loaded, stage, bounds=work.bounds)
                stage.unmet = await watch.until_known(player.play)
            return stage.run
        finally:
            await between.remove(self)


class Between:
    """One fault on every connection of a conversation, on each from its beginning."""

    def __init__(self, work: AtWork) -> None:
        self._work = work
        self._active = True

    async def put(self, bench: FaultyBench) -> None:
        """Put it between the client and the server that runs, and those that will be started."""
        bench.servers.between = self._wrapped
        for transport in _faulty(bench):
            await transport.exchange(self._live())

    async def remove(self, bench: FaultyBench) -> None:
        """Take it out again; the connections go on without it."""
        self._active = False
        for transport in _faulty(bench):
            await transport.exchange(None)

    def _wrapped(self, transport: Transport) -> Transport:
        return FaultyTransport(transport, self._live() if self._active else None, quiet=QUIET)

    def _live(self) -> LiveFault:
        return LiveFault(self._work.fault, tell=self._work.tell)


def _faulty(bench: FaultyBench) -> list[FaultyTransport]:
    server = bench.servers.current
    transport = server.peer.transport if server is not None else None
    return [transport] if isinstance(transport, FaultyTransport) else []


class _Watch:
    """Judges a conversation as it goes on, by the rule of the fault alone."""

    def __init__(self, book: Book, recorder: Recorder, work: AtWork) -> None:
        self._work = work
        self._scope = anyio.CancelScope()
        # What the handshake of a fresh process left is there already.
        self._judge = judged(book, recorder.trace, [work.rule])
        recorder.listeners.append(self._feed)
        recorder.mark_listeners.append(self._feed_mark)
        self._look()

    async def until_known(self, play: Callable[[], Awaitable[Unmet | None]]) -> Unmet | None:
        """Play, until the rule has spoken."""
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
        if not self._work.known and broken(self._judge.finish(End.CLOSED)) > self._work.before:
            self._work.known = True
            self._scope.cancel()


def broken(rows: Sequence[Row]) -> int:
    """Return the number of violations."""
    return sum(
        row.verdict in (Verdict.FAIL, Verdict.ERROR) and row.subject != BROKEN for row in rows
    )
