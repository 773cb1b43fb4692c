"""The turns of an SDK in a stored play, as faults see them."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.faults.base import NotApplied, StoredOnly
from harness.faults.site import FaultSite
from harness.faults.stored import change
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame
from harness.trace.trace import Trace

WHY = "the calls of a driver are not a stream between a client and a server"
Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SdkTurn:
    """A turn: its driver's message, its request, and one message about it.

    `message` is a copy, which edits change in place; `earlier` and `later` are the turns of the
    other messages with the same member, in order.
    """

    driver: Message
    request: Message
    message: Message
    earlier: tuple["SdkTurn", ...] = ()
    later: tuple["SdkTurn", ...] = ()

    @property
    def agent(self) -> Message:
        """The options of the client."""
        return obj(self.driver.get("agent"))

    @property
    def thread(self) -> Message:
        """The options of the thread."""
        return obj(self.driver.get("thread"))

    @property
    def process(self) -> Message:
        """The variables of the driver's own process."""
        return obj(self.driver.get("process"))

    @property
    def is_first(self) -> bool:
        """Return whether this is the first turn of a new thread."""
        return self.request.get("turn") == 1 and self.driver.get("resume") is None

    @property
    def abort_time(self) -> str:
        """The time when its signal is aborted: "before", "during", "" for never."""
        return text(self.request.get("abort"))

    @property
    def ends_with(self) -> str:
        """The type of the event with which the scripted agent ends it, "" for none."""
        types = [text(obj(event).get("type")) for event in arr(self.request.get("writes"))]
        return next((name for name in types if name in ("turn.completed", "turn.failed")), "")

    @property
    def start(self) -> Message:
        """The start of the agent in `message`, which an edit may change."""
        return obj(self.message.get("started"))

    @property
    def argv(self) -> list[str]:
        """The words of the agent's command line."""
        return [text(word) for word in arr(self.start.get("argv"))]


# Changes `message` of a turn in place. If it has no place, it raises `NotApplied` or does nothing.
TurnEdit = Callable[[SdkTurn], None]


def edit_turn(member: str, do: TurnEdit, description: str) -> StoredOnly:
    """Return a change of the first message with `member` on which `do` has an effect."""

    def make(_: FaultSite, trace: Trace) -> Trace:
        for frame, turn in _turns(trace, member):
            try:
                do(turn)
            except NotApplied:
                continue
            if turn.message != frame.json:
                return change(trace, [frame], lambda _, turn=turn: turn.message)
        raise NotApplied(f"no {description}")

    return StoredOnly(WHY, make)


def _turns(trace: Trace, member: str) -> Iterator[tuple[Frame, SdkTurn]]:
    """Yield the frames whose message has `member`, each with its turn."""
    drivers: dict[Any, Message] = {}
    requests: dict[tuple[Any, Any], Message] = {}
    turns: list[tuple[Frame, SdkTurn]] = []
    for frame in trace.frames:
        message = obj(frame.json)
        number = message.get("id")
        if "agent" in message:
            drivers[number] = message
        elif "call" in message:
            requests[number, message.get("turn")] = message
        elif member in message:
            turn = requests.get((number, message.get("turn")), {})
            message_copy = copy.deepcopy(message)
            turns.append((frame, SdkTurn(drivers.get(number, {}), turn, message_copy)))
    for place, (frame, own) in enumerate(turns):
        before = tuple(other for _, other in turns[:place])
        after = tuple(other for _, other in turns[place + 1 :])
        yield (frame, SdkTurn(own.driver, own.request, copy.deepcopy(own.message), before, after))
