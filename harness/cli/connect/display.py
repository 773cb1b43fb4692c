"""The bounded display of a conversation: a line per message, findings under their message."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.client.target.profile import Deviation
from harness.judge.verdict import Row, Verdict
from harness.protocol.escapes import visible, visible_lines
from harness.protocol.spec.book import Book
from harness.protocol.values import MISSING, obj, text
from harness.report.results.baseline import reason_elsewhere
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.trace import Trace

Write = Callable[[str], None]

# Messages of one kind shown in a row, and messages shown in all until the user types something.
MAX_ALIKE_SHOWN = 3
MAX_MESSAGES_SHOWN = 400
_COLOURS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "dim": "2", "bold": "1"}


@dataclass(slots=True)
class _Row:
    """Consecutive messages of one kind."""

    kind: str = ""
    count: int = 0
    last: int = 0


class Display:
    """Display of a conversation by lines, with `write`; `width` returns the columns to use.

    `deviations` are those of the server's profile: a finding names one that is known elsewhere.
    """

    def __init__(
        self,
        write: Write,
        book: Book,
        *,
        colour: bool,
        width: Callable[[], int] = lambda: 160,
        deviations: Sequence[Deviation] = (),
    ) -> None:
        self._write = write
        self._book = book
        self._colour = colour
        self._width = width
        self._deviations = deviations
        self._row = _Row()
        self._shown = 0
        self._unshown = 0

    @property
    def hidden_count(self) -> int:
        """Return the number of messages not shown since the user last typed something."""
        return self._unshown

    def user_spoke(self) -> None:
        """Show messages again, because the user typed something."""
        self.flush_row()
        if self._unshown:
            self._write(self._dim(f"  … {self._unshown} more messages were not shown; :show N"))
        self._shown = self._unshown = 0

    def flush_row(self) -> None:
        """Show how many messages of the current row were only counted, and end the row."""
        row, self._row = self._row, _Row()
        if row.count > MAX_ALIKE_SHOWN:
            self._write_line(
                self._dim(
                    f"  … {row.count - MAX_ALIKE_SHOWN} more {row.kind}, the last is #{row.last}"
                )
            )

    def show_frame(self, frame: Frame) -> None:
        """Show a message, or only count it after `MAX_ALIKE_SHOWN` of its kind in a row."""
        kind = _kind_of(frame)
        if kind != self._row.kind or not kind:
            self.flush_row()
            self._row.kind = kind
        self._row.count += 1
        self._row.last = frame.seq
        if self._row.count <= MAX_ALIKE_SHOWN:
            self._write_line(self._frame_line(frame))

    def show_finding(self, row: Row, known_reason: str = "", *, in_full: bool = False) -> None:
        """Show a finding right under its message.

        A known one, or one of level INFO, is abridged unless `in_full`.
        """
        self.flush_row()
        lines = list(finding_lines(row, self._book, known_reason))
        if not known_reason and (elsewhere := reason_elsewhere(row, self._deviations)):
            lines.append(f"      perhaps   known {elsewhere}")
        if (
            not in_full
            and (known_reason or row.level == "INFO")
            and row.verdict is not Verdict.ERROR
        ):
            lines = [lines[0], lines[-1] if known_reason else lines[2]]
        for line in lines:
            self._write(
                self._paint(line, "yellow" if known_reason or row.level != "MUST" else "red")
            )

    def note(self, words: str, colour: str = "dim") -> None:
        """Show a line that is not a message."""
        self.flush_row()
        self._write(self._paint(visible_lines(words), colour))

    def show_whole(self, frame: Frame) -> None:
        """Show a message as indented JSON."""
        self._write(self._frame_line(frame))
        if frame.json is MISSING:
            self._write(visible(frame.text(4000)))
            return
        for line in json.dumps(frame.json, indent=2, ensure_ascii=False).splitlines():
            self._write("  " + visible(line))

    def show_last(self, trace: Trace, count: int) -> None:
        """Show the last messages."""
        for frame in trace.frames[-count:]:
            self._write(self._frame_line(frame))

    def _write_line(self, line: str) -> None:
        if self._shown >= MAX_MESSAGES_SHOWN:
            self._unshown += 1
            if self._unshown == 1:
                self._write(
                    self._dim(
                        f"  … {MAX_MESSAGES_SHOWN} messages shown; more are counted: Enter goes on"
                    )
                )
            return
        self._shown += 1
        self._write(line)

    def _frame_line(self, frame: Frame) -> str:
        is_ours = frame.direction is Direction.TO_TARGET
        head = f"{'→' if is_ours else '←'} #{frame.seq} {name_of(frame)}"
        room = max(20, self._width() - len(head) - 2)
        rest = visible(_body_of(frame)[: room + 1])
        rest = rest if len(rest) <= room else f"{rest[: room - 1]}…"
        colour = "blue" if is_ours else _COLOUR_OF.get(frame.kind, "")
        return f"{self._paint(head, colour)} {rest}".rstrip()

    def _dim(self, words: str) -> str:
        return self._paint(words, "dim")

    def _paint(self, words: str, colour: str) -> str:
        if not self._colour or not colour:
            return words
        return f"\x1b[{_COLOURS[colour]}m{words}\x1b[0m"


_COLOUR_OF = {
    Kind.RESPONSE: "green",
    Kind.ERROR: "red",
    Kind.REQUEST: "yellow",
    Kind.MALFORMED: "red",
}


def name_of(frame: Frame) -> str:
    """Return the method of a message, the kind of answer, or `no message`."""
    if frame.method:
        asks = f" id {json.dumps(frame.id)}" if frame.kind is Kind.REQUEST else ""
        return visible(frame.method) + asks
    if frame.kind in (Kind.RESPONSE, Kind.ERROR):
        word = "result" if frame.kind is Kind.RESPONSE else "error"
        return visible(f"{word} of id {json.dumps(frame.id, default=str)}")
    return "no message" if frame.damage is None else f"no message: {frame.damage.words}"


def _body_of(frame: Frame) -> str:
    message = obj(frame.json)
    if frame.method:
        value = message.get("params")
    elif frame.kind is Kind.RESPONSE:
        value = message.get("result")
    elif frame.kind is Kind.ERROR:
        value = frame.failure
    else:
        return frame.text(400)
    if len(frame.raw) > 20_000:
        return frame.text(400)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _kind_of(frame: Frame) -> str:
    """Return the kind of a notification, "" for a message that is always shown."""
    if frame.kind is Kind.NOTIFICATION:
        item = text(obj(frame.params).get("itemId"))
        return f"{frame.method} of {item}" if item else frame.method
    return "line that is no message" if frame.kind is Kind.MALFORMED else ""


def finding_lines(row: Row, book: Book, known_reason: str = "") -> Iterator[str]:
    """Yield a finding: its rule, the expected and actual values, and the broken requirement."""
    word = "ERROR" if row.verdict is Verdict.ERROR else "KNOWN" if known_reason else str(row.level)
    yield visible(f"  {word} {row.rule}: {row.subject}")
    yield visible(f"      expected  {row.expected}")
    yield visible(f"      actual    {row.actual}")[:600]
    of_rule = book.requirements_of(row.rule)
    concerned = [requirement for requirement in of_rule if requirement.id in row.clauses] or list(
        of_rule
    )
    for requirement in concerned[:1]:
        clause = requirement.clause
        yield f"      clause    {requirement.id}: {clause.statement}"
        yield f"                {clause.document}, {clause.heading!r}, line {clause.line}"
    if known_reason:
        yield f"      known     {known_reason}"
