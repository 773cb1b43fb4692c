"""Faults of approval policies: asked or not, and what is done before the answer."""

from typing import Any

from harness.faults.approval_selectors import decided_item, question
from harness.faults.base import Fault
from harness.faults.changes import first, in_turn, there_is
from harness.faults.operators import edit, edit_by, insert_by
from harness.faults.queue import Change
from harness.faults.selectors import answer_to, sent
from harness.faults.site import COMMAND, FILE, FaultSite
from harness.faults.tables.approvals import added_file, asked, place
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame

EARLY = "early\n"
POLICY = "approvalPolicy"


def thread_under(policy: str, other: str) -> Change:
    """A thread is under another policy, from its start on."""
    return in_turn(
        first(
            sent("thread/start").where(lambda _, f: obj(f.params).get(POLICY) == policy, policy),
            edit("params", POLICY, to=other),
        ),
        first(
            answer_to("thread/start").where(lambda _, f: obj(f.result).get(POLICY) == policy),
            edit("result", POLICY, to=other),
        ),
    )


def turn_under(policies: tuple[str, ...], other: str) -> Change:
    """A turn with one of these policies of its own is under another one."""
    return first(
        sent("turn/start").where(
            lambda _, f: obj(f.params).get(POLICY) in policies, " or ".join(policies)
        ),
        edit("params", POLICY, to=other),
    )


def early_output(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """Output of a command that the client is asked about."""
    one = asked(site, frame)
    params = {**place(one), "itemId": one.item.id, "delta": EARLY}
    return {"method": "item/commandExecution/outputDelta", "params": params}


def with_early_output(_: FaultSite, frame: Frame) -> str:
    """The output of a command, the early one with it."""
    return EARLY + text(dig(frame.params, "item", "aggregatedOutput"))


def early_diff(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """The diff of the turn, with a change that the client is asked about."""
    one = asked(site, frame)
    path = "made.txt"
    return {"method": "turn/diff/updated", "params": {**place(one), "diff": added_file(path, one)}}


def is_the_first(site: FaultSite, frame: Frame) -> bool:
    """Return whether an item is the first that the client was asked about."""
    return site.approvals[0].done is frame


FAULTS: tuple[Fault, ...] = (
    Fault(
        "asked-under-never",
        rule="approval.never-asked",
        on="approved-command",
        reason="Under never the client is not asked.",
        change=thread_under("untrusted", "never"),
        given=there_is(decided_item()),
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
        change=in_turn(
            first(question(COMMAND), insert_by(early_output)),
            first(
                decided_item("accept", methods=(COMMAND,)),
                edit_by("params", "item", "aggregatedOutput", value=with_early_output),
            ),
        ),
        given=there_is(decided_item("accept", methods=(COMMAND,))),
    ),
    Fault(
        "changed-before-the-answer",
        rule="approval.asks-before-acting",
        on="file-changes",
        reason="The diff of the turn has nothing of a change that the client is still asked about.",
        change=first(question(FILE), insert_by(early_diff)),
        given=there_is(decided_item("accept", methods=(FILE,))),
    ),
    Fault(
        "asked-before-a-failure",
        rule="approval.failure-first",
        on="approved-command",
        reason="Under on-failure the client is asked when an operation has failed.",
        change=thread_under("untrusted", "on-failure"),
        given=there_is(decided_item("accept").where(is_the_first, "before any other")),
    ),
    Fault(
        "asked-under-reject",
        rule="approval.rejected",
        on="file-changes",
        reason="Under reject nothing is approved; that the client is asked at all is recorded.",
        change=thread_under("untrusted", "reject"),
        given=there_is(decided_item()),
    ),
)
