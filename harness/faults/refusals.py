"""Faults that reject a request which a server must grant: an error, and no later notifications."""

from dataclasses import dataclass

from harness.faults.base import Condition
from harness.faults.changes import wait_for
from harness.faults.operators import refuse
from harness.faults.queue import FrameQueue, Steps
from harness.faults.selectors import Fits, Selector
from harness.faults.site import FaultSite
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame
from harness.trace.trace import Trace

ID_PATHS = (("threadId",), ("turnId",), ("thread", "id"), ("turn", "id"))


@dataclass(frozen=True, slots=True)
class RefuseAnswer:
    """A change that makes the first answer an error, and drops the frames of its thread or turn."""

    pick: Selector
    message: str

    def __call__(self, queue: FrameQueue) -> Steps:
        """Run the change over a conversation."""
        answer = yield from wait_for(queue, self.pick)
        made, thread_id = id_given_by(answer), queue.site.params_of(answer).get("threadId")
        refuse(self.message)(queue, answer)
        runs = bool(thread_id)
        while (now := (yield)) is not None:
            if now.from_target and made in named_ids(now):
                queue.drop(now)
                runs = runs and now.method != "turn/completed"
            elif runs and now.method == "thread/status/changed" and thread_id in named_ids(now):
                queue.drop(now)


def no_later_requests(pick: Selector) -> Condition:
    """Return the condition that no later request names the thread or turn of the first answer."""

    def holds(trace: Trace) -> bool:
        site = FaultSite.of_trace(trace)
        answer = next((frame for frame in trace.frames if pick.fits(site, frame)), None)
        if answer is None:
            return False
        ours = [other for other in site.frames_after(answer) if not other.from_target]
        return not any(id_given_by(answer) in named_ids(request) for request in ours)

    return Condition(f"{pick.description} of which nothing more is asked", holds)


def request_has(name: str, *words: str) -> Fits:
    """Return a predicate: the param `name` of the answered request is one of these words."""
    return lambda site, frame: site.params_of(frame).get(name) in words


def id_given_by(answer: Frame) -> str:
    """Return the id of the turn, or else of the thread, in a result; "" if it has neither."""
    return text(dig(answer.result, "turn", "id")) or text(dig(answer.result, "thread", "id"))


def named_ids(frame: Frame) -> set[str]:
    """Return the ids of threads and turns that a message names, with "" for missing ones."""
    return {text(dig(obj(frame.params), *path)) for path in ID_PATHS}
