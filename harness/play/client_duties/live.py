"""Judging clients while a server serves them: `ClientJudge`.

The server passes it every message as it was on the wire. It never assumes that a client had read a
message before it sent the next: duties judge what holds in any order of delivery.
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

# A client that was asked this long before the end has had the time to answer.
DEFAULT_SETTLE_SECONDS: Final = 1.0


class ClientJudge:
    """Judges the clients of a server, message by message.

    `scenario` and `target` go into the trace's header. For each connection call `open_connection`,
    then `add_client_message` and `add_server_message` for every message, without line ends, then
    `close_connection`; `finish` gives the verdicts, once. An unanswered request of the server is a
    violation if the client had `settle` seconds for it before the connection was closed, or before
    `finish`; `clock` gives seconds. Messages beyond the bounds of one trace (`max_frames`, the
    recorder's bytes) are not judged: `cut_off` says so.
    """

    def __init__(
        self,
        scenario: str,
        target: str = "reference",
        *,
        settle: float = DEFAULT_SETTLE_SECONDS,
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
        self._unanswered: dict[str, dict[Id, Frame]] = defaultdict(dict)
        self._verdicts: list[DutyVerdict] | None = None

    @property
    def trace(self) -> Trace:
        """Return the recorded trace, which can be saved and judged again."""
        return self._recorder.trace

    def open_connection(self, connection: str) -> None:
        """Begin a connection of a client, under a name that is used once."""
        self._unanswered[connection].clear()

    def add_client_message(self, connection: str, raw: bytes) -> None:
        """Record one line or text message of the client."""
        frame = self._record(connection, raw, Direction.TO_TARGET)
        identifier = as_id(frame.id) if frame is not None else None
        if (
            frame is not None
            and frame.kind in (Kind.RESPONSE, Kind.ERROR)
            and identifier is not None
        ):
            self._unanswered[connection].pop(identifier, None)

    def add_server_message(self, connection: str, raw: bytes) -> None:
        """Record one line or text message of the server to the client."""
        frame = self._record(connection, raw, Direction.FROM_TARGET)
        identifier = as_id(frame.id) if frame is not None else None
        if frame is not None and frame.kind is Kind.REQUEST and identifier is not None:
            self._unanswered[connection][identifier] = frame

    def close_connection(self, connection: str) -> None:
        """End a connection, whichever side closed it.

        Requests for which the client had no time are not held against it.
        """
        if not self._had_time(connection):
            self._recorder.mark(Closed(connection))

    def finish(self) -> list[DutyVerdict]:
        """Return the verdict on each duty; later messages are ignored."""
        if self._verdicts is None:
            for connection in list(self._unanswered):
                if not self._had_time(connection):
                    self._recorder.mark(Closed(connection))
            self.trace.end = End.CLOSED if self.cut_off else End.QUIESCENT
            rows = self._judge.finish(self.trace.end)
            self._verdicts = duty_verdicts(self._book, self.trace, self._duties, rows)
        return self._verdicts

    def _had_time(self, connection: str) -> bool:
        """Return whether the client had time to answer all open requests."""
        requests = self._unanswered.pop(connection, {}).values()
        return all(
            self._recorder.elapsed_seconds() - request.at >= self._settle for request in requests
        )

    def _record(self, connection: str, raw: bytes, direction: Direction) -> Frame | None:
        if self.cut_off or self._verdicts is not None:
            return None
        try:
            return self._recorder.record(raw, direction, connection=connection)
        except TraceFull as error:
            self.cut_off = f"what came later was not judged: {error}"
            return None
