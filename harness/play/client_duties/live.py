"""Verdicts on clients while a server serves them.

The server passes in every message as it was on the wire. The judge never assumes that a client had
read a message before it sent the next: duties hold in any order of delivery.
"""

import time
from collections.abc import Callable, Sequence

from harness.judge.judge import Judge
from harness.judge.rules.discovery import client_rules
from harness.play.client_duties.verdicts import (
    DutyVerdict,
    KnownFinding,
    duty_verdicts,
    mark_known,
)
from harness.protocol.spec.loading import load_book
from harness.trace.frame import Direction
from harness.trace.marks import ClientLeft, Closed
from harness.trace.recorder import MAX_TRACE_FRAMES, Recorder, TraceFull
from harness.trace.trace import End, Header, Trace


class ClientJudge:
    """Judge of a server's clients, fed message by message.

    `scenario` and `target` go into the trace's header. For each connection call `open_connection`,
    then `add_client_message` and `add_server_message` for every message, without line ends, then
    `close_connection`; `finish` returns the verdicts, once. An unanswered request of the server is
    a violation if the client had a second for it before the connection was closed, or before
    `finish`; `clock` returns seconds. Messages beyond the bounds of one trace (`max_frames`, the
    recorder's bytes) are not judged: `cut_off` says so. `known_findings` do not count.
    """

    def __init__(
        self,
        scenario: str,
        target: str = "reference",
        *,
        clock: Callable[[], float] = time.monotonic,
        max_frames: int = MAX_TRACE_FRAMES,
        known_findings: Sequence[KnownFinding] = (),
    ) -> None:
        self.cut_off = ""
        self._known = known_findings
        self._recorder = Recorder(
            Header(target=target, scenario=scenario), clock=clock, max_frames=max_frames
        )
        self._book = load_book()
        self._duties = tuple(client_rules().values())
        self._judge = Judge(self._book, self._recorder.trace, self._duties)
        self._recorder.listeners.append(self._judge.feed)
        self._recorder.mark_listeners.append(self._judge.feed_mark)
        self._open_connections: set[str] = set()
        self._verdicts: list[DutyVerdict] | None = None

    @property
    def trace(self) -> Trace:
        """Return the recorded trace, which can be saved and judged again."""
        return self._recorder.trace

    def open_connection(self, connection: str) -> None:
        """Begin a connection of a client; each name may be used once."""
        self._open_connections.add(connection)

    def add_client_message(self, connection: str, raw: bytes) -> None:
        """Record one line or text message of the client."""
        self._record(connection, raw, Direction.TO_TARGET)

    def add_server_message(self, connection: str, raw: bytes) -> None:
        """Record one line or text message of the server to the client."""
        self._record(connection, raw, Direction.FROM_TARGET)

    def close_connection(self, connection: str) -> None:
        """End a connection, whichever side closes it; call it before the server cleans up.

        A request that the client had no time to answer is no violation. Idempotent.
        """
        if connection not in self._open_connections:
            return
        self._open_connections.discard(connection)
        if not self.cut_off:
            self._recorder.mark(ClientLeft(connection))
        self._recorder.mark(Closed(connection))

    def finish(self) -> list[DutyVerdict]:
        """Return the verdict on each duty; later messages are ignored."""
        if self._verdicts is None:
            for connection in sorted(self._open_connections):
                self.close_connection(connection)
            self.trace.end = End.CLOSED if self.cut_off else End.QUIESCENT
            rows = mark_known(self._judge.finish(self.trace.end), self._known)
            self._verdicts = duty_verdicts(self._book, self.trace, self._duties, rows)
        return self._verdicts

    def _record(self, connection: str, raw: bytes, direction: Direction) -> None:
        if self.cut_off or self._verdicts is not None:
            return
        try:
            self._recorder.record(raw, direction, connection=connection)
        except TraceFull as error:
            self.cut_off = f"what came later was not judged: {error}"
