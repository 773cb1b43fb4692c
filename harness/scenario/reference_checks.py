"""Checks of references such as `$t.thread.id` against the message that the alias names.

Only members in the specification are known; others may be a server's own. A path is wrong if it has
a near miss of a known name, goes into a value without members, or asks a turn for its thread or a
thread for its turn.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.scenario.client_steps import (
    AnswerStep,
    ClientStep,
    RequestStep,
    StartThreadStep,
    StartTurnStep,
    SteerStep,
    Wait,
    WaitStep,
)
from harness.scenario.lexicon import Lexicon, Mistake, Side
from harness.scenario.paths import nest_paths
from harness.scenario.references import paths_of_references
from harness.scenario.yaml12 import Loc

_SUBJECTS = ("thread", "turn")

FindMistakes = Callable[[str, dict[str, Any], Loc, Side], list[Mistake]]


@dataclass(frozen=True, slots=True)
class Origin:
    """Methods of the messages that can define an alias, and the part that it names."""

    methods: tuple[str, ...]
    side: Side


def origin_of(step: ClientStep) -> Origin | None:
    """Return the origin of the alias that a step defines; None if that is unknown."""
    match step:
        case StartThreadStep():
            return Origin(("thread/start",), "result")
        case StartTurnStep():
            return Origin(("turn/start",), "result")
        case SteerStep(steer=body) if body.expect == "result":
            return Origin(("turn/steer",), "result")
        case RequestStep(request=body) if body.expect == "result" and not body.deliberate:
            return Origin((body.method,), "result")
        case AnswerStep(answer=body):
            return Origin((body.to,), "params")
        case WaitStep(wait=body):
            methods = _awaited_methods(body)
            return Origin(tuple(methods), "params") if methods else None
        case _:
            return None


def _awaited_methods(wait: Wait) -> Sequence[str]:
    if wait.turn is not None:
        return ["turn/completed"]
    if wait.request is not None:
        return [wait.request]
    named = wait.notification or []
    return [named] if isinstance(named, str) else named


class ReferenceChecker:
    """Aliases that the steps so far define; `mistakes_in` checks paths against them."""

    def __init__(self, lexicon: Lexicon, find_mistakes: FindMistakes) -> None:
        self._lexicon = lexicon
        self._find_mistakes = find_mistakes
        self._origins: dict[str, Origin | None] = {}

    def add(self, step: ClientStep, body: Any) -> None:
        """Record the alias that a step defines, if any; the first definition counts."""
        alias = getattr(body, "alias", None)
        if isinstance(alias, str):
            self._origins.setdefault(alias, origin_of(step))

    def mistakes_in(self, value: Any, own: frozenset[str]) -> list[tuple[Loc, str]]:
        """Return place and message of each wrong path; paths with a name in `own` are skipped."""
        found: list[tuple[Loc, str]] = []
        for place, alias, path in paths_of_references(value):
            origin = self._origins.get(alias)
            if origin is None or not path or not own.isdisjoint(path):
                continue
            messages = [self._mistake(method, origin.side, path) for method in origin.methods]
            if all(messages):
                found.append((place, f"${'.'.join((alias, *path))}: {messages[0]}"))
        return found

    def _mistake(self, method: str, side: Side, path: tuple[str, ...]) -> str:
        """Return a message if the path is wrong for a message of this method, else ""."""
        words = "the result" if side == "result" else "the params"
        known = self._lexicon.members(method, side)
        if known and path[0] in _SUBJECTS and path[0] not in known:
            return f"{words} of {method} has no {path[0]!r}; it has: {', '.join(sorted(known))}"
        value = nest_paths({".".join(path): None})
        for mistake in self._find_mistakes(method, value, path, side):
            if mistake.key:
                return mistake.message
            if len(mistake.path) < len(path):
                at = ".".join(map(str, mistake.path))
                return f"{at!r} in {words} of {method} has no members"
        return ""
