"""The object of a step's wait: its words for people, and its kind for comparisons."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Awaited:
    """The present object of a step's wait.

    `words` name this very thing (`the end of turn u`); `kind` has no alias and no number of one
    scenario (`the end of a turn`), so it is equal where two scenarios wait for the same. What a
    message must have belongs to its kind. `notification` is what is awaited as `notification_of`
    has it, "" for anything else.
    """

    kind: str
    words: str
    notification: str = ""

    @classmethod
    def plainly(cls, words: str) -> "Awaited":
        """Something whose words are the same in every scenario."""
        return cls(words, words)


NOTHING = Awaited.plainly("")
# The answer to a request; the kind does not say of which method.
ANSWER = Awaited.plainly("an answer")


def notification_of(method: str, item_type: object = None) -> str:
    """Return what is told, whatever it is told about: `item/completed of contextCompaction`."""
    return f"{method} of {item_type}" if isinstance(item_type, str) else method


def notification_wanted(method: str, where: Mapping[str, Any]) -> str:
    """Return `notification_of` for a wait; `where` maps dotted paths in the params to values."""
    return notification_of(method, where.get("item.type"))


def end_of_turn(name: str) -> Awaited:
    """The end of a turn; `name` is its alias or its id."""
    return Awaited("the end of a turn", f"the end of turn {name}")


def model_call(number: int, *, ended: bool) -> Awaited:
    """A model call (from 1), or with `ended` the end of its stream."""
    end = "the end of " if ended else ""
    return Awaited(f"{end}a model call", f"{end}model call {number}")


def gate(name: str) -> Awaited:
    """The model's stream, held at a gate."""
    return Awaited("the model's stream at a gate", f"the model's stream at gate {name}")
