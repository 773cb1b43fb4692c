"""Progress of turns as one client reads it: the model is asked, answers, or was steered.

Connections read a turn at their own pace, so each has its own facts. Rows name them as
`{progress.asked}`, of the turn that a message is about.
"""

from collections.abc import Callable
from typing import Any, Final, cast

MAX_TURNS: Final = 1000
"""Turns that are remembered at once; the oldest are forgotten first."""
_ANSWERS: Final = frozenset({"agentMessage", "reasoning", "plan", "webSearch"})
"""Items of the model's answer; the model is asked again after the others."""
_USER: Final = "userMessage"
_COMPACTION: Final = "contextCompaction"
_REVIEW: Final = frozenset({"enteredReviewMode", "exitedReviewMode"})
"""Items of a review, whose questions to the model no client sees."""
_USAGE: Final = "thread/tokenUsage/updated"

Facts = dict[str, Any]
Change = Callable[[Facts, Facts], None]
"""Remembers, in the facts of a turn, what the body of a message says."""


def _set(**values: bool) -> Change:
    return lambda turn, _body: turn.update(values)


def _steer(turn: Facts, _body: Facts) -> None:
    is_answering = turn.get("speaking") and not turn.get("over") and not turn.get("working")
    turn["steered"] = bool(turn.get("user") and is_answering)


def _begin_tool(turn: Facts, _body: Facts) -> None:
    turn.update(asked=False, working=turn.get("working", 0) + 1)


def _end_tool(turn: Facts, _body: Facts) -> None:
    # The model is asked again even where the client does not read of the end.
    turn.update(asked=True, working=max(turn.get("working", 0) - 1, 0))


def _begin_compaction(turn: Facts, body: Facts) -> None:
    _begin_tool(turn, body)
    turn["compacting"] = True


def _end_compaction(turn: Facts, body: Facts) -> None:
    _end_tool(turn, body)
    turn["compacting"] = False


def _end_answer(turn: Facts, _body: Facts) -> None:
    turn.update(stale=turn.get("steered", False), steered=False, over=True)


class Progress:
    """Facts of turns by id.

    `asked`: the model was asked, and has not begun to answer. `speaking`: its answer
    has not ended; `over`: it has, whatever the client has read; `retrying`: it failed, and the
    next attempt has not begun. `working`: tools run. `steered`: a message of the user came during
    this answer; `stale`: the usage that the client reads now is that of such an answer.
    `compacting`: the model is asked for a summary.
    """

    def __init__(self) -> None:
        self._turns: dict[str, Facts] = {}

    def of(self, body: Facts) -> Facts | None:
        """Return the facts of the turn that the body of a message is about, None without one."""
        turn = body.get("turn")
        named = cast("Facts", turn).get("id") if isinstance(turn, dict) else body.get("turnId")
        if not isinstance(named, str):
            return None
        found = self._turns.get(named)
        if found is None:
            found = self._turns[named] = {}
            while len(self._turns) > MAX_TURNS:
                del self._turns[next(iter(self._turns))]
        return found


def early_change_of(step: str) -> Change | None:
    """Return how to remember what the server said, even if the client reads it later."""
    method, item = _parts(step)
    if method == _USAGE:
        return _end_answer
    if item in _ANSWERS | _REVIEW:
        return None
    if item == _COMPACTION:
        return _begin_compaction if method == "item/started" else _end_compaction
    if method == "item/started":
        return _steer if item == _USER else _begin_tool
    if method == "item/completed" and item != _USER:
        return _end_tool
    return None


def change_of(step: str) -> Change | None:
    """Return how to remember what the client reads, None if nothing of it is."""
    method, item = _parts(step)
    if step == "turn/interrupt result":
        return _set(speaking=False)
    if method == _USAGE:
        # If the turn goes on, it does so with a question.
        return _set(asked=True, speaking=False)
    if method == "error":
        return _note_error
    if method == "item/started" and item == _USER:
        return _set(user=True, speaking=True, over=False)
    if method == "item/started" and item in _ANSWERS:
        return _set(asked=False, speaking=True, over=False, retrying=False)
    if method == "item/completed" and item not in _ANSWERS | _REVIEW:
        return _set(asked=True)
    return None


def _note_error(turn: Facts, body: Facts) -> None:
    if body.get("willRetry"):
        turn.update(asked=True, retrying=True, over=True)


def _parts(step: str) -> tuple[str, str]:
    """Return the method of a step and the type of its item, "" if it has none."""
    method, _, rest = step.partition(" ")
    return method, rest.partition(" ")[0]
