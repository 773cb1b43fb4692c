"""Targets of waits: words for people, and a kind for comparisons."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class WaitTarget:
    """The target of a step's wait.

    `words` name this target (`the end of turn u`); `kind` has no alias and no number of one
    scenario (`the end of a turn`), so it is equal if two scenarios wait for the same thing.
    Conditions on a message belong to its kind. `notification` is the `notification_kind` of the
    target, "" for anything else.
    """

    kind: str
    words: str
    notification: str = ""

    @classmethod
    def of_words(cls, words: str) -> "WaitTarget":
        """Return a target whose words are the same in every scenario."""
        return cls(words, words)


NO_TARGET = WaitTarget.of_words("")
# The answer to a request of any method.
ANSWER = WaitTarget.of_words("an answer")


def notification_kind(method: str, item_type: object = None) -> str:
    """Return a notification's method and item type: `item/completed of contextCompaction`."""
    return f"{method} of {item_type}" if isinstance(item_type, str) else method


def awaited_notification_kind(method: str, conditions: Mapping[str, Any]) -> str:
    """Return `notification_kind` for a wait; `conditions` maps dotted paths to values."""
    return notification_kind(method, conditions.get("item.type"))


def end_of_turn(name: str) -> WaitTarget:
    """Return the target for the end of a turn; `name` is its alias or its id."""
    return WaitTarget("the end of a turn", f"the end of turn {name}")


def model_call(number: int, *, until_ended: bool) -> WaitTarget:
    """Return the target for a model call (from 1), or for the end of its stream."""
    end = "the end of " if until_ended else ""
    return WaitTarget(f"{end}a model call", f"{end}model call {number}")


def gate(name: str) -> WaitTarget:
    """Return the target for the model's stream, held at a gate."""
    return WaitTarget("the model's stream at a gate", f"the model's stream at gate {name}")
