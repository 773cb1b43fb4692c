"""The record of one trace beside verdicts: the choices in it, and the messages spoken."""

from dataclasses import dataclass, field

from harness.judge.ledger.observing import Observing, Sighting
from harness.judge.ledger.spoken import Messages, Speech
from harness.protocol.spec.book import Book
from harness.trace import surfaces
from harness.trace.trace import Trace


@dataclass(slots=True)
class Record:
    """The record of one trace. `broken` are the stories of observers that crashed."""

    choices: list[Sighting] = field(default_factory=list[Sighting])
    spoken: Messages = field(default_factory=Messages)
    broken: list[str] = field(default_factory=list[str])


def recorded(book: Book, trace: Trace) -> Record:
    """The record of a trace, of whichever surface."""
    observing, speech = Observing(book, trace), Speech()
    marks = sorted(trace.marks, key=lambda mark: mark.after)
    position = 0
    for frame in trace.frames:
        while position < len(marks) and marks[position].after < frame.seq:
            observing.feed_mark(marks[position])
            position += 1
        asked = observing.feed(frame)
        match trace.header.surface:
            case surfaces.EXEC:
                speech.event(frame)
            case surfaces.COMMAND:
                run = observing.view.of(frame)
                if run is not None and run.ended is frame:
                    speech.output(run)
            case surfaces.SDK:
                speech.result(frame)
            case _:
                speech.feed(frame, asked)
    for mark in marks[position:]:
        observing.feed_mark(mark)
    return Record(observing.finish(), speech.finish(), observing.broken)
