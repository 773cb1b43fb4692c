"""Faults of the sandbox that a thread or a turn requests."""

from typing import Any

from harness.faults.base import Fault
from harness.faults.changes import first
from harness.faults.item_selectors import item_completed, item_in
from harness.faults.operators import edit, insert_by
from harness.faults.refusals import RefuseAnswer, no_later_requests, request_has
from harness.faults.selectors import answer_to
from harness.faults.site import FaultSite
from harness.protocol.values import dig, obj
from harness.trace.frame import Frame

REFUSAL = "unknown sandbox"
KEBAB = answer_to("thread/start").where(
    request_has("sandbox", "read-only", "workspace-write"), "with a sandbox"
)
CAMEL = answer_to("thread/start").where(
    request_has("sandbox", "readOnly", "workspaceWrite", "dangerFullAccess"),
    "with a sandbox in camelCase",
)
POLICY = answer_to("turn/start").where(
    lambda site, frame: "sandboxPolicy" in site.params_of(frame), "with a sandboxPolicy"
)


def may_only_read(site: FaultSite, frame: Frame) -> bool:
    """Return whether the turn of an item was started with the sandboxPolicy readOnly."""
    request = item_in(site, frame).turn.request
    return request is not None and dig(request.params, "sandboxPolicy", "type") == "readOnly"


def diff_of_a_file(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """Return a diff of the turn of `frame` that adds a file."""
    params = obj(frame.params)
    params = {"threadId": params.get("threadId"), "turnId": params.get("turnId")}
    return {"method": "turn/diff/updated", "params": {**params, "diff": "+++ b/made.txt"}}


FAULTS: tuple[Fault, ...] = (
    Fault(
        "sandbox-word-refused",
        rule="thread.sandbox-taken",
        on="sandboxes",
        reason="read-only, workspace-write and danger-full-access are the words for a sandbox.",
        change=RefuseAnswer(KEBAB, REFUSAL),
        condition=no_later_requests(KEBAB),
    ),
    Fault(
        "sandbox-word-of-the-example-refused",
        rule="thread.sandbox-camel-taken",
        on="sandboxes",
        reason="An example passes a word in camelCase, so that to refuse it is worth recording.",
        change=RefuseAnswer(CAMEL, REFUSAL),
        condition=no_later_requests(CAMEL),
    ),
    Fault(
        "sandbox-of-the-turn-refused",
        rule="turn.sandbox-policy-taken",
        on="sandboxes",
        reason="turn/start takes a sandboxPolicy.",
        change=RefuseAnswer(POLICY, REFUSAL),
        condition=no_later_requests(POLICY),
    ),
    Fault(
        "sandbox-of-the-turn-ignored",
        rule="turn.sandbox-applies",
        on="sandboxes",
        reason="A turn whose sandboxPolicy is readOnly may not change a file without consent.",
        change=first(
            item_completed("fileChange").where(may_only_read, "in a turn that may only read"),
            edit("params", "item", "status", to="completed"),
            insert_by(diff_of_a_file),
        ),
    ),
)
