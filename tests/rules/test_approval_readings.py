"""Readings 10 to 14 of approvals as behaviour of the rules, and related open choices.

The numbers in the names are those of the readings of the specification.
"""

import dataclasses

import pytest

from harness.judge.judge import judge
from harness.judge.rules.approvals import order as approval_order
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.machines import APPROVAL
from harness.trace.trace import End, Trace
from tests.rules.approval_talk import COMMAND, FILE, Approvals, command_item, file_item
from tests.rules.traces import Talk, thread_object

BOOK = load_book()
RULES = [
    rule
    for name, rule in all_rules().items()
    if name.split(".")[0] in ("approval", "server-request", "shape", "harness")
]


def running(policy: str = "untrusted") -> Approvals:
    return Approvals().running(policy)


def pending() -> Approvals:
    return running().started(command_item()).question()


def wrong(talk: Talk, end: End = End.QUIESCENT) -> list[Row]:
    rows = judge(BOOK, talk.trace(end), rules=RULES)
    return [row for row in rows if row.verdict is not Verdict.PASS]


def clauses(talk: Talk, end: End = End.QUIESCENT) -> list[str]:
    return [clause for row in wrong(talk, end) for clause in row.clauses]


def verdicts(rule: str, trace: Trace) -> list[Verdict]:
    return [row.verdict for row in judge(BOOK, trace, rules=[all_rules()[rule]])]


# 10: what a policy wants asked.


def test_10_reject_asks_nobody_and_asking_is_only_recorded() -> None:
    assert wrong(running("reject").item(command_item(status="declined")).end_turn()) == []
    (row,) = wrong(running("reject").approved("declined", decision="decline").end_turn())
    assert (row.rule, row.level) == ("approval.rejected", Level.INFO)


def test_10_what_never_lets_fail_is_not_asked_about_either() -> None:
    assert wrong(running("never").item(command_item(status="failed")).end_turn()) == []
    assert clauses(running("never").approved().end_turn()) == ["approval-policy.never"]


# 11: two sets of decisions.


@pytest.mark.parametrize("decision", ["acceptForSession", "cancel", "approved"])
def test_11_a_decision_that_files_do_not_have_is_our_defect(decision: str) -> None:
    talk = running().started(file_item()).question("patch_1", FILE).decides(decision)
    (row,) = wrong(talk, End.CLOSED)
    assert (row.rule, row.verdict) == ("harness.own-answer", Verdict.ERROR)


@pytest.mark.parametrize(
    "decision",
    [
        "accept",
        "acceptForSession",
        "acceptWithExecpolicyAmendment",
        "applyNetworkPolicyAmendment",
        "decline",
        "cancel",
    ],
)
def test_11_each_of_the_six_decisions_on_a_command_is_right(decision: str) -> None:
    assert wrong(pending().decides(decision), End.CLOSED) == []


@pytest.mark.parametrize(
    "decision", ["accept", "acceptForSession", "acceptWithExecpolicyAmendment"]
)
def test_11_an_approving_decision_that_ends_declined_is_not_taken(decision: str) -> None:
    named = clauses(running().approved("declined", decision=decision).end_turn())
    assert "approval.command-decisions-taken" in named


@pytest.mark.parametrize(
    ("policy", "level"), [("untrusted", Level.MUST), ("on-request", Level.INFO)]
)
def test_11_always_ask_is_what_a_server_may_hold_to_after_accept_for_session(
    policy: str, level: Level
) -> None:
    again = running(policy).approved(decision="acceptForSession").approved(item="call_2")
    rows = wrong(again)
    assert [(row.rule, row.level) for row in rows] == [("approval.session-remembered", level)]


def test_11_what_a_server_makes_of_another_word_is_open() -> None:
    for status in ("completed", "declined", "failed"):
        talk = pending().decides("perhaps", deliberate=True)
        assert wrong(talk.completed(command_item(status=status)).resolved().end_turn()) == []
        assert wrong(pending().decides("perhaps", deliberate=True).end_turn("turn_1")) == []


def test_11_an_error_as_the_answer_is_not_judged() -> None:
    refusal = {"id": 0, "error": {"code": -32000, "message": "over"}}
    assert wrong(pending().sends(refusal).completed(command_item(status="failed"))) == []


# 12: decline is not cancel.


def test_12_after_decline_the_turn_goes_on() -> None:
    declined = running().approved("declined", decision="decline")
    assert wrong(declined.message("m-1", "Well").end_turn()) == []
    (row,) = wrong(
        running().approved("declined", decision="decline").end_turn(status="interrupted")
    )
    assert (row.rule, row.level) == ("approval.decline-goes-on", Level.SHOULD)


def test_12_after_cancel_the_turn_is_interrupted() -> None:
    cancelled = running().approved("declined", decision="cancel")
    assert wrong(cancelled.end_turn(status="interrupted")) == []
    (row,) = wrong(running().approved("declined", decision="cancel").end_turn())
    assert (row.rule, row.level) == ("approval.cancel-interrupts", Level.MUST)


def test_12_a_turn_that_we_interrupted_says_nothing_of_decline() -> None:
    talk = running().approved("declined", decision="decline").interrupt().answers({})
    assert wrong(talk.end_turn(status="interrupted")) == []


def two_asked() -> Approvals:
    both = running().started(command_item()).started(command_item("call_2"))
    return both.question().question("call_2").decides("cancel", to=0)


def test_12_cancel_settles_the_other_questions_of_its_turn_too() -> None:
    """The server may send these in any order, with or without an item/completed for each."""
    first, second = command_item(status="declined"), command_item("call_2", "declined")
    for talk in (
        two_asked().resolved(0).completed(first).resolved(1).completed(second),
        two_asked().resolved(1).completed(second).resolved(0).completed(first),
        two_asked().resolved(0).completed(first).completed(second).resolved(1),
    ):
        assert wrong(talk.end_turn(status="interrupted")) == []
    late = two_asked().resolved(0).completed(first).end_turn(status="interrupted").resolved(1)
    assert wrong(late) == []


def test_12_what_cancel_was_answered_to_is_settled_in_order_all_the_same() -> None:
    declined = command_item(status="declined")
    late = pending().decides("cancel").completed(declined).resolved()
    assert clauses(late.end_turn(status="interrupted")) == ["approval.completed"]


@pytest.mark.parametrize("answered", ["decline", "cancel", "perhaps", None])
def test_12_an_interruption_in_doubt_is_left_open(answered: str | None) -> None:
    talk = pending() if answered is None else pending().decides(answered, deliberate=True)
    assert (
        verdicts("turn.interrupted-when-asked", talk.end_turn(status="interrupted").trace()) == []
    )


def test_12_approving_interrupts_nothing() -> None:
    talk = running().approved().end_turn(status="interrupted")
    assert verdicts("turn.interrupted-when-asked", talk.trace()) == [Verdict.FAIL]


# 13: the place of serverRequest/resolved.


def test_13_nothing_is_resolved_or_completed_before_the_answer() -> None:
    done = command_item(status="completed")
    assert clauses(pending().completed(done), End.CLOSED) == ["approval.completed"]
    early = pending().resolved().decides("accept").completed(done)
    (row,) = wrong(early, End.CLOSED)
    assert (row.clauses, row.level) == (("approval.resolved",), Level.MUST)


def test_13_a_question_that_the_server_takes_back_is_told_of_and_no_more() -> None:
    """A time-out of its own: the text does not have it, and does not exclude it."""
    for status in ("declined", "failed"):
        (row,) = wrong(pending().resolved().completed(command_item(status=status)), End.CLOSED)
        assert (row.clauses, row.level) == (("approval.resolved",), Level.SHOULD)
    assert [row.level for row in wrong(pending().resolved().end_turn())] == [Level.SHOULD]
    assert [row.level for row in wrong(pending().resolved())] == [Level.SHOULD]


def test_13_while_the_answer_is_held_back_other_requests_are_answered() -> None:
    talk = pending().read_status("active").decides("accept").resolved()
    assert wrong(talk.completed(command_item(status="completed")).end_turn()) == []


def test_13_resolved_comes_before_the_item_is_completed() -> None:
    done = command_item(status="completed")
    late = pending().decides("accept").completed(done).resolved().end_turn()
    assert clauses(late) == ["approval.completed"]


def test_13_what_is_answered_is_resolved_by_the_end_of_a_quiescent_trace() -> None:
    assert clauses(pending().decides("accept")) == ["approval.resolved"]
    assert clauses(pending().decides("accept"), End.CLOSED) == []


def test_13_with_several_open_the_payload_does_not_say_which() -> None:
    """Both fit; that the payload names the other one is of no account, since it is not shown."""
    talk = pending().started(command_item("call_2")).question("call_2")
    talk.decides("accept", to=0).decides("accept", to=1).resolved(1)
    talk.completed(command_item(status="completed")).resolved(0)
    assert wrong(talk.completed(command_item("call_2", "completed")).end_turn()) == []


def test_13_with_several_open_one_must_have_been_answered() -> None:
    talk = pending().started(command_item("call_2")).question("call_2").resolved(0)
    talk.completed(command_item(status="completed"))
    (row,) = wrong(talk, End.CLOSED)
    assert (row.clauses, row.level) == (("approval.resolved",), Level.MUST)


def test_13_a_question_of_another_kind_may_be_what_was_resolved() -> None:
    talk = pending().says({"method": "item/tool/requestUserInput", "id": 5, "params": {}})
    talk.sends({"id": 5, "result": {"answers": {}}}).resolved(5).decides("accept", to=0)
    assert wrong(talk.resolved(0).completed(command_item(status="completed"))) == []


def test_13_the_end_of_an_interrupted_turn_may_resolve_a_question_before_or_after() -> None:
    before = pending().interrupt().answers({}).resolved()
    before.completed(command_item(status="declined")).end_turn(status="interrupted")
    assert wrong(before.decides("accept")) == []
    after = pending().interrupt().answers({}).end_turn(status="interrupted").resolved()
    assert wrong(after.decides("accept")) == []


def test_13_another_client_may_answer_for_us() -> None:
    talk = pending().on("c2").asks("thread/resume", threadId="thr_1")
    talk.answers({"thread": thread_object()}).on("c1").resolved()
    done = command_item(status="completed")
    assert [row for row in wrong(talk.completed(done)) if row.rule == "approval.order"] == []


# 14: the command is text in the item and an array in the request.


def test_14_the_command_in_the_request_is_an_array_of_strings() -> None:
    assert wrong(pending(), End.CLOSED) == []
    for command in ("touch made.txt", [1]):
        named = clauses(running().started(command_item()).question(command=command), End.CLOSED)
        assert named == ["approval.command-array"]


def test_14_a_request_without_the_command_is_a_hint_only() -> None:
    (row,) = wrong(running().started(command_item()).question(command=None), End.CLOSED)
    assert (row.level, row.clauses) == (Level.SHOULD, ("approval.command-there",))


def test_14_array_and_text_are_not_compared() -> None:
    talk = running().started(command_item(command="something else")).question()
    assert wrong(talk, End.CLOSED) == []


def test_14_a_request_about_a_file_change_needs_no_changes() -> None:
    talk = running().started(file_item()).question("patch_1", FILE)
    assert wrong(talk, End.CLOSED) == []
    assert clauses(running().question("patch_1", FILE, reason=7), End.CLOSED)[-1:] == [
        "approval.file-reason"
    ]


# The table of the book is what judges.


def test_the_machine_of_the_book_is_what_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = running().approved().end_turn()
    assert verdicts("approval.order", talk.trace()) == [Verdict.PASS]
    shorter = {
        row: state for row, state in APPROVAL.transitions.items() if row[0] != "answered"
    } | {("answered", "item/completed"): "completed"}
    other = dataclasses.replace(APPROVAL, transitions=shorter)
    monkeypatch.setattr(approval_order, "APPROVAL", other)
    assert verdicts("approval.order", talk.trace()) == [Verdict.FAIL]
    unresolved = pending().decides("accept").completed(command_item(status="completed"))
    assert verdicts("approval.order", unresolved.trace()) == [Verdict.PASS]


@pytest.mark.parametrize(("state", "event"), sorted(APPROVAL.transitions))
def test_each_row_of_the_machine_is_needed(
    state: str, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {row: after for row, after in APPROVAL.transitions.items() if row != (state, event)}
    monkeypatch.setattr(approval_order, "APPROVAL", dataclasses.replace(APPROVAL, transitions=rows))
    assert verdicts("approval.order", running().approved().end_turn().trace()) != [Verdict.PASS]


# Correlation.


def test_a_question_that_is_told_and_not_asked_is_no_question() -> None:
    """Without an id it opens nothing: no rule but the one on the form speaks."""
    talk = running("never").started(command_item())
    talk.tells(COMMAND, threadId="thr_1", turnId="turn_1", itemId="call_1")
    rows = judge(BOOK, talk.trace(End.CLOSED), all_rules().values())
    assert {row.rule for row in rows if row.verdict is Verdict.FAIL} == {
        "method.right-form",
        "method.known",
    }


def test_an_id_may_be_used_again_for_what_is_over() -> None:
    talk = running().approved().end_turn()
    assert wrong(talk.says({"method": "item/tool/call", "id": 0, "params": {}})) == []


def test_a_number_and_its_text_are_two_ids() -> None:
    talk = running().started(command_item()).question()
    rows = wrong(talk.says({"method": "item/tool/call", "id": "0", "params": {}}), End.CLOSED)
    assert rows == []


def test_an_answer_of_ours_in_no_form_blames_the_harness() -> None:
    talk = pending().sends({"id": 0, "accepted": True})
    (row,) = [row for row in wrong(talk, End.CLOSED) if row.rule == "harness.own-answer"]
    assert row.verdict is Verdict.ERROR
    assert "a result, or an error" in row.expected
