"""The choices of a legal server, read from a tape of bytes.

After the end of the tape the plainest choice is taken, so that a failing conversation shrinks to
the choices that matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

POLICIES = ("untrusted", "on-request", "never", "on-failure", "reject")


class Tape:
    """A sequence of choices; 0, the plainest, after the end of the bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = iter(data)

    def below(self, bound: int) -> int:
        """Return a number from 0 to `bound` - 1."""
        return next(self._data, 0) % bound

    def one(self, choices: Sequence[T]) -> T:
        """Return one of the choices; the first is the plainest."""
        return choices[self.below(len(choices))]

    def chance(self, of: int = 2) -> bool:
        """Return True in one of `of` cases."""
        return self.below(of) == of - 1


@dataclass(frozen=True, slots=True)
class Habits:
    """Choices at open points that a server makes once for a whole conversation."""

    echoes: bool  # It shows what the user said as items; no sentence asks for it.
    queues: bool  # Its notifications wait in a queue, which its answers overtake.
    items_per_turn: bool  # It counts items anew in each turn.
    nulls: bool  # It writes members it has no value for as null.
    more: bool  # It writes members that the text does not list.
    tagged: bool  # It writes the member `jsonrpc`.
    live: bool  # thread/read shows the status of now, and not notLoaded.
    failed_is_idle: bool  # After a failed turn a thread is idle, and not in systemError.
    status_first: bool  # The status is told before turn/started and turn/completed.
    running_is_read: bool  # thread/read shows the turn that runs.
    completes_cut_off: bool  # What an interrupt cut off is completed.

    @staticmethod
    def chosen(tape: Tape) -> "Habits":
        """Return habits chosen by the tape."""
        echoes, queues = not tape.chance(4), tape.chance()
        return Habits(echoes, queues, *(tape.chance() for _ in range(9)))

    def optional(self, **members: Any) -> dict[str, Any]:
        """Return members without a value: as null, or left out."""
        return dict.fromkeys(members) if self.nulls else {}

    def extra(self) -> dict[str, Any]:
        """Return a member that the specification does not list, if the server adds any."""
        return {"x-note": "of our own"} if self.more else {}
