"""The words, the clause and the messages of findings about clients."""

import pytest

from harness.play.client_duties.verdicts import DutyVerdict
from tests.clients.wire_talk import COMMAND, Wire

OPEN = {"method": "item/tool/call", "id": 0, "params": {}}
UNKNOWN = {"code": -32601, "message": "unknown method"}


def finding(wire: Wire, rule: str) -> DutyVerdict:
    (found,) = [one for one in wire.verdicts() if one.verdict == "FAIL" and one.rule == rule]
    return found


@pytest.mark.parametrize(
    ("message", "clause"),
    [
        (b"not json", "rpc.json-object"),
        ([], "rpc.json-object"),
        ({}, "rpc.request-form"),
        ({"id": 9}, "rpc.request-form"),
        ({"method": 5, "id": 9, "params": {}}, "rpc.request-form"),
        ({"method": "thread/list", "id": None, "params": {}}, "rpc.request-form"),
        ({"method": "thread/list", "id": 9, "params": []}, "rpc.request-form"),
        ({"method": "thread/list", "id": 9, "params": None}, "rpc.request-form"),
        ({"method": "thread/list", "id": 9}, "rpc.request-params"),
        ({"method": "initialized", "params": None}, "rpc.client-notification-form"),
        ({"result": {}}, "rpc.answer-form"),
        ({"error": UNKNOWN}, "rpc.answer-form"),
    ],
    ids=str,
)
def test_message_of_a_wrong_form_breaks_the_requirement_on_its_form(
    message: object, clause: str
) -> None:
    found = finding(Wire().client(message), "duty.message-form")
    assert found.clause.startswith(f"{clause}: ")
    assert found.is_red(strict=True)


@pytest.mark.parametrize(
    ("answer", "clause", "level"),
    [
        ({"id": 0}, "rpc.answer-form", "MUST"),
        ({"id": 0, "jsonrpc": "2.0"}, "rpc.answer-form", "MUST"),
        ({"id": 0, "answer": 1}, "rpc.answer-form", "MUST"),
        ({"id": 0, "result": {}, "error": UNKNOWN}, "rpc.answer-form", "MUST"),
        ({"id": 0, "result": None}, "rpc.answer-result", "SHOULD"),
        ({"id": 0, "result": "yes"}, "rpc.answer-result", "SHOULD"),
    ],
    ids=str,
)
def test_answer_of_a_wrong_form_breaks_its_own_duty_alone(
    answer: object, clause: str, level: str
) -> None:
    wire = Wire().server(OPEN).client(answer)
    wire.now = 5.0
    found = finding(wire, "duty.answer-form")
    assert found.clause.startswith(f"{clause}: ")
    assert wire.broken() == {"duty.answer-form": level}


def test_result_of_an_approval_that_is_null_breaks_the_requirement_on_approvals() -> None:
    found = finding(Wire().asked().client({"id": 0, "result": None}), "duty.answer-form")
    assert found.clause.startswith("approval.answer: ")


@pytest.mark.parametrize(
    ("asked", "answered", "expected", "actual"),
    [
        (0, "0", f"id: 0, a number, as in {COMMAND}", 'id: "0", a string'),
        ("7", 7, f'id: "7", a string, as in {COMMAND}', "id: 7, a number"),
    ],
)
def test_id_of_another_type_is_reported_as_such(
    asked: object, answered: object, expected: str, actual: str
) -> None:
    found = finding(Wire().asked(asked).decides("accept", answered), "duty.answer-known")
    assert (found.expected, found.actual) == (expected, actual)


def test_second_answer_is_reported_as_such() -> None:
    found = finding(Wire().asked().decides("accept").decides("accept"), "duty.answer-once")
    assert found.expected == f"one answer to request {COMMAND} id 0"
    assert found.actual == "a second answer (id: 0)"


def test_missing_answer_names_the_request_once() -> None:
    wire = Wire().asked()
    wire.now = 3.0
    found = finding(wire, "duty.answers")
    assert found.expected == f"an answer of the client to request {COMMAND} id 0"
    assert found.actual == "the client left after 3 s without one"


def test_error_for_a_notification_marks_the_one_that_it_names() -> None:
    error = {"code": -32601, "message": "unknown method turn/started"}
    wire = Wire().opens().speaks().ends().client({"id": None, "error": error})
    found = finding(wire, "duty.notification-unanswered")
    marked = [line for line in found.wire if line.startswith("  *")]
    assert ["turn/started" in line for line in marked] == [True, True]


def test_error_for_a_notification_marks_the_only_one_that_came() -> None:
    wire = Wire().opens().tells("turn/started").client({"id": None, "error": UNKNOWN})
    found = finding(wire, "duty.notification-unanswered")
    assert "turn/started" in found.wire[0]


def test_error_that_could_answer_several_notifications_marks_none() -> None:
    wire = Wire().opens().speaks().ends().client({"id": None, "error": UNKNOWN})
    found = finding(wire, "duty.notification-unanswered")
    assert len(found.wire) == 1
    assert found.actual == "id: null, which does not say which message it is about"


def test_client_that_never_greets_is_told_its_first_message() -> None:
    wire = Wire()
    wire.judge.open_connection("2")
    wire.connection = "2"
    found = finding(wire.opens(), "duty.handshake-first")
    assert found.actual == 'no initialize came; method: "thread/start"'
