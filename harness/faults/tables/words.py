"""Faults of words and methods that a server must know, since the specification lists them."""

from harness.faults.base import Fault
from harness.faults.changes import every
from harness.faults.operators import refuse
from harness.faults.refusals import RefuseAnswer, no_later_requests, request_has
from harness.faults.selectors import Selector, answer_to

POLICY = answer_to("turn/start").where(
    request_has("approvalPolicy", "reject", "untrusted"), "with reject or untrusted"
)
EFFORT = answer_to("turn/start").where(
    request_has("effort", "low", "medium", "high"), "with an effort"
)
PERSONALITY = answer_to("thread/start").where(
    request_has("personality", "friendly", "pragmatic", "none"), "with a personality"
)


def word_refused(fault_id: str, reason: str, pick: Selector, name: str) -> Fault:
    """Return a fault: a request with a specified word is rejected."""
    return Fault(
        fault_id,
        rule="word.taken",
        on="words",
        reason=reason,
        change=RefuseAnswer(pick, f"invalid {name}"),
        condition=no_later_requests(pick),
    )


FAULTS: tuple[Fault, ...] = (
    word_refused(
        "approval-policy-of-the-text-refused",
        "The five words for an approval policy are listed.",
        POLICY,
        "approvalPolicy",
    ),
    word_refused(
        "effort-of-the-text-refused",
        "The three words for an effort are listed; a model may not have them, so SHOULD.",
        EFFORT,
        "effort",
    ),
    word_refused(
        "personality-of-the-text-refused",
        "The three words for a personality are listed; a model may not have them, so SHOULD.",
        PERSONALITY,
        "personality",
    ),
    Fault(
        "method-of-every-server-unknown",
        rule="method.offered",
        on="words",
        reason="Reading a thread is what every server offers.",
        change=every(answer_to("thread/read"), refuse("Method not found", code=-32601)),
    ),
)
