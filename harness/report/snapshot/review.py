"""The review of waiting snapshots, in a terminal: one after the other, one key each."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from harness.errors import UsageError
from harness.report.snapshot.changes import describe_changes, headline
from harness.report.snapshot.difference_lines import Line, Mark, diff_lines, unified_lines
from harness.report.snapshot.folder import SnapshotFolder, State, WaitingSnapshot
from harness.report.snapshot.message import Transcript

_NARROW = 100
"""Fewest columns of a terminal in which both sides are shown beside each other."""
_SENTENCES, _LINES = 8, 200
_STYLES = {
    Mark.HEAD: "bold cyan",
    Mark.SAME: "dim",
    Mark.GONE: "red",
    Mark.NEW: "green",
    Mark.LEFT_OUT: "dim italic",
}
# The parts of a sentence about how often and in which messages, to be removed.
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


def describe_snapshot(snapshot: WaitingSnapshot) -> list[str]:
    """Return sentences about a snapshot, to be read before the difference."""
    before, after = _sides(snapshot)
    if snapshot.state is State.DAMAGED:
        return [snapshot.problem]
    if snapshot.state is State.UNUSED:
        return [f"no whole run plays it: {snapshot.problem}"]
    return [snapshot.problem] if snapshot.problem else describe_changes(before, after)


def difference_lines(snapshot: WaitingSnapshot) -> list[Line]:
    """Return the lines that differ; none if a file cannot be read."""
    return [] if snapshot.state is State.DAMAGED else list(diff_lines(*_sides(snapshot)))


def _sides(snapshot: WaitingSnapshot) -> tuple[Transcript | None, Transcript | None]:
    return (
        snapshot.accepted_snapshot.transcript if snapshot.accepted_snapshot else None,
        snapshot.pending_snapshot.transcript if snapshot.pending_snapshot else None,
    )


def count_by_state(waiting: Sequence[WaitingSnapshot]) -> str:
    """Return the number of waiting snapshots by state: `1 new, 2 changed`."""
    counts = Counter(snapshot.state for snapshot in waiting)
    return ", ".join(f"{counts[state]} {state}" for state in State if counts[state])


class Review:
    """Review of snapshots by a user. `key` waits for a key and returns it, "" at end of input."""

    def __init__(
        self, folder: SnapshotFolder, key: Callable[[], str], console: Console | None = None
    ) -> None:
        self._folder, self._key = folder, key
        self._console = console or Console(highlight=False, markup=False, emoji=False)
        self._decisions: Counter[str] = Counter()
        self._accepted_topics: list[frozenset[str]] = []

    def run(self, waiting: Sequence[WaitingSnapshot]) -> str:
        """Ask about the snapshots one by one, until the user quits; return a line of counts."""
        for number, snapshot in enumerate(waiting, 1):
            if topic(snapshot) in self._accepted_topics:
                self._accept(snapshot)
                continue
            title = f"{number} of {len(waiting)}: {snapshot.state} {snapshot.name}"
            self._console.print(Rule(Text(title, "bold"), align="left"))
            show_changes(self._console, snapshot)
            self._console.print(
                Text(f"{snapshot.name}: {headline(describe_snapshot(snapshot))}", "yellow")
            )
            if not self._decide(snapshot):
                self._decisions["left waiting"] += len(waiting) - number + 1
                break
        done = ", ".join(f"{count} {what}" for what, count in self._decisions.items())
        return done or "nothing waits"

    def _decide(self, snapshot: WaitingSnapshot) -> bool:
        """Ask for and carry out a decision on a snapshot; return False if the user quits."""
        while True:
            self._console.print(Text(f"{_KEYS} > ", "bold"), end="")
            key = self._key()
            self._console.print(Text(key if key.isprintable() else ""))
            match key.lower():
                case "a":
                    if not self._accept(snapshot):
                        continue
                    if key == "A":
                        self._accepted_topics.append(topic(snapshot))
                case "r":
                    self._folder.reject(snapshot)
                    self._decisions["rejected"] += 1
                case "s":
                    self._decisions["left waiting"] += 1
                case "d":
                    _show_unified(self._console, difference_lines(snapshot))
                    continue
                case "q" | "" | "\x03" | "\x04":
                    return False
                case _:
                    self._console.print(Text(_HELP))
                    continue
            return True

    def _accept(self, snapshot: WaitingSnapshot) -> bool:
        try:
            self._folder.accept(snapshot)
        except UsageError as error:
            self._console.print(Text(str(error), "red"))
            return False
        self._decisions["removed" if snapshot.state is State.UNUSED else "accepted"] += 1
        return True


def topic(snapshot: WaitingSnapshot) -> frozenset[str]:
    """Return the sentences about a snapshot's changes without numbers; alike changes are equal."""
    words = {_COUNTS.sub("", sentence) for sentence in describe_snapshot(snapshot)}
    return frozenset({str(snapshot.state), *({"new"} if snapshot.state is State.NEW else words)})


def show_changes(console: Console, snapshot: WaitingSnapshot) -> None:
    """Print the changes in sentences, then line by line, both sides if there is room."""
    lines_of_meaning = describe_snapshot(snapshot)
    for sentence in lines_of_meaning[:_SENTENCES]:
        console.print(Text(f"  {sentence}", "yellow"))
    if len(lines_of_meaning) > _SENTENCES:
        console.print(Text(f"  … {len(lines_of_meaning) - _SENTENCES} more", "yellow"))
    lines = difference_lines(snapshot)
    one_side = snapshot.accepted_snapshot is None or snapshot.pending_snapshot is None
    if one_side:
        # In a whole transcript, the beginning of each message is enough.
        _show_unified(console, lines, wraps=False)
    elif console.width < _NARROW:
        _show_unified(console, lines)
    else:
        _show_sides(console, lines)


def _show_unified(console: Console, lines: Sequence[Line], *, wraps: bool = True) -> None:
    styles = {"-": "red", "+": "green", "@": "bold cyan"}
    text_lines = list(unified_lines(lines))
    for text in text_lines[:_LINES]:
        line = Text(text, styles.get(text[:1], "dim"))
        if wraps:
            console.print(line, soft_wrap=True)
        else:
            console.print(line, no_wrap=True, overflow="ellipsis")
    _print_rest(console, len(text_lines))


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
    _print_rest(console, len(lines))


def _print_rest(console: Console, number: int) -> None:
    if number > _LINES:
        words = f"… {number - _LINES} lines more; the files have all of it"
        console.print(Text(words, "dim italic"))
