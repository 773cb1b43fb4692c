"""Selectors of frames: named predicates, evaluated while frames pass.

They select only threads and turns that the client started in this conversation ("ours"), since
rules judge no others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from harness.faults.site import FaultSite
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame, Kind, Origin
from harness.trace.views import TurnView

# True, False, or None: unknown until a later frame. At the end None means False.
Verdict: TypeAlias = bool | None
Fits: TypeAlias = Callable[[FaultSite, Frame], Verdict]


@dataclass(frozen=True, slots=True)
class Selector:
    """A predicate on frames that finds the place of a fault. `description` names such a frame."""

    description: str
    fits: Fits

    def where(self, condition: Fits, description: str = "") -> "Selector":
        """Return a narrower selector; `description` describes the condition."""

        def both(site: FaultSite, frame: Frame) -> Verdict:
            fits = self.fits(site, frame)
            return condition(site, frame) if fits else fits

        return Selector(f"{self.description} {description}".rstrip(), both)


def from_target(kind: Kind) -> Selector:
    """Select a frame of this kind that the target wrote."""
    return Selector(
        f"{kind} of the target", lambda _, f: f.origin is Origin.TARGET and f.kind is kind
    )


def our_frame(kind: Kind) -> Selector:
    """Select a frame of this kind that the client wrote, not malformed on purpose."""
    return Selector(
        f"{kind} of ours",
        lambda _, f: f.origin is Origin.HARNESS and f.kind is kind and not f.deliberate,
    )


def our_request(method: str) -> Selector:
    """Select a request of the client."""
    return Selector(
        f"{method} of ours",
        lambda site, f: our_frame(Kind.REQUEST).fits(site, f) and f.method == method,
    )


def answer_to(method: str) -> Selector:
    """Select a successful answer to a request of the client."""
    return _answer(method, Kind.RESPONSE, "answer")


def refusal_of(method: str) -> Selector:
    """Select an error in answer to a request of the client."""
    return _answer(method, Kind.ERROR, "refusal")


def notification(method: str) -> Selector:
    """Select a notification of the target."""
    return Selector(
        method,
        lambda _, f: (
            f.origin is Origin.TARGET and f.kind is Kind.NOTIFICATION and f.method == method
        ),
    )


def read_with_turns() -> Selector:
    """Select a successful answer to a thread/read with `includeTurns`."""
    return answer_to("thread/read").where(
        lambda site, f: site.params_of(f).get("includeTurns") is True, "with turns"
    )


def thread_announced() -> Selector:
    """Select the thread/started of a thread that the client started."""
    return notification("thread/started").where(
        lambda site, f: site.is_our_thread(_thread_id(f)), "of a thread of ours"
    )


def status(kind: str = "") -> Selector:
    """Select a thread/status/changed, of a type if given, of the first of our threads with one."""

    def of_the_first(site: FaultSite, frame: Frame) -> Verdict:
        if kind and dig(frame.params, "status", "type") != kind:
            return False
        ours = site.is_our_thread(_thread_id(frame))
        threads = [thread for thread in site.conversation.threads.values() if thread.statuses]
        seqs = {t.statuses[0].seq: t.id for t in threads if site.is_our_thread(t.id)}
        return seqs[min(seqs)] == _thread_id(frame) if ours else ours

    return notification("thread/status/changed").where(of_the_first, kind)


def turn_reply() -> Selector:
    """Select the answer to turn/start that gives the client a turn."""

    def gives(site: FaultSite, frame: Frame) -> Verdict:
        turn = site.turn_of(frame)
        return turn is not None and turn.reply is frame

    return answer_to("turn/start").where(gives, "that gives a turn")


def turn_started() -> Selector:
    """Select the turn/started of a turn that the client started."""

    def announces(site: FaultSite, frame: Frame) -> Verdict:
        turn = site.turn_of(frame)
        return turn is not None and turn.starts[:1] == [frame] and site.is_our_turn(turn)

    return notification("turn/started").where(announces, "of a turn of ours")


def turn_completed(*statuses: str) -> Selector:
    """Select the end of an announced turn of the client, with one of these statuses if given."""

    def ends(site: FaultSite, frame: Frame) -> Verdict:
        turn = site.turn_of(frame)
        if turn is None or turn.completions[:1] != [frame] or not turn.starts:
            return False
        return (not statuses or turn.status in statuses) and site.is_our_turn(turn)

    return notification("turn/completed").where(ends, " or ".join(statuses))


def turn_in(site: FaultSite, frame: Frame) -> TurnView:
    """Return the turn of a frame. Raises `ValueError` if it has none."""
    turn = site.turn_of(frame)
    if turn is None:
        raise ValueError(f"frame {frame.seq} is about no turn")
    return turn


def _answer(method: str, kind: Kind, word: str) -> Selector:
    def answers(site: FaultSite, frame: Frame) -> Verdict:
        request = site.request_of(frame) if frame.kind is kind else None
        return request is not None and request.method == method

    return Selector(f"{word} to {method}", answers)


def _thread_id(frame: Frame) -> str:
    params = obj(frame.params)
    return text(params.get("threadId")) or text(dig(params, "thread", "id"))
