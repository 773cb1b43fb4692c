"""Whether a scenario's own expectations were met.

Here: comparing what a run gave with `expect`; the answer is a list of sentences, empty when all is
met. Expectations are partial: what they do not mention is free. Not here: rules of the protocol.
"""

from pathlib import Path
from typing import Any

from harness.backend.model import ScriptedModel
from harness.scenario.model import ItemPattern, Outcome, Scenario
from harness.scenario.player import Cast
from harness.trace.frame import Frame
from harness.trace.values import MISSING, dig, obj, text
from harness.trace.views import Conversation


def unmet(
    scenario: Scenario, cast: Cast, conversation: Conversation, model: ScriptedModel, cwd: Path
) -> list[str]:
    """Every expectation that was not met."""
    run = _Run(cast, conversation, model, cwd)
    problems = run.problems(scenario.expect)
    if scenario.expect.any_of:
        tries = [run.problems(outcome) for outcome in scenario.expect.any_of]
        if all(tries):
            best = min(tries, key=len)
            problems.append(f"none of {len(tries)} accepted outcomes; the nearest: {best[0]}")
    problems += _of_the_model(scenario, model)
    return problems


def _of_the_model(scenario: Scenario, model: ScriptedModel) -> list[str]:
    """What the audit of the model calls found."""
    problems = [problem for call in model.calls for problem in call.problems]
    # A step that a turn never asked for is a hole in the script or in the server: either way the
    # scenario did not play what it says it plays, unless it says how many calls are right.
    counted = any(one.model_calls is not None for one in (scenario.expect, *scenario.expect.any_of))
    if model.unplayed and not problems and not counted:
        problems.append(f"{model.unplayed} model step(s) were never asked for")
    return problems


class _Run:
    def __init__(
        self, cast: Cast, conversation: Conversation, model: ScriptedModel, cwd: Path
    ) -> None:
        self._cast = cast
        self._conversation = conversation
        self._model = model
        self._cwd = cwd

    def problems(self, outcome: Outcome) -> list[str]:
        found: list[str] = []
        for alias, accepted in outcome.turns.items():
            statuses = [accepted] if isinstance(accepted, str) else list(accepted)
            turn = self._conversation.turns.get(self._cast.turns.get(alias, ""))
            status = turn.status if turn else ""
            if status not in statuses:
                found.append(
                    f"turn {alias}: expected {' or '.join(statuses)}; "
                    f"found {status or 'no turn/completed'}"
                )
        if outcome.items is not None:
            found += _items(outcome.items, self._items())
        if outcome.model_calls is not None and len(self._model.calls) != outcome.model_calls:
            found.append(
                f"model calls: expected {outcome.model_calls}; found {len(self._model.calls)}"
            )
        for name, wanted in outcome.workspace.items():
            found += _file(self._cwd / name, name, wanted)
        return found

    def _items(self) -> list[dict[str, Any]]:
        """The final form of each item of the scenario's turns, in the order of appearance."""
        seen: list[tuple[int, dict[str, Any]]] = []
        for turn_id in self._cast.turns.values():
            turn = self._conversation.turns.get(turn_id)
            for item in turn.items.values() if turn else ():
                frames: list[Frame] = [*item.started, *item.completed]
                if frames:
                    seen.append((frames[0].seq, obj(dig(frames[-1].params, "item"))))
        return [item for _, item in sorted(seen, key=lambda entry: entry[0])]


def _items(patterns: list[ItemPattern], items: list[dict[str, Any]]) -> list[str]:
    position = 0
    for pattern in patterns:
        while position < len(items) and not _fits(pattern, items[position]):
            position += 1
        if position == len(items):
            seen = ", ".join(text(item.get("type")) or "?" for item in items) or "none"
            return [f"items: no {_shown(pattern)} in its place; found: {seen}"]
        position += 1
    return []


def _fits(pattern: ItemPattern, item: dict[str, Any]) -> bool:
    if isinstance(pattern, str):
        return item.get("type") == pattern
    return all(
        item.get("type") == kind
        and all(item.get(key, MISSING) == value for key, value in want.items())
        for kind, want in pattern.items()
    )


def _shown(pattern: ItemPattern) -> str:
    if isinstance(pattern, str):
        return pattern
    kind, want = next(iter(pattern.items()))
    return f"{kind} with " + ", ".join(f"{key} = {value!r}" for key, value in want.items())


def _file(path: Path, name: str, wanted: str) -> list[str]:
    try:
        if path.exists() and not path.is_file():
            return [f"workspace: {name} is no file"]
        content = path.read_text("utf-8")
    except FileNotFoundError:
        return [] if wanted == "absent" else [f"workspace: {name} is absent"]
    except (OSError, UnicodeDecodeError) as error:
        return [f"workspace: {name} cannot be read: {error}"]
    if wanted == "absent":
        return [f"workspace: {name} exists; expected absent"]
    return (
        [] if content == wanted else [f"workspace: {name}: expected {wanted!r}, found {content!r}"]
    )
