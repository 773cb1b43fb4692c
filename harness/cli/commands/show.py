"""`harness show`: the messages of a stored trace, their pairs and times, silences and findings."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import typer

from harness.cli.commands.profile_hint import fit_profile, profile_hint
from harness.cli.commands.stored_traces import (
    builtin_server_names,
    check_trace,
    load_stored,
    row_json,
)
from harness.cli.commands.trace_filter import TraceFilter
from harness.client.target.profile import Profile
from harness.errors import UsageError
from harness.judge.verdict import Level, Row, Verdict
from harness.protocol.escapes import visible
from harness.protocol.values import MISSING, read_path
from harness.report.diagram.build import build_diagram
from harness.report.diagram.model import Diagram
from harness.report.results.baseline import reason_of
from harness.report.wire_lines import CONTEXT_FRAMES, MAX_MESSAGE_CHARACTERS
from harness.trace.correlation import Correlation
from harness.trace.excerpt import Spot
from harness.trace.frame import Direction, Frame, Kind, Origin
from harness.trace.gaps import Gap, events_of, find_gaps
from harness.trace.mark_rows import to_row
from harness.trace.store import TraceFormatError
from harness.trace.trace import Mark, Trace

# Characters shown of a requested message.
MAX_REQUESTED_CHARACTERS: Final = 100_000
_COLOUR_OF_KIND: Final = {
    Kind.RESPONSE: "green",
    Kind.ERROR: "red",
    Kind.REQUEST: "yellow",
    Kind.MALFORMED: "red",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A trace with the chosen messages; `violations` are the findings of `harness check`."""

    trace: Trace
    frames: list[Frame]
    gaps: list[Gap]
    pairs: Correlation
    violations: list[Row]
    filter: TraceFilter = field(default_factory=TraceFilter)
    message: int | None = None
    colour: bool = False
    profile_hint: str = ""
    has_several_connections: bool = field(init=False)
    _violations_of: Mapping[int, list[Row]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Index the findings by the messages that they are about."""
        connections = {frame.connection for frame in self.trace.frames}
        by_frame: defaultdict[int, list[Row]] = defaultdict(list)
        for row in self.violations:
            for seq in row.frames:
                by_frame[seq].append(row)
        object.__setattr__(self, "has_several_connections", len(connections) > 1)
        object.__setattr__(self, "_violations_of", dict(by_frame))

    def show_message(self, message: int) -> "Shown":
        """Return one message and those around it, without silences."""
        first = max(0, message - CONTEXT_FRAMES)
        frames = self.trace.frames[first : message + CONTEXT_FRAMES + 1]
        return replace(self, frames=frames, gaps=[], message=message)

    def lines(self) -> Iterator[str]:
        """Yield the lines to print."""
        header = self.trace.header
        if self.message is None:
            yield visible(
                f"target {header.target or '?'}, profile {header.profile or '?'}, {header.scenario}"
            )
            if self.profile_hint:
                yield visible(self.profile_hint)
            if header.faults:
                yield (
                    "the scenario's faults were at work: "
                    "what is wrong here need not be the server's"
                )
        last_frame_of = self._violations_by_last_frame()
        chosen = {frame.seq for frame in self.frames}
        gaps = {id(gap.end): gap for gap in self.gaps}
        for event in events_of(self.trace):
            gap = gaps.get(id(event))
            if gap is not None:
                yield self._paint(visible(f"              ⋯ {gap}"), "cyan")
            if isinstance(event, Mark):
                if self._shows_mark(event):
                    line = f"    {event.at * 1000:9.1f} · {event.kind} {to_row(event.body)}"
                    yield self._paint(visible(line[:MAX_REQUESTED_CHARACTERS]), "dim")
            elif event.seq in chosen:
                yield self._frame_line(event)
                yield from map(self._violation_line, last_frame_of.get(event.seq, ()))
        if self.message is None:
            yield from map(self._violation_line, last_frame_of.get(None, ()))
            hidden = sum(
                len(rows)
                for seq, rows in last_frame_of.items()
                if seq is not None and seq not in chosen
            )
            if hidden:
                yield f"{hidden} finding(s) on messages that are not shown"
            yield from (f"note: {words}" for words in self.trace.damage)
            yield f"end: {self.trace.end}"

    def json(self) -> dict[str, Any]:
        """Return the chosen messages, silences and findings as JSON."""
        header = self.trace.header
        return {
            "target": header.target,
            "profile": header.profile,
            "scenario": header.scenario,
            "surface": header.surface,
            "faults": header.faults,
            "messages": [self._frame_json(frame) for frame in self.frames],
            "events": [
                {"milliseconds": _ms(mark.at), "after": mark.after, "kind": mark.kind}
                | {"data": to_row(mark.body)}
                for mark in self.trace.marks
                if self._shows_mark(mark)
            ],
            "gaps": [
                {
                    "milliseconds": _ms(gap.at),
                    "duration": _ms(gap.seconds),
                    "waitingFor": gap.waiting_for,
                }
                for gap in self.gaps
            ],
            "findings": [row_json(row, self.trace) for row in self.violations],
            "damage": self.trace.damage,
            "end": str(self.trace.end),
        }

    def diagram(self) -> Diagram:
        """Return the chosen messages, events and silences as a sequence diagram."""
        return build_diagram(
            self.trace,
            self.violations,
            frames=self.frames,
            gaps=self.gaps,
            shows_mark=self._shows_mark,
        )

    def _shows_mark(self, mark: Mark[Any]) -> bool:
        return (
            self.message is None
            and not self.filter.chooses_by_content
            and self.filter.has_time(mark.at)
        )

    def _violations_by_last_frame(self) -> Mapping[int | None, list[Row]]:
        """Return last message of the proof -> findings; those without messages under None."""
        by_frame: defaultdict[int | None, list[Row]] = defaultdict(list)
        for row in self.violations:
            by_frame[max(row.frames, default=None)].append(row)
        return by_frame

    def _frame_line(self, frame: Frame) -> str:
        arrow = "→" if frame.direction is Direction.TO_TARGET else "←"
        concerned = self._violations_of.get(frame.seq, [])
        mark = "*" if frame.seq == self.message else "!" if concerned else " "
        limit = MAX_MESSAGE_CHARACTERS if self.message is None else MAX_REQUESTED_CHARACTERS
        spots = [
            Spot(read_path(place.path), place.offset)
            for row in concerned
            for place in row.places
            if place.frame == frame.seq
        ]
        notes = [frame.damage.words] if frame.damage else []
        notes += [note] if (note := self._pair_note(frame)) else []
        colour = (
            "blue"
            if frame.direction is Direction.TO_TARGET
            else _COLOUR_OF_KIND.get(frame.kind, "")
        )
        connection = f" {frame.connection}" if self.has_several_connections else ""
        line = self.trace.line_of(frame.seq)
        place = f"#{frame.seq} (line {line})" if line else f"#{frame.seq}"
        head = f"  {mark} {frame.at * 1000:9.1f} {arrow} {place}{connection}"
        tail = "".join(f"  [{visible(note)}]" for note in notes)
        return f"{head} {self._paint(frame.text(limit, spots), colour)}{self._paint(tail, 'dim')}"

    def _pair_note(self, frame: Frame) -> str:
        request = self.pairs.request_of(frame)
        if request is not None:
            return f"answers {request.method} #{request.seq} after {_duration(request, frame)}"
        if frame.kind is not Kind.REQUEST:
            return "answers no request" if frame.kind in (Kind.RESPONSE, Kind.ERROR) else ""
        answer = self.pairs.answer_of(frame)
        if answer is None:
            return "never answered"
        return f"answered by #{answer.seq} after {_duration(frame, answer)}"

    def _violation_line(self, row: Row) -> str:
        words = row.verdict.value if row.verdict is not Verdict.FAIL else str(row.level)
        text = (
            f"      {words:6} {row.rule}: {row.subject}: expected {row.expected}; "
            f"actual {row.actual}"
        )
        is_grave = row.level is Level.MUST and row.verdict is not Verdict.KNOWN
        return self._paint(visible(text), "red" if is_grave else "yellow")

    def _frame_json(self, frame: Frame) -> dict[str, Any]:
        is_json = frame.json is not MISSING
        entry: dict[str, Any] = {
            "message": frame.seq,
            "line": self.trace.line_of(frame.seq),
            "milliseconds": _ms(frame.at),
            "connection": frame.connection,
            "direction": str(frame.direction),
            "kind": str(frame.kind),
            "method": frame.method,
            "json" if is_json else "text": (
                frame.json if is_json else frame.raw.decode("utf-8", "backslashreplace")
            ),
        }
        if frame.damage is not None:
            entry["damage"] = frame.damage.words
        request, answer = self.pairs.request_of(frame), self.pairs.answer_of(frame)
        if request is not None:
            entry["answers"] = {"message": request.seq, "after": _ms(frame.at - request.at)}
        if answer is not None:
            entry["answeredBy"] = {"message": answer.seq, "after": _ms(answer.at - frame.at)}
        rules = [row.rule for row in self._violations_of.get(frame.seq, [])]
        return entry | ({"findings": list(dict.fromkeys(rules))} if rules else {})

    def _paint(self, text: str, colour: str) -> str:
        if not self.colour or not text or not colour:
            return text
        return typer.style(text, dim=True) if colour == "dim" else typer.style(text, fg=colour)


def show_trace(
    path: Path,
    trace_filter: TraceFilter | None = None,
    *,
    message: int | None = None,
    line: int | None = None,
    target: str = "",
    colour: bool = False,
    judge: bool = True,
) -> Shown:
    """Read a trace, judge it and choose messages; with `message` that one and those around it.

    Without `judge` there are no findings. `line` is the line of that message in the file. Raises
    `UsageError` if the trace has no such message, or nothing that the filter names.
    """
    profile = fit_profile(target, path) if target else None
    trace, violations = judge_file(path, profile) if judge else (load_stored(path), [])
    hint = "" if target else profile_hint(trace)
    pairs = Correlation(trace.frames)
    trace_filter = trace_filter or TraceFilter()
    if line is not None:
        message = _message_at(trace, line, path)
    if message is not None and not trace_filter.chooses_all:
        raise UsageError("--message and --line show one message; they cannot be used with a filter")
    frames = trace_filter.choose(trace, pairs)
    gaps = [gap for gap in find_gaps(trace) if trace_filter.has_time(gap.end.at)]
    shown = Shown(
        trace,
        frames,
        gaps,
        pairs,
        violations,
        trace_filter,
        colour=colour,
        profile_hint=hint,
    )
    if message is None:
        return shown
    if not 0 <= message < len(trace.frames):
        last = len(trace.frames) - 1
        raise UsageError(f"{path}: there is no message {message}; the last one is {last}")
    return shown.show_message(message)


def _message_at(trace: Trace, line: int, path: Path) -> int:
    """Return the number of the message in a line. Raises `UsageError` if it holds none."""
    if line in trace.lines:
        return trace.lines.index(line)
    near = min(trace.lines, key=lambda other: abs(other - line), default=None)
    hint = f"; the nearest one is in line {near}" if near else ""
    raise UsageError(f"{path}:{line}: there is no message in this line{hint}")


def judge_file(path: Path, profile: Profile | None) -> tuple[Trace, list[Row]]:
    """Return a trace and the findings of `harness check`, the suspected ones among them.

    Without findings if no rule judges the trace's surface.
    """
    deviations = profile.deviations if profile else ()
    try:
        check = check_trace(
            path,
            profile.names if profile else None,
            known_names=builtin_server_names(),
            known_reason=lambda row, scenario: reason_of(row, scenario, deviations),
        )
    except TraceFormatError:
        return load_stored(path), []
    found = [row for row in check.rows if row.verdict is not Verdict.PASS]
    suspected = [
        replace(row, actual=f"{row.actual} (only suspected: {check.decision.reason})")
        for row in check.suspected_rows
    ]
    return check.trace, [*found, *suspected]


def sent_bytes(path: Path) -> bytes:
    """Return the bytes that the harness sent: each message as a line, a program's input as is."""
    trace = load_stored(path)
    sent_frames = [frame for frame in trace.frames if frame.origin is Origin.HARNESS]
    return b"".join(f.raw if f.kind is Kind.INPUT else f.raw + b"\n" for f in sent_frames)


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


def _duration(first: Frame, second: Frame) -> str:
    return f"{_ms(second.at - first.at):.1f} ms"
