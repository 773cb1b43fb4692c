"""A comparison of a run with the scenario's own expectations.

Expectations are partial: members that they do not mention may have any value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from harness.model.model import ScriptedModel
from harness.protocol.values import MISSING, dig, obj, show_path, text
from harness.protocol.values import Path as JsonPath
from harness.scenario.expect_files import file_difference, mode_difference
from harness.scenario.model import (
    DiffText,
    ItemPattern,
    Outcome,
    Scenario,
    accepted_values,
    contained_text,
)
from harness.scenario.player import Cast
from harness.trace.difference import difference, literal
from harness.trace.excerpt import Spot
from harness.trace.frame import Frame
from harness.trace.views import Conversation, TurnView


@dataclass(frozen=True, slots=True)
class Problem:
    """One expectation that was not met.

    `place` is its path in the file. `spots` are the differing members of messages, each with its
    frame's seq; `detail` holds further lines.
    """

    message: str
    place: JsonPath = ("expect",)
    spots: tuple[tuple[int, Spot], ...] = ()
    detail: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Item:
    """An item in its last form, its message, and the path to it in the message."""

    members: dict[str, Any]
    frame: Frame
    path: JsonPath = ("params", "item")

    @property
    def type(self) -> str:
        """Return its type, "?" if it has none."""
        return text(self.members.get("type")) or "?"


class Reading(Protocol):
    """The turns and items of a run, on whichever surface."""

    def check_end(self, alias: str, statuses: Sequence[str], place: JsonPath) -> Problem | None:
        """Return the problem if a turn did not end, or with none of `statuses`; else None."""
        ...

    def items(self) -> list[Item]:
        """Return the last form of each item, in order."""
        ...

    def translate_patterns(self, patterns: list[ItemPattern]) -> list[tuple[int, ItemPattern]]:
        """Return the expected items in this surface's words, each with its index in `patterns`."""
        ...

    def check_diff(self, alias: str, expected: DiffText, place: JsonPath) -> list[Problem]:
        """Return the problems of a turn's last diff: missing and unwanted texts."""
        ...


def unmet_expectations(
    scenario: Scenario, reading: Reading, model: ScriptedModel, cwd: Path
) -> list[Problem]:
    """Return a problem for each expectation that was not met."""
    run = _Comparison(reading, model, cwd)
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
    problems += _model_problems(scenario, model)
    return problems


def _model_problems(scenario: Scenario, model: ScriptedModel) -> list[Problem]:
    """Return the problems that the audit of the model calls found."""
    problems = [Problem(problem, ("model",)) for call in model.calls for problem in call.problems]
    # An unused step is a mistake of the script or of the server: the scenario did not play what it
    # describes, unless it states how many calls are right.
    counts_calls = any(
        outcome.model_calls is not None for outcome in (scenario.expect, *scenario.expect.any_of)
    )
    if model.unplayed_count and not problems and not counts_calls:
        message = f"{model.unplayed_count} model step(s) were never asked for"
        problems.append(Problem(f"{message}; {_describe_calls(model)}", ("model",)))
    return problems


def _describe_calls(model: ScriptedModel) -> str:
    """Describe the outcomes of the last model calls."""
    if not model.calls:
        return "the model was never called"
    last = "; ".join(f"call {call.number}: {call.outcome_text}" for call in model.calls[-3:])
    return f"the last of {len(model.calls)}: {last}" if len(model.calls) > 3 else last


class _Comparison:
    def __init__(self, reading: Reading, model: ScriptedModel, cwd: Path) -> None:
        self._reading = reading
        self._model = model
        self._cwd = cwd

    def problems(self, outcome: Outcome, place: JsonPath) -> list[Problem]:
        problems: list[Problem] = []
        for alias, ends in outcome.turns.items():
            statuses = [ends] if isinstance(ends, str) else list(ends)
            problem = self._reading.check_end(alias, statuses, (*place, "turns", alias))
            problems += [problem] if problem is not None else []
        if outcome.items is not None:
            patterns = self._reading.translate_patterns(outcome.items)
            problems += _item_problems(patterns, self._reading.items(), (*place, "items"))
        counts = outcome.model_calls
        accepted_counts = [counts] if isinstance(counts, int) else counts
        if accepted_counts is not None and len(self._model.calls) not in accepted_counts:
            expected = " or ".join(map(str, accepted_counts))
            message = f"model calls: expected {expected}; found {len(self._model.calls)}"
            message += f" ({_describe_calls(self._model)})"
            problems.append(Problem(message, (*place, "model_calls")))
        for name, content in outcome.workspace.items():
            differs = file_difference(self._cwd / name, name, content)
            if differs is not None:
                message, lines = differs
                file_place = (*place, "workspace", name)
                problems.append(Problem(f"workspace: {message}", file_place, detail=lines))
        for name, mode in outcome.modes.items():
            message = mode_difference(self._cwd / name, name, mode)
            if message is not None:
                problems.append(Problem(f"workspace: {message}", (*place, "modes", name)))
        for alias, diff_text in outcome.diffs.items():
            problems += self._reading.check_diff(alias, diff_text, (*place, "diffs", alias))
        return problems


class SessionReading:
    """The turns and items of a run of the session protocol."""

    def __init__(self, cast: Cast, conversation: Conversation) -> None:
        self._cast = cast
        self._conversation = conversation

    def check_end(self, alias: str, statuses: Sequence[str], place: JsonPath) -> Problem | None:
        """Return the problem if a turn did not end, or with none of `statuses`; else None."""
        turn = self._turn(alias)
        if turn is None or turn.status not in statuses:
            return _end_problem(alias, statuses, turn, place)
        return None

    def items(self) -> list[Item]:
        """Return the last form of each item of the scenario's turns, in the order of starts."""
        items: list[tuple[int, Item]] = []
        for alias in self._cast.turns:
            turn = self._turn(alias)
            for item in turn.items.values() if turn else ():
                frames: list[Frame] = [*item.starts, *item.completions]
                if frames:
                    members = obj(dig(frames[-1].params, "item"))
                    items.append((frames[0].seq, Item(members, frames[-1])))
        return [item for _, item in sorted(items, key=lambda entry: entry[0])]

    def translate_patterns(self, patterns: list[ItemPattern]) -> list[tuple[int, ItemPattern]]:
        """Return the patterns with their indexes, unchanged: scenarios use the session's words."""
        return list(enumerate(patterns))

    def check_diff(self, alias: str, expected: DiffText, place: JsonPath) -> list[Problem]:
        """Return the problems of a turn's last diff: missing and unwanted texts."""
        return _diff_problems(alias, expected, self._turn(alias), place)

    def _turn(self, alias: str) -> TurnView | None:
        """Return a turn by its alias; ids of turns need not be unique beyond their thread."""
        thread_id = self._cast.thread_of.get(alias, "")
        return self._conversation.turn_at(thread_id, self._cast.turns.get(alias, ""))


def _end_problem(
    alias: str, statuses: Sequence[str], turn: TurnView | None, place: JsonPath
) -> Problem:
    """Return the problem of a turn that ended with none of `statuses`, or not at all."""
    expected = " or ".join(statuses)
    if turn is None or not turn.completions:
        return Problem(f"turn {alias}: expected {expected}; found no turn/completed", place)
    end, path = turn.completions[-1], ("params", "turn", "status")
    message = f"turn {alias}: expected {expected}; found {show_path(path)}: {literal(turn.status)}"
    error = dig(end.params, "turn", "error", "message")
    message += f", with the error {literal(error)}" if isinstance(error, str) else ""
    return Problem(message, place, ((end.seq, Spot(path)),))


def _diff_problems(
    alias: str, expected: DiffText, turn: TurnView | None, place: JsonPath
) -> list[Problem]:
    """Return the problems of a turn's last diff: absent, missing and unwanted texts."""
    if turn is None or not turn.diffs:
        if not expected.contains:
            return []
        return [Problem(f"diff of turn {alias}: found no turn/diff/updated", place)]
    last, path = turn.diffs[-1], ("params", "diff")
    diff = text(dig(last.params, "diff"))
    problems: list[Problem] = []
    for key, texts, unwanted in (
        ("contains", expected.contains, False),
        ("lacks", expected.lacks, True),
    ):
        for index, piece in enumerate(texts):
            if (piece in diff) is unwanted:
                verb = "has" if unwanted else "lacks"
                message = f"diff of turn {alias}: the last one {verb} {piece!r}: {literal(diff)}"
                spots = ((last.seq, Spot(path, max(diff.find(piece), 0))),)
                problems.append(Problem(message, (*place, key, index), spots))
    return problems


def _item_problems(
    patterns: Sequence[tuple[int, ItemPattern]], items: list[Item], place: JsonPath
) -> list[Problem]:
    position = 0
    for number, pattern in patterns:
        start = position
        while position < len(items) and not _fits(pattern, items[position].members):
            position += 1
        if position == len(items):
            return [_missing_item_problem(pattern, number, items, start, place)]
        position += 1
    return []


def _missing_item_problem(
    pattern: ItemPattern, number: int, items: list[Item], start: int, place: JsonPath
) -> Problem:
    """Return the problem of a missing item, with the nearest one and its difference."""
    kind = pattern if isinstance(pattern, str) else next(iter(pattern))
    found_types = f"found: {', '.join(item.type for item in items) or 'none'}"
    item_place = (*place, number)
    head = f"items[{number}]: no {_describe_pattern(pattern)} in its place"
    near = next((item for item in items[start:] if item.type == kind), None)
    if near is None:
        early = any(_fits(pattern, item.members) for item in items[:start])
        order = f"; one came before items[{number - 1}]" if early and number else ""
        return Problem(f"{head}{order}; {found_types}", item_place)
    expected_members = {} if isinstance(pattern, str) else pattern[kind]
    values = {key: near.members.get(key, MISSING) for key in expected_members}
    key = next(
        key for key, value in expected_members.items() if not _is_accepted(value, values[key])
    )
    path, offset, expected, actual = _first_difference(expected_members[key], values[key])
    path = (*near.path, key, *path)
    message = (
        f"{head}; the nearest, item {text(near.members.get('id')) or '?'}, has {show_path(path)}: "
        f"{actual}, expected {expected}; {found_types}"
    )
    spots = ((near.frame.seq, Spot(path, offset)),)
    return Problem(message, (*item_place, kind, key), spots)


def _fits(pattern: ItemPattern, item: dict[str, Any]) -> bool:
    if isinstance(pattern, str):
        return item.get("type") == pattern
    return all(
        item.get("type") == kind
        and all(_is_accepted(value, item.get(key, MISSING)) for key, value in members.items())
        for kind, members in pattern.items()
    )


def _is_accepted(expected: Any, actual: Any) -> bool:
    """Return whether a member has an accepted value; if it may be absent, it may be null too."""
    values = accepted_values(expected)
    may_be_absent = len(values) > 1 and "absent" in values
    return any(_meets(candidate, actual) for candidate in values) or (
        may_be_absent and actual in (MISSING, None)
    )


def _meets(expected: Any, value: Any) -> bool:
    piece = contained_text(expected)
    return value == expected if piece is None else piece in text(value)


def _first_difference(expected: Any, value: Any) -> tuple[JsonPath, int, str, str]:
    """Return the path and offset of a member's first difference, and both values there."""
    values = accepted_values(expected)
    if len(values) > 1:
        return (), 0, " or ".join(map(_describe_value, values)), literal(value)
    piece = contained_text(values[0])
    if piece is not None:
        return (), 0, _describe_value(values[0]), literal(value)
    first = difference(values[0], value)
    return first.path, first.offset or 0, first.expected, first.actual


def _describe_value(value: Any) -> str:
    piece = contained_text(value)
    if piece is not None:
        return f"a text with {literal(piece)} in it"
    return "absent" if value == "absent" else literal(value, 60)


def _describe_pattern(pattern: ItemPattern) -> str:
    if isinstance(pattern, str):
        return pattern
    kind, expected = next(iter(pattern.items()))
    members = ", ".join(f"{key}: {literal(value, 60)}" for key, value in expected.items())
    return f"{kind} with {members}" if members else kind
