"""Cases of the rules on approvals: the sequence, the decisions, the policies."""

from harness.judge.verdict import Level
from tests.rules.approval_talk import FILE, Approvals, command_item, file_item
from tests.rules.case import Case, Found

ASKED = "request item/commandExecution/requestApproval id 0"
ASKED_AGAIN = "request item/commandExecution/requestApproval id 1"
ASKED_FILE = "request item/fileChange/requestApproval id 0"
ITEM = "item call_1 of turn turn_1"
PATCH = "item patch_1 of turn turn_1"
OUTPUT = "item/commandExecution/outputDelta"


def running(policy: str = "untrusted") -> Approvals:
    return Approvals().running(policy)


def pending() -> Approvals:
    """Return a talk with a command awaiting approval: its start is seq 9, the request 10."""
    return running().started(command_item()).question()


CASES = [
    Case(
        rule="approval.order",
        good=running().approved().patched("declined", "decline"),
        witnesses=(ASKED, "request item/fileChange/requestApproval id 1"),
        # Asked before the start, resolved before the answer, completed before that, twice resolved.
        bad=running()
        .question()
        .decides("accept")
        .started(command_item("call_2"))
        .resolved()
        .question("call_2")
        .resolved()
        .decides("accept")
        .completed(command_item("call_2", "completed"))
        .started(command_item("call_3"))
        .question("call_3")
        .decides("accept")
        .completed(command_item("call_3", "completed"))
        .resolved()
        .approved(item="call_4")
        .resolved(),
        found=(
            Found(ASKED, (9,)),
            Found(ASKED_AGAIN, (11, 13, 14, 15, 16)),
            Found("request item/commandExecution/requestApproval id 2", (17, 18, 19, 20)),
            Found(
                "request item/commandExecution/requestApproval id 3",
                (22, 23, 24, 25, 26, 27),
                Level.SHOULD,
            ),
        ),
        not_exercised=pending().interrupt().answers({}).end_turn(status="interrupted").resolved(),
    ),
    Case(
        rule="approval.names-item",
        good=pending(),
        witnesses=(ASKED,),
        bad=running()
        .started(command_item())
        .question(turn="turn_9")
        .question(threadId="thr_9")
        .end_turn()
        .start_turn("turn_2")
        .question(turn="turn_2"),
        found=(
            Found(ASKED, (10,)),
            Found(ASKED_AGAIN, (11,)),
            Found("request item/commandExecution/requestApproval id 2", (20,)),
        ),
        not_exercised=Approvals().question().question(itemId=7),
    ),
    Case(
        rule="approval.request-of-type",
        good=running().approved().patched(),
        witnesses=(ASKED, "request item/fileChange/requestApproval id 1"),
        bad=running()
        .started(command_item())
        .question(method=FILE)
        .decides("accept")
        .resolved()
        .completed(command_item(status="completed")),
        found=(Found(ASKED_FILE, (10, 13)),),
        not_exercised=pending(),
    ),
    Case(
        rule="approval.final-item",
        good=running().approved().patched("failed"),
        witnesses=(ITEM, PATCH),
        bad=running().approved("inProgress").patched("inProgress"),
        found=(Found(ITEM, (13,), Level.SHOULD), Found(PATCH, (18,))),
        not_exercised=running("never").item(command_item(status="inProgress")),
    ),
    Case(
        rule="approval.accepted-runs",
        good=running().approved("failed").patched(),
        witnesses=(ITEM, PATCH),
        bad=running().approved("declined", decision="acceptForSession").patched("declined"),
        found=(Found(ITEM, (10, 11, 13)), Found(PATCH, (15, 16, 18))),
        not_exercised=running()
        .approved("declined", decision="decline")
        .approved("declined", "call_2", "applyNetworkPolicyAmendment")
        .started(command_item("call_3"))
        .question("call_3")
        .interrupt()
        .answers({})
        .decides("accept")
        .completed(command_item("call_3", "declined")),
    ),
    Case(
        rule="approval.denied-not-run",
        good=running().approved("declined", decision="decline").patched("failed", "decline"),
        witnesses=(ITEM, PATCH),
        bad=running().approved(decision="cancel").patched(decision="decline"),
        found=(Found(ITEM, (10, 11, 13)), Found(PATCH, (15, 16, 18))),
        not_exercised=running()
        .approved(decision="applyNetworkPolicyAmendment")
        .started(command_item("call_2"))
        .question("call_2")
        .completed(command_item("call_2", "completed")),
    ),
    Case(
        rule="approval.denied-status",
        good=running().approved("declined", decision="decline"),
        witnesses=(ITEM,),
        bad=running().approved("failed", decision="decline"),
        found=(Found(ITEM, (10, 11, 13), Level.SHOULD),),
        not_exercised=running().approved("failed").approved("completed", "call_2", "decline"),
    ),
    Case(
        rule="approval.cancel-ends-work",
        good=running().approved("declined", decision="cancel").end_turn(status="interrupted"),
        witnesses=("turn turn_1",),
        # In the first turn another command is begun; in the second one is asked about that began
        # before.
        bad=running()
        .approved("declined", decision="cancel")
        .started(command_item("call_2"))
        .question("call_2")
        .end_turn(status="interrupted")
        .start_turn("turn_2")
        .started(command_item("call_3"), "turn_2")
        .started(command_item("call_4"), "turn_2")
        .question("call_3", turn="turn_2")
        .decides("cancel")
        .completed(command_item("call_3", "declined"), "turn_2")
        .question("call_4", turn="turn_2"),
        found=(
            Found("turn turn_1", (10, 11, 13, 14), Level.SHOULD),
            Found("turn turn_2", (26, 27, 28, 29), Level.SHOULD),
        ),
        # Both were asked about before the cancel; after a decline there may be more.
        not_exercised=running()
        .started(command_item())
        .started(command_item("call_2"))
        .question()
        .question("call_2")
        .decides("cancel", to=0)
        .resolved(1)
        .resolved(0)
        .start_turn("turn_2")
        .approved("declined", "call_3", decision="decline")
        .started(command_item("call_4")),
    ),
    Case(
        rule="approval.cancel-interrupts",
        good=running().approved("declined", decision="cancel").end_turn(status="interrupted"),
        witnesses=("turn turn_1",),
        bad=running().approved("declined", decision="cancel").end_turn(),
        found=(Found("turn turn_1", (11, 15)),),
        not_exercised=running()
        .approved("declined", decision="decline")
        .end_turn(status="interrupted")
        .start_turn("turn_2")
        .started(command_item("call_2"), "turn_2")
        .question("call_2", turn="turn_2")
        .end_turn("turn_2")
        .decides("cancel"),
    ),
    Case(
        rule="approval.decline-goes-on",
        good=running()
        .approved("declined", decision="decline")
        .message("m-1", "So be it")
        .end_turn(),
        witnesses=("turn turn_1",),
        bad=running().approved("declined", decision="decline").end_turn(status="interrupted"),
        found=(Found("turn turn_1", (11, 15), Level.SHOULD),),
        not_exercised=running()
        .approved("declined", decision="decline")
        .interrupt()
        .answers({})
        .end_turn(status="interrupted")
        .start_turn("turn_2")
        .end_turn("turn_2"),
    ),
    Case(
        rule="approval.session-remembered",
        good=running()
        .approved(decision="acceptForSession")
        .item(command_item("call_2", "completed")),
        witnesses=("item call_2 of turn turn_1",),
        bad=running()
        .approved(decision="acceptForSession")
        .approved(item="call_2")
        .end_turn()
        .start_thread("thr_2"),
        found=(Found(ASKED_AGAIN, (10, 11, 15)),),
        # Once only; another folder; the thread has been loaded anew.
        not_exercised=running()
        .approved()
        .approved(item="call_2", decision="acceptForSession")
        .started(command_item("call_3"))
        .question("call_3", cwd="/home/user")
        .asks("thread/resume", threadId="thr_1")
        .refuses()
        .approved(item="call_4"),
    ),
    Case(
        rule="approval.asked-again",
        good=running().approved().approved(item="call_2"),
        witnesses=("item call_2 of turn turn_1",),
        bad=running().approved().item(command_item("call_2", "completed")),
        found=(Found("item call_2 of turn turn_1", (10, 11, 15), Level.SHOULD),),
        # Another command, one that fails, and what is allowed for later.
        not_exercised=running()
        .approved()
        .item(command_item("call_2", "completed", command="ls"))
        .item(command_item("call_3", "failed", exitCode=1))
        .started(command_item("call_4", command="make"))
        .question("call_4", command=["make"])
        .decides("acceptForSession")
        .resolved()
        .completed(command_item("call_4", "completed", command="make"))
        .item(command_item("call_5", "completed")),
    ),
    Case(
        rule="approval.never-asked",
        good=running("never").item(command_item(status="completed")).end_turn(),
        witnesses=("turn turn_1",),
        bad=running("never").approved().end_turn(),
        found=(Found(ASKED, (10,)),),
        # The override lasts, or not: the text does not say.
        not_exercised=Approvals()
        .policy("never")
        .ask_turn(approvalPolicy="untrusted")
        .reply_turn()
        .turn_started()
        .approved()
        .end_turn()
        .start_turn("turn_2")
        .started(command_item("call_2"), "turn_2")
        .question("call_2", turn="turn_2"),
    ),
    Case(
        rule="approval.always-asked",
        good=running("on-request").approved().patched(),
        witnesses=(ITEM, PATCH),
        bad=Approvals()
        .policy("never")
        .ask_turn(approvalPolicy="on-request")
        .reply_turn()
        .turn_started()
        .item(command_item(status="completed"))
        .item(file_item(status="completed"))
        .item(command_item("call_2", "failed", exitCode=1)),
        found=(
            Found(ITEM, (7,)),
            Found(PATCH, (9,)),
            Found("item call_2 of turn turn_1", (11,), Level.SHOULD),
        ),
        not_exercised=running("on-request")
        .item(command_item(status="failed"))
        .end_turn()
        .ask_turn(approvalPolicy="untrusted")
        .reply_turn("turn_2")
        .turn_started("turn_2")
        .item(command_item("call_2", "completed"), "turn_2"),
    ),
    Case(
        rule="approval.asks-before-acting",
        good=running().approved(),
        witnesses=(ITEM,),
        # While it is asked; before, which may have been a first try.
        bad=running()
        .started(command_item())
        .question()
        .delta("call_1", "out", method=OUTPUT)
        .decides("accept")
        .started(command_item("call_2"))
        .delta("call_2", "out", method=OUTPUT)
        .question("call_2")
        .decides("accept"),
        found=(
            Found(ITEM, (10, 11, 12)),
            Found("item call_2 of turn turn_1", (15, 14, 16), Level.SHOULD),
        ),
        not_exercised=running("on-failure")
        .started(command_item())
        .delta("call_1", "out", method=OUTPUT)
        .question()
        .decides("accept"),
    ),
    Case(
        rule="approval.failure-first",
        good=running("on-failure").item(command_item(status="completed")),
        witnesses=(ITEM,),
        bad=running("on-failure").approved().patched(),
        found=(
            Found(ITEM, (10, 11, 13), Level.SHOULD),
            Found(PATCH, (15, 16, 18), Level.SHOULD),
        ),
        # It is not run; it fails when it is; a failure came before.
        not_exercised=running("on-failure")
        .approved("declined", decision="decline")
        .approved("failed", "call_2")
        .approved(item="call_3"),
    ),
    Case(
        rule="approval.rejected",
        good=running("reject").item(command_item(status="declined")),
        witnesses=(ITEM,),
        bad=running("reject").approved(),
        found=(Found(ASKED, (10,), Level.INFO), Found(ITEM, (10, 11, 13))),
        not_exercised=running("reject").item(command_item(status="completed")),
    ),
]
