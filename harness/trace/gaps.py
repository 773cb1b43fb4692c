"""Silences in a trace, each with the work or answer that was outstanding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from harness.protocol.values import dig, text
from harness.trace.connection_ledgers import ConnectionLedgers
from harness.trace.frame import Frame
from harness.trace.marks import MarkBody, ModelCall, ModelEnd, ProgramEnded, ProgramStarted
from harness.trace.obligations import ObligationKind
from harness.trace.trace import Mark, Trace

MIN_GAP_SECONDS: Final = 1.0
MAX_CAUSES_NAMED: Final = 3

Event = Frame | Mark[MarkBody]


@dataclass(frozen=True, slots=True)
class Gap:
    """A silence: its beginning in seconds, its length, and the message or event that ended it."""

    at: float
    seconds: float
    waiting_for: str
    end: Event

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s: waiting for {self.waiting_for}"


def events_of(trace: Trace) -> Iterator[Event]:
    """Yield the messages and marks of a trace in their order."""
    marks = sorted(trace.marks, key=lambda mark: mark.after)
    position = 0
    for frame in trace.frames:
        while position < len(marks) and marks[position].after < frame.seq:
            yield marks[position]
            position += 1
        yield frame
    yield from marks[position:]


def find_gaps(trace: Trace) -> list[Gap]:
    """Return the silences of at least `MIN_GAP_SECONDS`."""
    gaps: list[Gap] = []
    state = _Outstanding()
    last: Event | None = None
    for event in events_of(trace):
        if last is not None and event.at - last.at >= MIN_GAP_SECONDS:
            gaps.append(Gap(last.at, event.at - last.at, state.describe(), event))
        state.feed(event)
        last = event
    return gaps


class _Outstanding:
    """Questions, model calls, answers, items, turns and programs that are outstanding."""

    def __init__(self) -> None:
        self._ledgers = ConnectionLedgers()
        self._model_calls: list[int] = []
        self._programs: set[str] = set()

    def feed(self, event: Event) -> None:
        """Record the next message or mark."""
        if isinstance(event, Frame):
            self._ledgers.feed(event)
            return
        self._ledgers.feed_mark(event)
        match event.body:
            case ModelCall(call=call):
                self._model_calls.append(call)
            case ModelEnd(call=call) if call in self._model_calls:
                self._model_calls.remove(call)
            case ProgramStarted(connection=connection):
                self._programs.add(connection)
            case ProgramEnded(connection=connection):
                self._programs.discard(connection)
            case _:
                pass

    def describe(self) -> str:
        """Return the outstanding things in words; "the client" if there are none."""
        causes = self._direct_causes() or self._running_work() or ["the client"]
        more = len(causes) - MAX_CAUSES_NAMED
        words = ", and ".join(causes[:MAX_CAUSES_NAMED])
        return f"{words}, and {more} more" if more > 0 else words

    def _direct_causes(self) -> Sequence[str]:
        questions = [
            f"the client to answer {frame.method} (#{frame.seq})"
            for frame in self._ledgers.unanswered_questions
        ]
        calls = [f"the model (call {call})" if call else "the model" for call in self._model_calls]
        answers = [
            f"the server to answer {item.frame.method} (#{item.frame.seq})"
            for item in self._ledgers.open_obligations(ObligationKind.ANSWER)
        ]
        return [*questions, *calls, *answers]

    def _running_work(self) -> Sequence[str]:
        items = [
            f"the {text(dig(item.frame.params, 'item', 'type')) or 'item'} "
            f"{text(dig(item.frame.params, 'item', 'id'))} (#{item.frame.seq})"
            for item in self._ledgers.open_obligations(ObligationKind.ITEM_COMPLETED)
        ]
        turns = [
            f"the server to end {item.subject}"
            for item in self._ledgers.open_obligations(ObligationKind.TURN_COMPLETED)
        ]
        programs = ["the program"] if self._programs else []
        return items or turns or programs
