"""The texts, clauses and messages of findings about clients."""

from typing import Any

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


def test_initialized_as_a_request_is_told_by_its_id_and_its_refusal() -> None:
    wire = Wire().asks("initialized").server({"id": 2, "error": UNKNOWN})
    found = finding(wire, "duty.handshake-first")
    assert (found.level, found.actual) == ("INFO", "id: 2")
    assert found.expected == "no id: initialized is a notification"
    assert len(found.wire) == 2


@pytest.mark.parametrize("id_", ["thr_1", "item_1", "c_2", "hello", "inProgress"])
@pytest.mark.parametrize("method", ["turn/interrupt", "turn/steer"])
def test_id_of_anything_but_a_turn_is_not_known_as_a_turn(method: str, id_: str) -> None:
    param = "turnId" if method == "turn/interrupt" else "expectedTurnId"
    wire = (
        Wire().opens().speaks().asked().tells("hello", items=[{"id": "item_1"}], nextCursor="c_2")
    )
    wire.tells("hello", turns=[{"id": "turn_2", "items": [{"id": "item_1", "text": "hello"}]}])
    wire.asks(method, threadId="thr_1", input=[], **{param: id_})
    assert finding(wire, "duty.turn-known").actual == f'params.{param}: "{id_}"'


@pytest.mark.parametrize(
    "params",
    [
        {"turn": {"id": "turn_2"}},
        {"turnId": "turn_2"},
        {"last_turn_id": "turn_2"},
        {"activeTurn": "turn_2"},
        {"turnIds": ["turn_1", "turn_2"]},
        {"thread": {"id": "thr_1", "turns": [{"id": "turn_2", "items": []}]}},
        {"data": [{"id": "turn_2", "items": [], "status": "completed"}]},
    ],
    ids=str,
)
def test_id_that_the_server_gave_as_a_turn_in_any_member_is_known(params: dict[str, Any]) -> None:
    wire = Wire().opens().speaks().tells("hello", **params)
    wire.asks("turn/interrupt", threadId="thr_1", turnId="turn_2")
    assert wire.broken() == {}


@pytest.mark.parametrize(
    ("page", "broken"),
    [
        ({"nextCursor": "thr_9"}, {}),
        ({"next_cursor": "thr_9"}, {}),
        ({"data": [{"id": "thr_9"}]}, {"duty.cursor-given": "SHOULD"}),
    ],
    ids=str,
)
def test_cursor_is_known_only_if_the_server_gave_it_as_a_cursor(
    page: dict[str, Any], broken: dict[str, str]
) -> None:
    wire = Wire().asks("thread/list").gets(**page).asks("thread/list", cursor="thr_9")
    assert wire.broken() == broken
