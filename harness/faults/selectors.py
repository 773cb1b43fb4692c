"""Selectors of frames: named questions about one frame, asked while frames pass.

Only threads and turns that the conversation itself started are offered, since rules judge no
others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from harness.faults.site import FaultSite
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame, Kind, Origin
from harness.trace.views import TurnView

# True, False, or None: not known yet, ask again after the next frame. At the end None means False.
Verdict: TypeAlias = bool | None
Fits: TypeAlias = Callable[[FaultSite, Frame], Verdict]


@dataclass(frozen=True, slots=True)
class Selector:
    """A question about a frame: whether it is the place of a fault. `what` names such a frame."""

    what: str
    fits: Fits

    def where(self, more: Fits, what: str = "") -> "Selector":
        """Those of which something more is true; `what` says it in words."""

        def both(site: FaultSite, frame: Frame) -> Verdict:
            fits = self.fits(site, frame)
            return more(site, frame) if fits else fits

        return Selector(f"{self.what} {what}".rstrip(), both)


def from_target(kind: Kind) -> Selector:
    """A frame of the target of a kind."""
    return Selector(
        f"{kind} of the target", lambda _, f: f.origin is Origin.TARGET and f.kind is kind
    )


def own(kind: Kind) -> Selector:
    """A frame of ours of a kind."""
    return Selector(
        f"{kind} of ours",
        lambda _, f: f.origin is Origin.HARNESS and f.kind is kind and not f.deliberate,
    )


def sent(method: str) -> Selector:
    """A request of ours."""
    return Selector(
        f"{method} of ours",
        lambda site, f: own(Kind.REQUEST).fits(site, f) and f.method == method,
    )


def answer_to(method: str) -> Selector:
    """A successful answer to a request of ours."""
    return _answer(method, Kind.RESPONSE, "answer")


def refusal_of(method: str) -> Selector:
    """An error in answer to a request of ours."""
    return _answer(method, Kind.ERROR, "refusal")


def notification(method: str) -> Selector:
    """A notification of the target."""
    return Selector(
        method,
        lambda _, f: (
            f.origin is Origin.TARGET and f.kind is Kind.NOTIFICATION and f.method == method
        ),
    )


def read_with_turns() -> Selector:
    """A successful answer to a thread/read that asked for the turns."""
    return answer_to("thread/read").where(
        lambda site, f: site.asked(f).get("includeTurns") is True, "with turns"
    )


def thread_announced() -> Selector:
    """The thread/started of a thread that we started."""
    return notification("thread/started").where(
        lambda site, f: site.our_thread(_thread_id(f)), "of a thread of ours"
    )


def status(kind: str = "") -> Selector:
    """A thread/status/changed of the first thread of ours that has any, of this type if given."""

    def of_the_first(site: FaultSite, frame: Frame) -> Verdict:
        if kind and dig(frame.params, "status", "type") != kind:
            return False
        ours = site.our_thread(_thread_id(frame))
        threads = [one for one in site.conversation.threads.values() if one.statuses]
        seqs = {one.statuses[0].seq: one.id for one in threads if site.our_thread(one.id)}
        return seqs[min(seqs)] == _thread_id(frame) if ours else ours

    return notification("thread/status/changed").where(of_the_first, kind)


def turn_reply() -> Selector:
    """The answer to turn/start that gives us a turn."""

    def gives(site: FaultSite, frame: Frame) -> Verdict:
        turn = site.turn_of(frame)
        return turn is not None and turn.reply is frame

    return answer_to("turn/start").where(gives, "that gives a turn")


def turn_started() -> Selector:
    """The announcement of a turn of ours."""

    def announces(site: FaultSite, frame: Frame) -> Verdict:
        turn = site.turn_of(frame)
        return turn is not None and turn.started[:1] == [frame] and site.ours(turn)

    return notification("turn/started").where(announces, "of a turn of ours")


def turn_completed(*statuses: str) -> Selector:
    """The end of a turn of ours that was announced, with one of these statuses if any is given."""

    def ends(site: FaultSite, frame: Frame) -> Verdict:
        turn = site.turn_of(frame)
        if turn is None or turn.completed[:1] != [frame] or not turn.started:
            return False
        return (not statuses or turn.status in statuses) and site.ours(turn)

    return notification("turn/completed").where(ends, " or ".join(statuses))


def turn_in(site: FaultSite, frame: Frame) -> TurnView:
    """The turn of a frame that was picked as one of a turn."""
    turn = site.turn_of(frame)
    if turn is None:
        raise ValueError(f"frame {frame.seq} is about no turn")
    return turn


def _answer(method: str, kind: Kind, what: str) -> Selector:
    def answers(site: FaultSite, frame: Frame) -> Verdict:
        request = site.request_of(frame) if frame.kind is kind else None
        return request is not None and request.method == method

    return Selector(f"{what} to {method}", answers)


def _thread_id(frame: Frame) -> str:
    params = obj(frame.params)
    return text(params.get("threadId")) or text(dig(params, "thread", "id"))
