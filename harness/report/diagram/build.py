"""The diagram of a stored trace and its findings.

Deltas of one item in a row are one row, unless a finding points at one of them.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from harness.judge.verdict import Row as JudgedRow
from harness.protocol.escapes import visible_lines
from harness.protocol.values import dig, obj, text
from harness.report.diagram import labels
from harness.report.diagram.columns import MODEL, SERVER, Columns, columns_of
from harness.report.diagram.findings import (
    MissingMessage,
    PlacedFindings,
    name_of,
    place_findings,
)
from harness.report.diagram.model import (
    Diagram,
    Folded,
    Message,
    MessageKind,
    Missing,
    Note,
    NoteKind,
    Row,
    Silence,
)
from harness.report.results.outcome import Finding
from harness.trace.correlation import Correlation
from harness.trace.frame import Direction, Frame
from harness.trace.gaps import Event, Gap, events_of, find_gaps
from harness.trace.marks import MarkBody, ModelCall, ModelEnd
from harness.trace.mcp_marks import McpAnswer, McpRequest
from harness.trace.surfaces import SESSION
from harness.trace.trace import Mark, StderrLine, Trace

# Fewer deltas in a row are drawn one by one.
MIN_FOLDED_DELTAS: Final = 3
MAX_STDERR_LINES: Final = 8
_MAX_TEXT_CHARACTERS: Final = 400
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")


def build_diagram(
    trace: Trace,
    findings: Iterable[JudgedRow | Finding] = (),
    *,
    frames: Sequence[Frame] | None = None,
    gaps: Sequence[Gap] | None = None,
    shows_mark: Callable[[Mark[Any]], bool] = lambda _: True,
    stderr: str = "",
    title: str = "",
) -> Diagram:
    """Return a trace as a diagram, with the violations among `findings`.

    `frames` and `gaps` are the chosen messages and silences, all by default; findings on messages
    that are not chosen are left out. `stderr` is the end of what the server wrote there.
    """
    return _Builder(trace, findings, frames, gaps, shows_mark).build(stderr, title)


class _Builder:
    def __init__(
        self,
        trace: Trace,
        findings: Iterable[JudgedRow | Finding],
        frames: Sequence[Frame] | None,
        gaps: Sequence[Gap] | None,
        shows_mark: Callable[[Mark[Any]], bool],
    ) -> None:
        self._trace = trace
        self._is_whole = frames is None or len(frames) == len(trace.frames)
        self._chosen = {frame.seq for frame in (trace.frames if frames is None else frames)}
        self._gaps = find_gaps(trace) if gaps is None else gaps
        self._pairs = Correlation(trace.frames)
        self._placed: PlacedFindings = place_findings(trace, findings)
        self._marks = [mark for mark in trace.marks if shows_mark(mark)]
        shown = [frame for frame in trace.frames if frame.seq in self._chosen]
        self._columns: Columns = columns_of(trace, shown, self._marks)
        self._tool_of_request: dict[int, str] = {}
        self._last_connection: dict[str, str] = {}
        turns = {text(dig(frame.params, "turn", "id")) for frame in trace.frames}
        self._has_several_turns = len(turns - {""}) > 1

    def build(self, stderr: str, title: str) -> Diagram:
        rows = tuple(_fold(self._rows(), self._trace))
        end = max((row.time for row in rows), default=0.0)
        last = [*self._missing_rows(None, end), *self._last_notes(end, stderr)]
        title = title or self._trace.header.scenario or "conversation"
        return Diagram(labels.shorten(title), self._columns.participants, (*rows, *last))

    def _rows(self) -> Iterator[Row]:
        gaps = {id(gap.end): gap for gap in self._gaps}
        marks = {id(mark) for mark in self._marks}
        stderr = deque(self._trace.stderr if self._is_whole else ())
        for event in events_of(self._trace):
            yield from _stderr_notes(_lines_before(event, stderr))
            gap = gaps.get(id(event))
            if gap is not None:
                waiting_for = labels.shorten(gap.waiting_for, labels.MAX_NOTE_CHARACTERS)
                yield Silence(time=gap.at, seconds=gap.seconds, waiting_for=waiting_for)
            if isinstance(event, Frame):
                if event.seq in self._chosen:
                    yield from self._connection_note(event)
                    yield from self._missing_rows(event.seq, event.at)
                    yield self._message(event)
            elif id(event) in marks:
                yield from self._mark_rows(event)
        yield from _stderr_notes(list(stderr))

    def _message(self, frame: Frame) -> Message:
        marks = tuple(self._placed.by_frame.get(frame.seq, ()))
        source, target = self._ends(frame)
        request = self._pairs.request_of(frame)
        return Message(
            time=frame.at,
            source=source,
            target=target,
            label=labels.frame_label(frame, request, names_turns=self._has_several_turns),
            kind=labels.KIND_OF_FRAME[frame.kind],
            detail=labels.frame_detail(frame, [mark.path for mark in marks if mark.path]),
            marks=marks,
            frame=frame.seq,
            answers=None if request is None else request.seq,
        )

    def _ends(self, frame: Frame) -> tuple[str, str]:
        return self._columns.ends_of(frame, sent=frame.direction is Direction.TO_TARGET)

    def _connection_note(self, frame: Frame) -> Iterator[Note]:
        """Yield a note if another connection begins in a column."""
        column = self._ends(frame)[frame.direction is Direction.FROM_TARGET]
        former = self._last_connection.get(column)
        self._last_connection[column] = frame.connection
        is_session = self._trace.header.surface == SESSION  # A program has a note when it starts.
        if is_session and former not in (None, frame.connection):
            words = labels.shorten(f"connection {frame.connection} begins")
            yield Note(time=frame.at, kind=NoteKind.PROCESS, text=words, over=(column,))

    def _mark_rows(self, mark: Mark[MarkBody]) -> Iterator[Row]:
        body, at = mark.body, mark.at
        detail = ""
        if isinstance(body, ModelCall | ModelEnd | McpRequest | McpAnswer):
            detail = labels.mark_detail(body)
        match body:
            case ModelCall():
                kind, label = MessageKind.REQUEST, labels.call_label(body)
                ends = SERVER, MODEL
            case ModelEnd():
                kind = MessageKind.RESPONSE if body.is_complete else MessageKind.ERROR
                label, ends = labels.call_end_label(body), (MODEL, SERVER)
            case McpRequest():
                tool = self._tool_of_request[body.number] = self._columns.tools[body.server]
                is_request = not body.method.startswith("notifications/")
                kind = MessageKind.REQUEST if is_request else MessageKind.NOTIFICATION
                label = labels.tool_label(body)
                ends = SERVER, tool
            case McpAnswer():
                failed = body.failed or body.refused
                kind = MessageKind.ERROR if failed else MessageKind.RESPONSE
                tool = self._tool_of_request.get(body.number, "tool1")
                label, ends = labels.tool_answer_label(body), (tool, SERVER)
            case _:
                note = labels.note_of(body)
                if note is not None:
                    over = self._participants_of(mark, note[0])
                    yield Note(time=at, kind=note[0], text=note[1], over=over)
                return
        source, target = ends
        yield Message(time=at, source=source, target=target, label=label, kind=kind, detail=detail)

    def _participants_of(self, mark: Mark[MarkBody], kind: NoteKind) -> tuple[str, ...]:
        """Return the participants that an event is about; none for all."""
        names = {participant.id for participant in self._columns.participants}
        if kind is NoteKind.GATE and MODEL in names:
            return (MODEL,)
        connection = mark.body.connection_id
        if connection is not None and self._trace.header.surface == SESSION:
            return (self._columns.clients.get(connection, "client"),)
        return (SERVER,) if kind in (NoteKind.PROCESS, NoteKind.STDERR) else ()

    def _missing_rows(self, before: int | None, at: float) -> Iterator[Missing]:
        for owed in self._placed.missing:
            if owed.before == before and owed.because.seq in self._chosen:
                yield self._missing_row(owed, at)

    def _missing_row(self, owed: MissingMessage, at: float) -> Missing:
        source, target = self._ends(owed.because)
        if owed.is_answer:
            source, target = target, source
        elif source != SERVER:
            source, target = SERVER, source
        return Missing(
            time=at,
            source=source,
            target=target,
            label=owed.label,
            because=owed.because.seq,
            marks=owed.marks,
        )

    def _last_notes(self, at: float, stderr: str) -> Iterator[Note]:
        if not self._trace.stderr:
            tail = stderr.strip().splitlines()[-MAX_STDERR_LINES:]
            yield from _stderr_notes([StderrLine(at, -1, line) for line in tail])
        if not self._is_whole:
            return
        for mark in self._placed.others:
            yield Note(time=at, kind=NoteKind.FINDING, text=mark.text, marks=(mark,))
        yield Note(time=at, kind=NoteKind.END, text=f"end: {self._trace.end}")


def _lines_before(event: Event, stderr: deque[StderrLine]) -> list[StderrLine]:
    """Take the lines that the server wrote before an event."""
    lines: list[StderrLine] = []
    while stderr:
        if isinstance(event, Frame):
            is_before = stderr[0].after < event.seq
        else:
            is_before = (stderr[0].after, stderr[0].at) < (event.after, event.at)
        if not is_before:
            break
        lines.append(stderr.popleft())
    return lines


def _stderr_notes(lines: Sequence[StderrLine]) -> Iterator[Note]:
    """Yield a note for each line, or one for many lines in a row, whose last one it shows.

    Colours are left out: many programs log with them where nobody looks.
    """
    lines = [line._replace(text=_COLOUR.sub("", line.text)) for line in lines]
    if len(lines) <= MAX_STDERR_LINES:
        for line in lines:
            words = labels.shorten(line.text, labels.MAX_NOTE_CHARACTERS)
            yield Note(time=line.at, kind=NoteKind.STDERR, text=words, over=(SERVER,))
        return
    words = labels.shorten(
        f"{len(lines)} lines, the last: {lines[-1].text}", labels.MAX_NOTE_CHARACTERS
    )
    whole = visible_lines("\n".join(line.text for line in lines))
    yield Note(time=lines[-1].at, kind=NoteKind.STDERR, text=words, over=(SERVER,), detail=whole)


def _fold(rows: Iterable[Row], trace: Trace) -> Iterator[Row]:
    """Yield rows with deltas of one item in a row as one."""
    run: list[Message] = []
    for row in rows:
        delta = _delta_key(row, trace)
        if run and delta != _delta_key(run[0], trace):
            yield from _fold_run(run, trace)
            run = []
        if delta is None:
            yield row
        elif isinstance(row, Message):
            run.append(row)
    yield from _fold_run(run, trace)


def _delta_key(row: Row, trace: Trace) -> tuple[str, ...] | None:
    """Return what deltas have in common that may be folded; None for any other row."""
    if not isinstance(row, Message) or row.frame is None or row.marks:
        return None
    frame = trace.frames[row.frame]
    params = obj(frame.params)
    if not isinstance(params.get("delta"), str):
        return None
    return row.source, row.target, name_of(frame), text(params.get("itemId"))


def _fold_run(run: Sequence[Message], trace: Trace) -> Iterator[Row]:
    if len(run) < MIN_FOLDED_DELTAS:
        yield from run
        return
    seqs = [row.frame for row in run if row.frame is not None]
    deltas = "".join(text(obj(trace.frames[seq].params).get("delta")) for seq in seqs)
    first = run[0]
    yield Folded(
        time=first.time,
        seconds=run[-1].time - first.time,
        source=first.source,
        target=first.target,
        label=labels.shorten(name_of(trace.frames[seqs[0]])),
        count=len(run),
        first=seqs[0],
        last=seqs[-1],
        text=labels.shorten(deltas, _MAX_TEXT_CHARACTERS),
    )
