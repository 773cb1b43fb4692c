"""Faults of approval policies: wrong approval requests, and work before the answer."""

from typing import Any

from harness.faults.approval_selectors import decided_item, question
from harness.faults.base import Fault
from harness.faults.changes import first, in_sequence, requires
from harness.faults.operators import edit, edit_by, insert_by
from harness.faults.queue import Change
from harness.faults.selectors import answer_to, our_request
from harness.faults.site import COMMAND, FILE, FaultSite
from harness.faults.tables.approvals import added_file_diff, approval_at, turn_ids
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame

EARLY = "early\n"
POLICY = "approvalPolicy"


def thread_under(policy: str, other: str) -> Change:
    """Return a change of the policy of a thread, from its start on."""
    return in_sequence(
        first(
            our_request("thread/start").where(
                lambda _, f: obj(f.params).get(POLICY) == policy, policy
            ),
            edit("params", POLICY, to=other),
        ),
        first(
            answer_to("thread/start").where(lambda _, f: obj(f.result).get(POLICY) == policy),
            edit("result", POLICY, to=other),
        ),
    )


def turn_under(policies: tuple[str, ...], other: str) -> Change:
    """Return a change of the policy of a turn with one of these policies."""
    return first(
        our_request("turn/start").where(
            lambda _, f: obj(f.params).get(POLICY) in policies, " or ".join(policies)
        ),
        edit("params", POLICY, to=other),
    )


def early_output(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """Return output of a command whose approval is being requested."""
    approval = approval_at(site, frame)
    params = {**turn_ids(approval), "itemId": approval.item.id, "delta": EARLY}
    return {"method": "item/commandExecution/outputDelta", "params": params}


def with_early_output(_: FaultSite, frame: Frame) -> str:
    """Return the output of a command with the early output before it."""
    return EARLY + text(dig(frame.params, "item", "aggregatedOutput"))


def early_diff(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """Return the diff of the turn with a change whose approval is being requested."""
    approval = approval_at(site, frame)
    path = "made.txt"
    return {
        "method": "turn/diff/updated",
        "params": {**turn_ids(approval), "diff": added_file_diff(path, approval)},
    }


def is_the_first(site: FaultSite, frame: Frame) -> bool:
    """Return whether a frame completes the first item with an approval request."""
    return site.approvals[0].completion is frame


FAULTS: tuple[Fault, ...] = (
    Fault(
        "asked-under-never",
        rule="approval.never-asked",
        on="approved-command",
        reason="Under never the client is not asked.",
        change=thread_under("untrusted", "never"),
        condition=requires(decided_item()),
    ),
    Fault(
        "asked-under-an-override-of-never",
        rule="approval.never-asked",
        on="on-request",
        reason="approvalPolicy of turn/start overrides the thread's.",
        change=turn_under(("on-request", "untrusted"), "never"),
    ),
    Fault(
        "unasked-under-on-request",
        rule="approval.always-asked",
        on="on-request",
        reason="Under on-request the client is always asked.",
        change=turn_under(("never",), "on-request"),
    ),
    Fault(
        "output-before-the-answer",
        rule="approval.asks-before-acting",
        on="approved-command",
        reason="Nothing of the operation is done before the client has answered.",
        change=in_sequence(
            first(question(COMMAND), insert_by(early_output)),
            first(
                decided_item("accept", methods=(COMMAND,)),
                edit_by("params", "item", "aggregatedOutput", value=with_early_output),
            ),
        ),
        condition=requires(decided_item("accept", methods=(COMMAND,))),
    ),
    Fault(
        "changed-before-the-answer",
        rule="approval.asks-before-acting",
        on="file-changes",
        reason="The diff of the turn has nothing of a change that the client is still asked about.",
        change=first(question(FILE), insert_by(early_diff)),
        condition=requires(decided_item("accept", methods=(FILE,))),
    ),
    Fault(
        "asked-before-a-failure",
        rule="approval.failure-first",
        on="approved-command",
        reason="Under on-failure the client is asked when an operation has failed.",
        change=thread_under("untrusted", "on-failure"),
        condition=requires(decided_item("accept").where(is_the_first, "before any other")),
    ),
    Fault(
        "asked-under-reject",
        rule="approval.rejected",
        on="file-changes",
        reason="Under reject nothing is approved; that the client is asked at all is recorded.",
        change=thread_under("untrusted", "reject"),
        condition=requires(decided_item()),
    ),
)
