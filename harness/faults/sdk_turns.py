"""The turns of an SDK in a stored play, as faults see them: what was asked, what was started."""

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

WHY = "what a driver tells of its calls is no stream between a client and a server"
Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SdkTurn:
    """A turn: the client's and the thread's options, the turn's own, and one message about it.

    `message` is a copy, which an edit changes; `earlier` are the ones with the same member before
    it, with their drivers' options.
    """

    driver: Message
    asked: Message
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
        """Return whether it is the first turn of a new thread."""
        return self.asked.get("turn") == 1 and self.driver.get("resume") is None

    @property
    def aborted(self) -> str:
        """Return when its signal is aborted, "" for never."""
        return text(self.asked.get("abort"))

    @property
    def ends_with(self) -> str:
        """The type of the event with which the scripted agent ends it, "" for none."""
        types = [text(obj(one).get("type")) for one in arr(self.asked.get("writes"))]
        return next((one for one in types if one in ("turn.completed", "turn.failed")), "")

    @property
    def started(self) -> Message:
        """Return the start of the agent, to be changed."""
        return obj(self.message.get("started"))

    @property
    def argv(self) -> list[str]:
        """Its words."""
        return [text(one) for one in arr(self.started.get("argv"))]


# Changes `message` of a turn. Raises `NotApplied`, or changes nothing, where it has no place.
TurnEdit = Callable[[SdkTurn], None]


def turn_with(member: str, do: TurnEdit, what: str) -> StoredOnly:
    """The first message with this member in which the edit has a place; `what` names that place."""

    def make(_: FaultSite, trace: Trace) -> Trace:
        for frame, turn in _turns(trace, member):
            try:
                do(turn)
            except NotApplied:
                continue
            if turn.message != frame.json:
                return change(trace, [frame], lambda _, turn=turn: turn.message)
        raise NotApplied(f"no {what}")

    return StoredOnly(WHY, make)


def _turns(trace: Trace, member: str) -> Iterator[tuple[Frame, SdkTurn]]:
    """The messages with a member, each with its turn."""
    drivers: dict[Any, Message] = {}
    asked: dict[tuple[Any, Any], Message] = {}
    found: list[tuple[Frame, SdkTurn]] = []
    for frame in trace.frames:
        message = obj(frame.json)
        number = message.get("id")
        if "agent" in message:
            drivers[number] = message
        elif "call" in message:
            asked[number, message.get("turn")] = message
        elif member in message:
            turn = asked.get((number, message.get("turn")), {})
            copied = copy.deepcopy(message)
            found.append((frame, SdkTurn(drivers.get(number, {}), turn, copied)))
    for place, (frame, one) in enumerate(found):
        before = tuple(other for _, other in found[:place])
        after = tuple(other for _, other in found[place + 1 :])
        yield frame, SdkTurn(one.driver, one.asked, copy.deepcopy(one.message), before, after)
