"""The record of one trace besides verdicts: the server's choices, the schema of its messages."""

from dataclasses import dataclass, field

from harness.judge.ledger.message_schema import MessageCollector, Messages
from harness.judge.ledger.trace_observer import Sighting, TraceObserver
from harness.protocol.spec.book import Book
from harness.trace import surfaces
from harness.trace.trace import Trace


@dataclass(slots=True)
class Record:
    """The record of one trace. `crashes` are the tracebacks of crashed observers."""

    choices: list[Sighting] = field(default_factory=list[Sighting])
    messages: Messages = field(default_factory=Messages)
    crashes: list[str] = field(default_factory=list[str])


def record_trace(book: Book, trace: Trace) -> Record:
    """Return the record of a trace. Raises `ValueError` for an unknown surface."""
    observing, speech = TraceObserver(book, trace), MessageCollector()
    marks = sorted(trace.marks, key=lambda mark: mark.after)
    position = 0
    for frame in trace.frames:
        while position < len(marks) and marks[position].after < frame.seq:
            observing.feed_mark(marks[position])
            position += 1
        request = observing.feed(frame)
        match trace.header.surface:
            case surfaces.EXEC:
                speech.feed_event(frame)
            case surfaces.COMMAND:
                run = observing.view.run_of(frame)
                if run is not None and run.end is frame:
                    speech.feed_output(run)
            case surfaces.SDK:
                speech.feed_result(frame)
            case _:
                speech.feed(frame, request)
    for mark in marks[position:]:
        observing.feed_mark(mark)
    return Record(observing.finish(), speech.finish(), observing.crashes)
