"""Operations that are one or two turns, with the approvals that they ask for."""

import json
from collections.abc import Callable
from typing import Any

from harness.search.fuzz.sessions.plan import PlannedThread, PlannedTurn
from harness.search.fuzz.sessions.turns import COMMAND, UNTRUSTED, Json
from harness.search.sequences.draft import Draft
from harness.search.sequences.turn_script import TurnScript

# An operation; it returns the thread with which its sequence goes on, None for the same.
Act = Callable[[Draft, PlannedThread], PlannedThread | None]
SCHEMA: Json = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}
# A failure of the model after which a turn ends as failed, and one after which it is tried again.
LASTING_FAILURE: Json = {"status": 400, "message": "no", "times": "until-turn-ends"}
PASSING_FAILURE: Json = {"status": 500}
# The decision that is remembered for good.
LASTING_RULE = "acceptWithExecpolicyAmendment"


def plain_turn(draft: Draft, thread: PlannedThread) -> None:
    """Run a turn of reasoning and a message."""
    script = draft.script()
    script.add_message(reasoning=True)
    draft.run_turn(thread, script)


def slow_turn(draft: Draft, thread: PlannedThread) -> None:
    """Run a turn that ends in a later second than it began: times are shown in seconds."""
    script = draft.script()
    script.add_slow_message()
    draft.run_turn(thread, script)
    draft.plan.add_step("wait", idle=thread.alias)


def plan_turn(draft: Draft, thread: PlannedThread) -> None:
    """Run a turn that shares a plan, and changes it."""
    script = draft.script()
    script.add_plan("completed", "inProgress")
    script.add_plan("completed", "completed")
    draft.run_turn(thread, script)


def schema_turn(draft: Draft, thread: PlannedThread) -> None:
    """Run a turn whose last message has a schema."""
    script = draft.script()
    script.add_message(json.dumps({"word": script.next_text()}))
    draft.run_turn(thread, script, outputSchema=SCHEMA)


def failed_turn(draft: Draft, thread: PlannedThread, **params: Any) -> None:
    """Run a turn whose model fails for good."""
    script = draft.script()
    script.add_failure(LASTING_FAILURE)
    draft.run_turn(thread, script, **params)


def retried_turn(draft: Draft, thread: PlannedThread) -> None:
    """Run a turn whose model fails twice, the second time within its reply."""
    script = draft.script()
    script.add_failure(PASSING_FAILURE)
    script.add_cut_reply()
    draft.run_turn(thread, script)


def retried_after_tool(draft: Draft, thread: PlannedThread) -> None:
    """Run a turn whose model fails once after a command."""
    script = draft.script()
    script.add_command()
    script.add_failure(PASSING_FAILURE)
    turn = draft.start_turn(thread, script)
    draft.answer(thread, turn, "accept")
    draft.end_turn(thread)


def answered_command(decision: str, exit_status: int = 0) -> Act:
    """Return an operation that answers the question about a command."""

    def act(draft: Draft, thread: PlannedThread) -> None:
        script = draft.script()
        script.add_command(exit_status=exit_status)
        turn = draft.start_turn(thread, script)
        draft.answer(thread, turn, decision)
        draft.end_turn(thread)

    return act


def declined_command(draft: Draft, thread: PlannedThread) -> None:
    """Decline a command, and accept another one in the same turn."""
    script = draft.script()
    for _ in range(2):
        script.add_command()
    _decline_then_accept(draft, thread, script)


def _decline_then_accept(draft: Draft, thread: PlannedThread, script: TurnScript) -> None:
    turn = draft.start_turn(thread, script)
    for decision in ("decline", "accept"):
        draft.answer(thread, turn, decision)
    draft.end_turn(thread)


def unasked_command(draft: Draft, thread: PlannedThread) -> None:
    """Run a command under the policy `never`."""
    script = draft.script()
    script.add_command()
    draft.run_turn(thread, script, approvalPolicy="never")
    # Whether the policy holds for later turns is left open, so they name theirs.
    thread.lost_settings = True


def accept_for_session(draft: Draft, thread: PlannedThread) -> None:
    """Accept a command for the session, and repeat it in the same turn."""
    notes, script = draft.notes(thread), draft.script()
    notes.approved_command = script.add_command()
    script.add_command(notes.approved_command)
    turn = draft.start_turn(thread, script)
    answer_what_is_asked(draft, thread, turn, "acceptForSession")


def repeat_approved(draft: Draft, thread: PlannedThread) -> None:
    """Repeat the command that was last accepted for the session; without one, accept one first."""
    notes = draft.notes(thread)
    if not notes.approved_command:
        accept_for_session(draft, thread)
    script = draft.script()
    script.add_command(notes.approved_command)
    turn = draft.start_turn(thread, script)
    answer_what_is_asked(draft, thread, turn, "acceptForSession")


def accept_by_rule(draft: Draft, thread: PlannedThread) -> None:
    """Accept a command with a persistent rule, and repeat it in the next turn."""
    first = draft.script()
    command = first.add_command(f"touch ruled-{first.next_text()}")
    run_ruled_turn(draft, thread, first)
    second = draft.script()
    second.add_command(command)
    run_ruled_turn(draft, thread, second)


def run_ruled_turn(draft: Draft, thread: PlannedThread, script: TurnScript) -> None:
    """Run a turn, and accept what it asks by a rule.

    Other conversations may have left rules in the same home, and how many commands a rule covers
    is left open. So it is under a policy that need not ask, and has programs of its own.
    """
    turn = draft.start_turn(thread, script, approvalPolicy=UNTRUSTED)
    answer_what_is_asked(draft, thread, turn, LASTING_RULE)
    # Whether the policy holds for later turns is left open, so they name theirs.
    thread.lost_settings = True


def answer_what_is_asked(
    draft: Draft, thread: PlannedThread, turn: PlannedTurn, decision: str
) -> None:
    """Answer what a turn asks about commands, and wait for its end.

    How long an earlier answer holds may be left open: a rule judges whether it asks.
    """
    turn.drop_questions()
    draft.plan.add_answer(thread, turn, COMMAND, decision=decision, standing=True)
    draft.end_turn(thread)


def accepted_patch(draft: Draft, thread: PlannedThread) -> None:
    """Accept a change of the thread's file."""
    script = draft.script()
    script.add_patch(_next_change(draft, thread))
    turn = draft.start_turn(thread, script)
    draft.answer(thread, turn, "accept")
    draft.notes(thread).file_version += 1
    draft.end_turn(thread)


def declined_patch(draft: Draft, thread: PlannedThread) -> None:
    """Decline a new file, and accept a change of the thread's file in the same turn."""
    script = draft.script()
    script.add_patch({"add": {f"declined-{script.next_text()}.txt": "no\n"}})
    script.add_patch(_next_change(draft, thread))
    _decline_then_accept(draft, thread, script)
    draft.notes(thread).file_version += 1


def undone_patch(draft: Draft, thread: PlannedThread) -> None:
    """Change the thread's file twice in one turn; the second change undoes the first."""
    notes, script = draft.notes(thread), draft.script()
    name = _file_of(thread)
    script.add_patch(_next_change(draft, thread))
    after = {"old": _content(thread, notes.file_version + 1)}
    undo = (
        {"update": {name: {**after, "new": _content(thread, notes.file_version)}}}
        if notes.file_version
        else {"delete": [name]}
    )
    script.add_patch(undo)
    turn = draft.start_turn(thread, script)
    draft.answer(thread, turn, "accept")
    draft.answer(thread, turn, "accept")
    draft.end_turn(thread)


def _next_change(draft: Draft, thread: PlannedThread, ahead: int = 0) -> Json:
    """Return the next change of the thread's file, after `ahead` others that are not made yet."""
    version, name = draft.notes(thread).file_version + ahead, _file_of(thread)
    new = _content(thread, version + 1)
    if not version:
        return {"add": {name: new}}
    return {"update": {name: {"old": _content(thread, version), "new": new}}}


def patches_in_a_row(draft: Draft, thread: PlannedThread) -> None:
    """Change the thread's file twice and add another file, in one turn."""
    notes, script = draft.notes(thread), draft.script()
    script.add_patch(_next_change(draft, thread))
    script.add_patch({"add": {f"more-{script.next_text()}.txt": "more\n"}})
    script.add_patch(_next_change(draft, thread, ahead=1))
    turn = draft.start_turn(thread, script)
    for _ in range(3):
        draft.answer(thread, turn, "accept")
    notes.file_version += 2
    draft.end_turn(thread)


def _file_of(thread: PlannedThread) -> str:
    return f"notes-{thread.alias}.txt"


def _content(thread: PlannedThread, version: int) -> str:
    return f"version {version} of {thread.alias}\n"


def hold_reply(draft: Draft, thread: PlannedThread, **params: Any) -> PlannedTurn:
    """Start a turn, and wait until the model holds in its reply."""
    script = draft.script()
    gate = script.add_message(hold=True)
    turn = draft.start_turn(thread, script, **params)
    draft.await_gate(gate)
    return turn


def hold_command(draft: Draft, thread: PlannedThread) -> PlannedTurn:
    """Start a turn, and wait until its command runs."""
    script = draft.script()
    script.add_held_command(draft.notes(thread).place.removeprefix("{cwd}"))
    turn = draft.start_turn(thread, script)
    draft.answer(thread, turn, "accept")
    draft.await_output(turn)
    return turn


def hold_question(draft: Draft, thread: PlannedThread) -> PlannedTurn:
    """Start a turn, and wait until it asks about a command."""
    script = draft.script()
    script.add_command()
    turn = draft.start_turn(thread, script)
    draft.await_question(thread, turn)
    return turn


def interrupted_reply(draft: Draft, thread: PlannedThread, **params: Any) -> None:
    """Interrupt a turn while the model replies."""
    interrupt(draft, thread, hold_reply(draft, thread, **params))
    draft.end_turn(thread)


def interrupted_command(draft: Draft, thread: PlannedThread) -> None:
    """Interrupt a turn while a command runs."""
    interrupt(draft, thread, hold_command(draft, thread))
    draft.end_turn(thread)


def interrupted_question(draft: Draft, thread: PlannedThread) -> None:
    """Interrupt a turn while it asks for an approval."""
    turn = hold_question(draft, thread)
    interrupt(draft, thread, turn)
    turn.drop_questions()
    draft.end_turn(thread)


def interrupted_twice(draft: Draft, thread: PlannedThread) -> None:
    """Interrupt a running turn once, and twice more after its end."""
    interrupted_reply(draft, thread)
    for _ in range(2):
        interrupt(draft, thread, thread.turns[-1])


def interrupt(draft: Draft, thread: PlannedThread, turn: PlannedTurn) -> None:
    """Send `turn/interrupt` for a turn."""
    draft.thread_request("turn/interrupt", thread, turnId=f"${turn.alias}.turn.id")


def steer_times(times: int) -> Act:
    """Return an operation that steers a turn so many times while the model replies."""

    def act(draft: Draft, thread: PlannedThread) -> None:
        turn = hold_reply(draft, thread)
        for _ in range(times):
            steer(draft, thread, turn)
        draft.end_turn(thread)

    return act


def steered_question(draft: Draft, thread: PlannedThread) -> None:
    """Steer a turn while it asks for an approval."""
    steer(draft, thread, hold_question(draft, thread))
    draft.end_turn(thread)


def steered_with_old_id(draft: Draft, thread: PlannedThread) -> None:
    """Steer a running turn with the id of an earlier one, and then with its own."""
    if not thread.turns:
        plain_turn(draft, thread)
    earlier = thread.turns[-1]
    turn = hold_reply(draft, thread)
    steer(draft, thread, earlier)
    steer(draft, thread, turn)
    draft.end_turn(thread)


def steer(draft: Draft, thread: PlannedThread, turn: PlannedTurn) -> None:
    """Send `turn/steer` with a new text and the id of a turn."""
    draft.thread_request(
        "turn/steer",
        thread,
        input=[{"type": "text", "text": f"and {draft.plan.next_number()}"}],
        expectedTurnId=f"${turn.alias}.turn.id",
    )


def turns_elsewhere(draft: Draft, thread: PlannedThread) -> None:
    """Run a turn in another folder, one without a folder, and one back in the first.

    The threads of both folders are listed while it is in the other.
    """
    folder = draft.notes(thread).folder
    elsewhere = f"{folder}/elsewhere"
    for params in ({"cwd": elsewhere}, {}, {"cwd": folder}):
        script = draft.script()
        script.add_command()
        draft.run_turn(thread, script, **params)
        if not params:
            for listed in (elsewhere, folder):
                draft.request("thread/list", params={"cwd": listed})
    draft.add_file(f"{elsewhere}/notes.txt", "elsewhere\n")
    draft.notes(thread).place = folder


def turns_of_other_model(draft: Draft, thread: PlannedThread) -> None:
    """Run a turn with another model, and one that names none."""
    for params in ({"model": f"model-{draft.plan.next_number()}"}, {}):
        plain = draft.script()
        draft.run_turn(thread, plain, **params)


def turn_that_only_reads(draft: Draft, thread: PlannedThread) -> None:
    """Run a command under the sandbox policy `readOnly`, and a turn under the first policy."""
    script = draft.script()
    script.add_command("cat notes.txt")
    draft.add_file(f"{draft.notes(thread).folder}/notes.txt", "to read\n")
    turn = draft.start_turn(
        thread, script, sandboxPolicy={"type": "readOnly", "access": {"type": "fullAccess"}}
    )
    answer_what_is_asked(draft, thread, turn, "accept")
    reset = draft.script()
    draft.run_turn(thread, reset, sandboxPolicy={"type": "dangerFullAccess"})
