"""A comparison of a run with the scenario's own expectations.

Expectations are partial: what they do not mention is free.
"""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from harness.model.model import ScriptedModel
from harness.protocol.values import MISSING, dig, obj, show_path, text
from harness.protocol.values import Path as JsonPath
from harness.scenario.model import DiffText, ItemPattern, Outcome, Scenario, accepted, piece_of
from harness.scenario.player import Cast
from harness.trace.difference import difference, literal
from harness.trace.excerpt import Spot
from harness.trace.frame import Frame
from harness.trace.views import Conversation, TurnView

# So many lines of a difference between two files are shown, and so many characters of each.
MAX_LINES, MAX_WIDTH = 20, 160
# Files that have more characters are not compared line by line.
MAX_CHARACTERS_COMPARED = 200_000


@dataclass(frozen=True, slots=True)
class Problem:
    """One expectation that was not met.

    `where` leads to it in the file. `seen` are the members of messages that differ, each by its
    frame's seq; `detail` is more than fits into a sentence.
    """

    message: str
    where: JsonPath = ("expect",)
    seen: tuple[tuple[int, Spot], ...] = ()
    detail: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Item:
    """An item in its final form, the message that shows it, and the path to it in there."""

    shows: dict[str, Any]
    frame: Frame
    path: JsonPath = ("params", "item")

    @property
    def type(self) -> str:
        """Its type, "?" where it has none."""
        return text(self.shows.get("type")) or "?"


class Reading(Protocol):
    """The turns and items of a run, on whichever surface."""

    def ended(self, alias: str, statuses: Sequence[str], where: JsonPath) -> Problem | None:
        """That a turn has none of these ends."""
        ...

    def items(self) -> list[Item]:
        """The final form of each item, in order."""
        ...

    def patterns(self, wanted: list[ItemPattern]) -> list[tuple[int, ItemPattern]]:
        """Return the wanted items, in the words of this surface, each with its number."""
        ...

    def diff(self, alias: str, wanted: DiffText, where: JsonPath) -> list[Problem]:
        """Return what the last diff of a turn says too little, or too much."""
        ...


def unmet(scenario: Scenario, told: Reading, model: ScriptedModel, cwd: Path) -> list[Problem]:
    """Every expectation that was not met."""
    run = _Run(told, model, cwd)
    problems = run.problems(scenario.expect, ("expect",))
    if scenario.expect.any_of:
        tries = [
            run.problems(outcome, ("expect", "any_of", number))
            for number, outcome in enumerate(scenario.expect.any_of)
        ]
        if all(tries):
            best = min(tries, key=len)[0]
            message = f"none of {len(tries)} accepted outcomes; the nearest: {best}"
            problems.append(replace(best, message=message))
    problems += _of_the_model(scenario, model)
    return problems


def _of_the_model(scenario: Scenario, model: ScriptedModel) -> list[Problem]:
    """Return the problems that the audit of the model calls found."""
    problems = [Problem(problem, ("model",)) for call in model.calls for problem in call.problems]
    # A step that a turn never asked for is a hole in the script or in the server: either way the
    # scenario did not play what it says it plays, unless it says how many calls are right.
    counted = any(one.model_calls is not None for one in (scenario.expect, *scenario.expect.any_of))
    if model.unplayed and not problems and not counted:
        message = f"{model.unplayed} model step(s) were never asked for"
        problems.append(Problem(f"{message}; {_calls(model)}", ("model",)))
    return problems


def _calls(model: ScriptedModel) -> str:
    """Return what became of the model calls."""
    if not model.calls:
        return "the model was never called"
    last = "; ".join(f"call {one.number}: {one.told}" for one in model.calls[-3:])
    return f"the last of {len(model.calls)}: {last}" if len(model.calls) > 3 else last


class _Run:
    def __init__(self, told: Reading, model: ScriptedModel, cwd: Path) -> None:
        self._told = told
        self._model = model
        self._cwd = cwd

    def problems(self, outcome: Outcome, where: JsonPath) -> list[Problem]:
        found: list[Problem] = []
        for alias, ends in outcome.turns.items():
            statuses = [ends] if isinstance(ends, str) else list(ends)
            problem = self._told.ended(alias, statuses, (*where, "turns", alias))
            found += [problem] if problem is not None else []
        if outcome.items is not None:
            patterns = self._told.patterns(outcome.items)
            found += _items(patterns, self._told.items(), (*where, "items"))
        counts = outcome.model_calls
        right = [counts] if isinstance(counts, int) else counts
        if right is not None and len(self._model.calls) not in right:
            wanted = " or ".join(map(str, right))
            message = f"model calls: expected {wanted}; found {len(self._model.calls)}"
            message += f" ({_calls(self._model)})"
            found.append(Problem(message, (*where, "model_calls")))
        for name, wanted in outcome.workspace.items():
            found += _file(self._cwd / name, name, wanted, (*where, "workspace", name))
        for alias, said in outcome.diffs.items():
            found += self._told.diff(alias, said, (*where, "diffs", alias))
        return found


class OfSession:
    """The turns and items of a run of the session protocol."""

    def __init__(self, cast: Cast, conversation: Conversation) -> None:
        self._cast = cast
        self._conversation = conversation

    def ended(self, alias: str, statuses: Sequence[str], where: JsonPath) -> Problem | None:
        """That a turn has none of these ends."""
        turn = self._turn(alias)
        if turn is None or turn.status not in statuses:
            return _ended(alias, statuses, turn, where)
        return None

    def items(self) -> list[Item]:
        """The final form of each item of the scenario's turns, in the order of appearance."""
        seen: list[tuple[int, Item]] = []
        for alias in self._cast.turns:
            turn = self._turn(alias)
            for item in turn.items.values() if turn else ():
                frames: list[Frame] = [*item.started, *item.completed]
                if frames:
                    shows = obj(dig(frames[-1].params, "item"))
                    seen.append((frames[0].seq, Item(shows, frames[-1])))
        return [item for _, item in sorted(seen, key=lambda entry: entry[0])]

    def patterns(self, wanted: list[ItemPattern]) -> list[tuple[int, ItemPattern]]:
        """As the scenario has them: its words are the session's."""
        return list(enumerate(wanted))

    def diff(self, alias: str, wanted: DiffText, where: JsonPath) -> list[Problem]:
        """Return what the last diff of a turn says too little, or too much."""
        return _diff(alias, wanted, self._turn(alias), where)

    def _turn(self, alias: str) -> TurnView | None:
        """A turn by its alias; ids of turns need not be unique beyond their thread."""
        thread_id = self._cast.thread_of.get(alias, "")
        return self._conversation.turn_at(thread_id, self._cast.turns.get(alias, ""))


def _ended(alias: str, statuses: Sequence[str], turn: TurnView | None, where: JsonPath) -> Problem:
    """A turn that ended otherwise, or not at all."""
    wanted = " or ".join(statuses)
    if turn is None or not turn.completed:
        return Problem(f"turn {alias}: expected {wanted}; found no turn/completed", where)
    end, path = turn.completed[-1], ("params", "turn", "status")
    message = f"turn {alias}: expected {wanted}; found {show_path(path)}: {literal(turn.status)}"
    error = dig(end.params, "turn", "error", "message")
    message += f", with the error {literal(error)}" if isinstance(error, str) else ""
    return Problem(message, where, ((end.seq, Spot(path)),))


def _diff(alias: str, wanted: DiffText, turn: TurnView | None, where: JsonPath) -> list[Problem]:
    """Return what the last diff of a turn says too little, or too much, or that it has none."""
    if turn is None or not turn.diffs:
        if not wanted.contains:
            return []
        return [Problem(f"diff of turn {alias}: found no turn/diff/updated", where)]
    last, path = turn.diffs[-1], ("params", "diff")
    diff = text(dig(last.params, "diff"))
    problems: list[Problem] = []
    for key, texts, wrong in (("contains", wanted.contains, False), ("lacks", wanted.lacks, True)):
        for index, one in enumerate(texts):
            if (one in diff) is wrong:
                found = "has" if wrong else "lacks"
                message = f"diff of turn {alias}: the last one {found} {one!r}: {literal(diff)}"
                seen = ((last.seq, Spot(path, max(diff.find(one), 0))),)
                problems.append(Problem(message, (*where, key, index), seen))
    return problems


def _items(
    patterns: Sequence[tuple[int, ItemPattern]], items: list[Item], where: JsonPath
) -> list[Problem]:
    position = 0
    for number, pattern in patterns:
        start = position
        while position < len(items) and not _fits(pattern, items[position].shows):
            position += 1
        if position == len(items):
            return [_no_item(pattern, number, items, start, where)]
        position += 1
    return []


def _no_item(
    pattern: ItemPattern, number: int, items: list[Item], start: int, where: JsonPath
) -> Problem:
    """An item that is not where it should be: the nearest one, and how it differs."""
    kind = pattern if isinstance(pattern, str) else next(iter(pattern))
    found = f"found: {', '.join(item.type for item in items) or 'none'}"
    place = (*where, number)
    head = f"items[{number}]: no {_shown(pattern)} in its place"
    near = next((item for item in items[start:] if item.type == kind), None)
    if near is None:
        early = any(_fits(pattern, item.shows) for item in items[:start])
        order = f"; one came before items[{number - 1}]" if early and number else ""
        return Problem(f"{head}{order}; {found}", place)
    want = {} if isinstance(pattern, str) else pattern[kind]
    shown = {key: near.shows.get(key, MISSING) for key in want}
    key = next(key for key, value in want.items() if not _right(value, shown[key]))
    path, offset, expected, actual = _differing(want[key], shown[key])
    path = (*near.path, key, *path)
    message = (
        f"{head}; the nearest, item {text(near.shows.get('id')) or '?'}, has {show_path(path)}: "
        f"{actual}, expected {expected}; {found}"
    )
    seen = ((near.frame.seq, Spot(path, offset)),)
    return Problem(message, (*place, kind, key), seen)


def _fits(pattern: ItemPattern, item: dict[str, Any]) -> bool:
    if isinstance(pattern, str):
        return item.get("type") == pattern
    return all(
        item.get("type") == kind
        and all(_right(value, item.get(key, MISSING)) for key, value in want.items())
        for kind, want in pattern.items()
    )


def _right(wanted: Any, found: Any) -> bool:
    """Return whether a member is as it should be; where it may be absent, null is absence too."""
    values = accepted(wanted)
    may_lack = len(values) > 1 and "absent" in values
    return any(_meets(one, found) for one in values) or (may_lack and found in (MISSING, None))


def _meets(want: Any, value: Any) -> bool:
    piece = piece_of(want)
    return value == want if piece is None else piece in text(value)


def _differing(want: Any, value: Any) -> tuple[JsonPath, int, str, str]:
    """Return where a member differs from what is wanted of it, and both sides there."""
    values = accepted(want)
    if len(values) > 1:
        return (), 0, " or ".join(map(_shown_value, values)), literal(value)
    piece = piece_of(values[0])
    if piece is not None:
        return (), 0, _shown_value(values[0]), literal(value)
    told = difference(values[0], value)
    return told.path, told.offset or 0, told.expected, told.actual


def _shown_value(value: Any) -> str:
    piece = piece_of(value)
    if piece is not None:
        return f"a text with {literal(piece)} in it"
    return "absent" if value == "absent" else literal(value, 60)


def _shown(pattern: ItemPattern) -> str:
    if isinstance(pattern, str):
        return pattern
    kind, want = next(iter(pattern.items()))
    members = ", ".join(f"{key}: {literal(value, 60)}" for key, value in want.items())
    return f"{kind} with {members}" if members else kind


def _file(path: Path, name: str, wanted: str, where: JsonPath) -> list[Problem]:
    try:
        if path.exists() and not path.is_file():
            return [Problem(f"workspace: {name} is no file", where)]
        content = path.read_text("utf-8")
    except FileNotFoundError:
        expected = f"; expected {literal(wanted)}"
        return (
            [] if wanted == "absent" else [Problem(f"workspace: {name} is absent{expected}", where)]
        )
    except (OSError, UnicodeDecodeError) as error:
        return [Problem(f"workspace: {name} cannot be read: {error}", where)]
    if wanted == "absent":
        message = f"workspace: {name} exists; expected absent; it has {literal(content)}"
        return [Problem(message, where)]
    if content == wanted:
        return []
    told = difference(wanted, content)
    line = wanted.count("\n", 0, told.offset) + 1
    message = f"workspace: {name}: line {line}: expected {told.expected}; found {told.actual}"
    return [Problem(message, where, detail=tuple(_unified(wanted, content, name)))]


def _unified(wanted: str, content: str, name: str) -> Iterator[str]:
    """The difference of two files as `diff -u` has it, bounded."""
    if len(wanted) + len(content) > MAX_CHARACTERS_COMPARED:
        return
    one, other = wanted.splitlines(), content.splitlines()
    names = f"{name} (expected)", f"{name} (found)"
    lines = list(difflib.unified_diff(one, other, *names, lineterm=""))
    for line in lines[:MAX_LINES]:
        shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)
        yield shown if len(shown) <= MAX_WIDTH else f"{shown[:MAX_WIDTH]}…"
    if len(lines) > MAX_LINES:
        yield f"… {len(lines) - MAX_LINES} more line(s)"
