"""Judging clients while a server serves them: `ClientJudge`.

A server tells it every message as it was on the wire. That a client had read a message before it
sent the next is never assumed: duties judge what holds in any order of delivery.
"""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from harness.judge.judge import Judge
from harness.judge.rules.discovery import client_rules
from harness.play.client_duties.verdicts import DutyVerdict, duty_verdicts
from harness.protocol.spec.loading import load_book
from harness.trace.correlation import Id, as_id
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import Closed
from harness.trace.recorder import MAX_TRACE_FRAMES, Recorder, TraceFull
from harness.trace.trace import End, Header, Trace

# A client that was asked so many seconds before the end has had the time to answer.
SETTLE: Final = 1.0


class ClientJudge:
    """Judges the clients of a server, message by message.

    `scenario` and `target` stand in the trace's header. Of each connection say `opened`, then every
    message that came and went, without line ends, then `closed`; `finish` gives the verdicts, once.
    A request of the server that no answer came to is held against the client where it had `settle`
    seconds for it before the connection was closed, or before `finish`; `clock` gives seconds.

    What comes beyond the bounds of one trace (`max_frames` messages, the recorder's bytes) is not
    judged: `cut_off` says so.
    """

    def __init__(
        self,
        scenario: str,
        target: str = "reference",
        *,
        settle: float = SETTLE,
        clock: Callable[[], float] = time.monotonic,
        max_frames: int = MAX_TRACE_FRAMES,
    ) -> None:
        self.cut_off = ""
        self._settle = settle
        self._recorder = Recorder(
            Header(target=target, scenario=scenario), clock=clock, max_frames=max_frames
        )
        self._book = load_book()
        self._duties = tuple(client_rules().values())
        self._judge = Judge(self._book, self._recorder.trace, self._duties)
        self._recorder.listeners.append(self._judge.feed)
        self._recorder.mark_listeners.append(self._judge.feed_mark)
        self._open: dict[str, dict[Id, Frame]] = defaultdict(dict)
        self._done: list[DutyVerdict] | None = None

    @property
    def trace(self) -> Trace:
        """Return the recorded trace, which can be saved and judged again."""
        return self._recorder.trace

    def opened(self, connection: str) -> None:
        """A client has connected; the name of a connection is used once."""
        self._open[connection].clear()

    def client_sent(self, connection: str, raw: bytes) -> None:
        """The client has sent one line or text message."""
        frame = self._record(connection, raw, Direction.TO_TARGET)
        identifier = as_id(frame.id) if frame is not None else None
        if (
            frame is not None
            and frame.kind in (Kind.RESPONSE, Kind.ERROR)
            and identifier is not None
        ):
            self._open[connection].pop(identifier, None)

    def server_sent(self, connection: str, raw: bytes) -> None:
        """The server has sent one line or text message to the client."""
        frame = self._record(connection, raw, Direction.FROM_TARGET)
        identifier = as_id(frame.id) if frame is not None else None
        if frame is not None and frame.kind is Kind.REQUEST and identifier is not None:
            self._open[connection][identifier] = frame

    def closed(self, connection: str) -> None:
        """The connection has ended, on whichever side.

        What the client had no time to answer is not owed any more.
        """
        if not self._had_time(connection):
            self._recorder.mark(Closed(connection))

    def finish(self) -> list[DutyVerdict]:
        """The verdict on each duty; nothing is taken in afterwards."""
        if self._done is None:
            for connection in list(self._open):
                if not self._had_time(connection):
                    self._recorder.mark(Closed(connection))
            self.trace.end = End.CLOSED if self.cut_off else End.QUIESCENT
            rows = self._judge.finish(self.trace.end)
            self._done = duty_verdicts(self._book, self.trace, self._duties, rows)
        return self._done

    def _had_time(self, connection: str) -> bool:
        """Return whether the client could have answered all that it had been asked."""
        asked = self._open.pop(connection, {}).values()
        return all(self._recorder.now() - one.at >= self._settle for one in asked)

    def _record(self, connection: str, raw: bytes, direction: Direction) -> Frame | None:
        if self.cut_off or self._done is not None:
            return None
        try:
            return self._recorder.record(raw, direction, connection=connection)
        except TraceFull as error:
            self.cut_off = f"what came later was not judged: {error}"
            return None
