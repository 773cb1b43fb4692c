"""Refusing what a server must grant: an error in place of the answer, and nothing of what follows.

Used by the faults of words, sandboxes and settings that a server does not take.
"""

from dataclasses import dataclass

from harness.faults.base import Given
from harness.faults.changes import until
from harness.faults.operators import refuse
from harness.faults.queue import FrameQueue, Steps
from harness.faults.selectors import Fits, Selector
from harness.faults.site import FaultSite
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame
from harness.trace.trace import Trace

PLACES = (("threadId",), ("turnId",), ("thread", "id"), ("turn", "id"))


@dataclass(frozen=True, slots=True)
class Refused:
    """The first such answer is an error, and nothing is told of the thread or turn it gave."""

    pick: Selector
    message: str

    def __call__(self, queue: FrameQueue) -> Steps:
        """One run over a conversation."""
        answer = yield from until(queue, self.pick)
        made, thread_id = made_by(answer), queue.site.asked(answer).get("threadId")
        refuse(self.message)(queue, answer)
        runs = bool(thread_id)
        while (now := (yield)) is not None:
            if now.from_target and made in named(now):
                queue.drop(now)
                runs = runs and now.method != "turn/completed"
            elif runs and now.method == "thread/status/changed" and thread_id in named(now):
                queue.drop(now)


def nothing_more_is_asked(pick: Selector) -> Given:
    """That the client sends nothing about the thread or turn that the first such answer gave."""

    def holds(trace: Trace) -> bool:
        site = FaultSite.of(trace)
        answer = next((one for one in trace.frames if pick.fits(site, one)), None)
        if answer is None:
            return False
        ours = [one for one in site.later(answer) if not one.from_target]
        return not any(made_by(answer) in named(one) for one in ours)

    return Given(f"{pick.what} of which nothing more is asked", holds)


def asked_with(name: str, *words: str) -> Fits:
    """Return whether the request of an answer had one of these words as a param."""
    return lambda site, frame: site.asked(frame).get(name) in words


def made_by(answer: Frame) -> str:
    """The id of the turn or thread that an answer gives."""
    return text(dig(answer.result, "turn", "id")) or text(dig(answer.result, "thread", "id"))


def named(frame: Frame) -> set[str]:
    """The ids of the thread and the turn that a message names."""
    return {text(dig(obj(frame.params), *path)) for path in PLACES}
