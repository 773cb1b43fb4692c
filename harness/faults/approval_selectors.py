"""Selectors of approvals' frames: the question, our answer, and the frames after it."""

from harness.faults.selectors import Selector, Verdict, notification, turn_completed, turn_in
from harness.faults.site import APPROVALS, Approval, FaultSite
from harness.trace.frame import Frame


def question(*methods: str) -> Selector:
    """Select a request of the target to approve an item, which has begun, of a turn of ours."""
    accepted = methods or APPROVALS
    return Selector(
        "request for an approval",
        lambda site, f: (
            site.find_approval(lambda a: a.question is f and a.fits((), accepted)) is not None
        ),
    )


def decision(*methods: str) -> Selector:
    """Select our answer to such a request."""
    accepted = methods or APPROVALS
    return Selector(
        "answer to a request for an approval",
        lambda site, f: (
            site.find_approval(lambda a: a.answer is f and a.fits((), accepted)) is not None
        ),
    )


def approval_resolved(*decisions: str, methods: tuple[str, ...] = APPROVALS) -> Selector:
    """serverRequest/resolved after an answer, one of these decisions if any is given."""

    def follows(site: FaultSite, frame: Frame) -> Verdict:
        return (
            site.find_approval(
                lambda a: a.resolutions[:1] == [frame] and a.fits(decisions, methods)
            )
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
    """Select the end of a turn with an item that was completed after this decision."""

    def had(site: FaultSite, frame: Frame) -> Verdict:
        turn = turn_in(site, frame)
        return any(
            approval.turn is turn
            and approval.completion
            and whole_approval(site, approval.completion, decision)
            for approval in site.approvals
        )

    return turn_completed().where(had, f"after {decision}")


def whole_approval(
    site: FaultSite, frame: Frame, *decisions: str, methods: tuple[str, ...] = APPROVALS
) -> Approval | None:
    """Return the whole approval that ended with a frame, None if there is none that fits."""
    return site.find_approval(
        lambda a: (
            a.completion is frame
            and len(a.resolutions) == 1
            and len(a.item.starts) == 1
            and a.fits(decisions, methods)
        )
    )
