"""The review of what waits, in a terminal: one snapshot after the other, one key each."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from harness.errors import UsageError
from harness.report.snapshot.changes import headline, meaning
from harness.report.snapshot.folder import Folder, State, Waiting
from harness.report.snapshot.message import Transcript
from harness.report.snapshot.sides import Line, Mark, compared, unified

_NARROW = 100
"""Columns from which on both sides stand beside each other."""
_SENTENCES, _LINES = 8, 200
_STYLES = {
    Mark.HEAD: "bold cyan",
    Mark.SAME: "dim",
    Mark.GONE: "red",
    Mark.NEW: "green",
    Mark.LEFT_OUT: "dim italic",
}
# How often, and in which messages; what it changed stays.
_COUNTS = re.compile(r"^(?:one|\d+) (?=messages? )|(?<=message)s|(?: in [^:]*)? \(\d+ messages\)$")
_KEYS = "a accept  r reject  s skip  A accept all alike  d diff  ? help  q quit"
_HELP = """\
a  accept: what the server says now is right, and is kept (an unused snapshot is removed)
r  reject: the accepted one stays; the next run that differs shows it again
s  skip: it goes on waiting
A  accept this one, and all that follow and mean the same, however often
d  the difference alone, as one text, for a narrow terminal or to copy
?  this help
q  quit: the rest goes on waiting"""


def sentences(one: Waiting) -> list[str]:
    """Return sentences about a snapshot, to be read before the difference."""
    before, after = _sides(one)
    if one.state is State.DAMAGED:
        return [one.problem]
    if one.state is State.UNUSED:
        return [f"no whole run plays it: {one.problem}"]
    return [one.problem] if one.problem else meaning(before, after)


def difference(one: Waiting) -> list[Line]:
    """The lines that differ; none of what cannot be read."""
    return [] if one.state is State.DAMAGED else list(compared(*_sides(one)))


def _sides(one: Waiting) -> tuple[Transcript | None, Transcript | None]:
    return (
        one.accepted.transcript if one.accepted else None,
        one.pending.transcript if one.pending else None,
    )


def counted(waiting: Sequence[Waiting]) -> str:
    """Return the number that wait, by kind."""
    counts = Counter(one.state for one in waiting)
    return ", ".join(f"{counts[state]} {state}" for state in State if counts[state])


class Review:
    """One review. `key` waits for a key and gives it, "" where no more will come."""

    def __init__(
        self, folder: Folder, key: Callable[[], str], console: Console | None = None
    ) -> None:
        self._folder, self._key = folder, key
        self._console = console or Console(highlight=False, markup=False, emoji=False)
        self._done: Counter[str] = Counter()
        self._alike: list[frozenset[str]] = []

    def run(self, waiting: Sequence[Waiting]) -> str:
        """Go through all of them; a line that says what became of them."""
        for number, one in enumerate(waiting, 1):
            if topic(one) in self._alike:
                self._accept(one)
                continue
            title = f"{number} of {len(waiting)}: {one.state} {one.name}"
            self._console.print(Rule(Text(title, "bold"), align="left"))
            show(self._console, one)
            self._console.print(Text(f"{one.name}: {headline(sentences(one))}", "yellow"))
            if not self._decided(one):
                self._done["left waiting"] += len(waiting) - number + 1
                break
        done = ", ".join(f"{count} {what}" for what, count in self._done.items())
        return done or "nothing waits"

    def _decided(self, one: Waiting) -> bool:
        """Ask until there is an answer; whether to go on."""
        while True:
            self._console.print(Text(f"{_KEYS} > ", "bold"), end="")
            key = self._key()
            self._console.print(Text(key if key.isprintable() else ""))
            match key.lower():
                case "a":
                    if not self._accept(one):
                        continue
                    if key == "A":
                        self._alike.append(topic(one))
                case "r":
                    self._folder.reject(one)
                    self._done["rejected"] += 1
                case "s":
                    self._done["left waiting"] += 1
                case "d":
                    _show_unified(self._console, difference(one))
                    continue
                case "q" | "" | "\x03" | "\x04":
                    return False
                case _:
                    self._console.print(Text(_HELP))
                    continue
            return True

    def _accept(self, one: Waiting) -> bool:
        try:
            self._folder.accept(one)
        except UsageError as error:
            self._console.print(Text(str(error), "red"))
            return False
        self._done["removed" if one.state is State.UNUSED else "accepted"] += 1
        return True


def topic(one: Waiting) -> frozenset[str]:
    """Return the meanings of a snapshot's changes, however often they are in it."""
    words = {_COUNTS.sub("", sentence) for sentence in sentences(one)}
    return frozenset({str(one.state), *({"new"} if one.state is State.NEW else words)})


def show(console: Console, one: Waiting) -> None:
    """Print the changes in sentences, then line by line, both sides if there is room."""
    told = sentences(one)
    for sentence in told[:_SENTENCES]:
        console.print(Text(f"  {sentence}", "yellow"))
    if len(told) > _SENTENCES:
        console.print(Text(f"  … {len(told) - _SENTENCES} more", "yellow"))
    lines = difference(one)
    one_side = one.accepted is None or one.pending is None
    if one_side:
        # A whole transcript, of which the beginning of each message says enough.
        _show_unified(console, lines, whole=False)
    elif console.width < _NARROW:
        _show_unified(console, lines)
    else:
        _show_sides(console, lines)


def _show_unified(console: Console, lines: Sequence[Line], *, whole: bool = True) -> None:
    styles = {"-": "red", "+": "green", "@": "bold cyan"}
    shown = list(unified(lines))
    for text in shown[:_LINES]:
        line = Text(text, styles.get(text[:1], "dim"))
        if whole:
            console.print(line, soft_wrap=True)
        else:
            console.print(line, no_wrap=True, overflow="ellipsis")
    _say_rest(console, len(shown))


def _show_sides(console: Console, lines: Sequence[Line]) -> None:
    table = Table.grid(padding=(0, 1), expand=True)
    for _ in range(2):
        table.add_column(ratio=1, overflow="fold")
    table.add_row(Text("accepted", "bold underline"), Text("now", "bold underline"))
    for line in lines[:_LINES]:
        if line.mark is Mark.HEAD:
            table.add_row(Text(line.before, _STYLES[line.mark]), "")
        elif line.mark is Mark.CHANGED:
            table.add_row(Text(line.before, "red"), Text(line.after, "green"))
        else:
            style = _STYLES[line.mark]
            table.add_row(Text(line.before, style), Text(line.after, style))
    console.print(table)
    _say_rest(console, len(lines))


def _say_rest(console: Console, number: int) -> None:
    if number > _LINES:
        rest = f"… {number - _LINES} lines more; the files have all of it"
        console.print(Text(rest, "dim italic"))
