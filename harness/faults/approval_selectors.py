"""Selectors of the frames of an approval: the request, the client's answer, and later frames."""

from harness.faults.selectors import Selector, Verdict, notification, turn_completed, turn_in
from harness.faults.site import APPROVALS, Approval, FaultSite
from harness.trace.frame import Frame


def question(*methods: str) -> Selector:
    """Select an approval request for a started item of a turn that the client started."""
    accepted = methods or APPROVALS
    return Selector(
        "request for an approval",
        lambda site, f: (
            site.find_approval(lambda a: a.question is f and a.fits((), accepted)) is not None
        ),
    )


def decision(*methods: str) -> Selector:
    """Select the client's answer to an approval request, of one of these methods if given."""
    accepted = methods or APPROVALS
    return Selector(
        "answer to a request for an approval",
        lambda site, f: (
            site.find_approval(lambda a: a.answer is f and a.fits((), accepted)) is not None
        ),
    )


def approval_resolved(*decisions: str, methods: tuple[str, ...] = APPROVALS) -> Selector:
    """Select serverRequest/resolved after an answer, with one of these decisions if given."""

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
    """Select the item/completed that ends a whole approval, of one of these decisions if given."""
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
    """Return the approval whose item completed with `frame` after one item/started and one
    serverRequest/resolved; None if there is none with these decisions and methods.
    """
    return site.find_approval(
        lambda a: (
            a.completion is frame
            and len(a.resolutions) == 1
            and len(a.item.starts) == 1
            and a.fits(decisions, methods)
        )
    )
