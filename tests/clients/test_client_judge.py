"""The judge of clients inside a server: owed messages, verdicts, bounds."""

import json

import pytest

from harness.judge.rules.discovery import all_rules, client_rules
from harness.judge.verdict import Verdict
from harness.play.client_duties.live import ClientJudge
from tests.clients.duty_matrix import rows
from tests.clients.wire_talk import Wire


def test_every_duty_has_a_verdict_and_no_rule_on_servers_has() -> None:
    given = Wire().asked().decides("cancel").verdicts()
    assert {one.rule for one in given} == set(client_rules())
    assert not set(client_rules()) & set(all_rules())
    assert {one.verdict for one in given} <= {"PASS", "NOT_EXERCISED"}
    passed = {one.rule for one in given if one.verdict == "PASS"}
    assert passed >= {"duty.answer-known", "duty.answers", "duty.decision-known"}


def test_a_verdict_names_its_clause_and_shows_the_messages() -> None:
    (found,) = [
        one for one in Wire().asked().decides("approved").verdicts() if one.verdict == "FAIL"
    ]
    assert found.rule == "duty.decision-known"
    assert found.clause.startswith("approval.command-decisions: The decisions on a command are")
    assert found.clause.endswith("(session-protocol, line 192)")
    assert found.actual == 'result.decision: "approved"'
    assert [line[:3] for line in found.wire] == ["  *", "  *"]
    assert json.loads(json.dumps(found.to_json()))["wire"] == list(found.wire)
    assert found.is_red()


def test_a_question_that_was_open_for_long_is_held_against_the_client() -> None:
    wire = Wire().asked()
    wire.now = 1.5
    assert wire.broken() == {"duty.answers": "MUST"}


@pytest.mark.parametrize("closed", [True, False])
def test_a_question_of_the_last_moment_is_only_recorded(closed: bool) -> None:
    wire = Wire().asked()
    wire.now = 0.5
    if closed:
        wire.judge.close_connection("1")
        wire.now = 9.0
    (found,) = [one for one in wire.verdicts() if one.verdict == "FAIL"]
    assert (found.rule, found.level) == ("duty.answers", "INFO")
    assert found.actual == "the client left 0.5 s after the request, perhaps without reading it"
    assert not found.is_red(strict=True)


def test_a_client_that_only_looked_in_takes_no_duty_from_another() -> None:
    wire = Wire().opens()
    wire.judge.open_connection("probe")
    wire.judge.close_connection("probe")
    wire.asked()
    wire.now = 1.5
    assert wire.broken() == {"duty.answers": "MUST"}


def cleaned_up(wire: Wire) -> Wire:
    """Send the messages with which a server ends the turn of a client that is gone."""
    return wire.tells("serverRequest/resolved", threadId="thr_1", requestId=0).ends()


def test_cleaning_up_after_the_client_excuses_no_open_question() -> None:
    wire = Wire().asked()
    wire.now = 1.5
    wire.judge.close_connection("1")
    (found,) = [one for one in cleaned_up(wire).verdicts() if one.verdict == "FAIL"]
    assert (found.rule, found.level) == ("duty.answers", "MUST")
    assert found.actual == "the client left after 1.5 s without one"


@pytest.mark.parametrize(("item", "level"), [("item_1", "INFO"), ("item_2", "MUST")])
def test_question_that_a_client_gets_again_after_it_came_back_is_only_recorded(
    item: str, level: str
) -> None:
    wire = Wire().opens().speaks().asked()
    wire.now = 1.5
    wire.judge.close_connection("1")
    wire.on("2").asks("thread/resume", threadId="thr_1").gets(thread={"id": "thr_1"})
    wire.asked(7, itemId=item).decides("accept", 7).verdicts()
    broken = [row for row in rows(wire.judge.trace) if row.verdict is Verdict.FAIL]
    assert [(row.rule, str(row.level)) for row in broken] == [("duty.answers", level)]
    again = "the client left after 1.5 s without one; connection 2 was asked too"
    assert (broken[0].actual == again) is (level == "INFO")
    assert len(broken[0].frames) == (2 if level == "INFO" else 1)


def test_question_that_ended_before_the_client_left_is_excused() -> None:
    wire = cleaned_up(Wire().asked())
    wire.now = 1.5
    wire.judge.close_connection("1")
    assert wire.broken() == {}


def test_question_to_a_client_that_has_left_is_not_judged() -> None:
    wire = Wire().opens()
    wire.judge.close_connection("1")
    wire.asked().now = 9.0
    assert wire.broken() == {}


def test_only_the_questions_of_the_last_moment_are_excused() -> None:
    wire = Wire().asked(1)
    wire.now = 1.5
    wire.asked(2).judge.close_connection("1")
    found = [one for one in wire.verdicts() if one.verdict == "FAIL"]
    assert {one.level for one in found} == {"MUST", "INFO"}
    assert not any("more like it" in one.actual for one in found)


def test_the_time_of_an_answered_question_does_not_excuse_an_older_one() -> None:
    wire = Wire().asked(1)
    wire.now = 5.0
    wire.asked(2).decides("accept", 2).judge.close_connection("1")
    assert wire.broken() == {"duty.answers": "MUST"}


def test_each_connection_has_its_own_questions() -> None:
    wire = Wire().asked(7).on("2").decides("accept", 7)
    assert wire.broken() == {"duty.answer-known": "MUST", "duty.answers": "INFO"}


def test_findings_that_are_alike_are_one_verdict() -> None:
    wire = Wire()
    for number in range(5):
        wire.asked(number).decides("approved", number)
    (found,) = [one for one in wire.verdicts() if one.verdict == "FAIL"]
    assert found.actual.endswith("(and 4 more like it)")


def test_a_client_that_floods_is_judged_on_what_fits() -> None:
    judge = ClientJudge("flood", max_frames=3)
    judge.open_connection("1")
    for number in range(9):
        judge.add_client_message("1", json.dumps({"id": number, "result": {}}).encode())
    assert judge.cut_off.startswith("what came later was not judged: more than 3 messages")
    assert [one.rule for one in judge.finish() if one.verdict == "FAIL"] == ["duty.answer-known"]
    assert len(judge.trace.frames) == 3


def test_nothing_is_taken_in_after_the_end() -> None:
    wire = Wire()
    first = wire.verdicts()
    assert wire.decides("accept").verdicts() == first
