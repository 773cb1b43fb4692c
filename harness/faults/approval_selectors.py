"""Selectors of approvals' frames: the question, our answer, and what follows it."""

from harness.faults.selectors import Selector, Verdict, notification, turn_completed, turn_in
from harness.faults.site import APPROVALS, Approval, FaultSite
from harness.trace.frame import Frame


def question(*methods: str) -> Selector:
    """A request of the target to approve an item, which has begun, of a turn of ours."""
    wanted = methods or APPROVALS
    return Selector(
        "request for an approval",
        lambda site, f: (
            site.approval(lambda one: one.question is f and one.fits((), wanted)) is not None
        ),
    )


def decision(*methods: str) -> Selector:
    """Our answer to such a request."""
    wanted = methods or APPROVALS
    return Selector(
        "answer to a request for an approval",
        lambda site, f: (
            site.approval(lambda one: one.answer is f and one.fits((), wanted)) is not None
        ),
    )


def resolved(*decisions: str, methods: tuple[str, ...] = APPROVALS) -> Selector:
    """serverRequest/resolved after an answer, one of these decisions if any is given."""

    def follows(site: FaultSite, frame: Frame) -> Verdict:
        return (
            site.approval(lambda one: one.resolved[:1] == [frame] and one.fits(decisions, methods))
            is not None
        )

    return notification("serverRequest/resolved").where(
        follows, f"after {' or '.join(decisions) or 'an answer'}"
    )


def decided_item(*decisions: str, methods: tuple[str, ...] = APPROVALS) -> Selector:
    """item/completed after a question, an answer of one of these decisions, and its resolving."""
    return Selector(
        f"item completed after {' or '.join(decisions) or 'an answer'}",
        lambda site, f: whole_approval(site, f, *decisions, methods=methods) is not None,
    )


def decided_turn(decision: str) -> Selector:
    """The end of a turn with an item that was completed after this decision."""

    def had(site: FaultSite, frame: Frame) -> Verdict:
        turn = turn_in(site, frame)
        return any(
            one.turn is turn and one.done and whole_approval(site, one.done, decision)
            for one in site.approvals
        )

    return turn_completed().where(had, f"after {decision}")


def whole_approval(
    site: FaultSite, frame: Frame, *decisions: str, methods: tuple[str, ...] = APPROVALS
) -> Approval | None:
    """The whole approval that ended with a frame, None where there is none that fits."""
    return site.approval(
        lambda one: (
            one.done is frame
            and len(one.resolved) == 1
            and len(one.item.started) == 1
            and one.fits(decisions, methods)
        )
    )
