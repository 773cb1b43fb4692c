"""A trace as text that is the same in each run."""

import json

from harness.trace.normalise import transcript
from tests.rules.approval_talk import Approvals, command_item
from tests.rules.case import running
from tests.rules.traces import Talk

OUTPUT = "item/commandExecution/outputDelta"


def printed(*pieces: tuple[str, str]) -> Talk:
    talk = running().started(command_item("call_1")).started(command_item("call_2"))
    for item, piece in pieces:
        talk.delta(item, piece, method=OUTPUT)
    return talk


def test_where_a_commands_output_is_cut_does_not_show() -> None:
    whole = transcript(printed(("call_1", "one\ntwo\n")).trace())
    assert transcript(printed(("call_1", "one\n"), ("call_1", "two\n")).trace()) == whole
    assert whole.count(OUTPUT) == 1


def test_output_of_two_commands_stays_apart_and_in_order() -> None:
    text = transcript(printed(("call_1", "a"), ("call_2", "b"), ("call_1", "c")).trace())
    shown = [json.loads(line[3:])["params"] for line in text.splitlines() if OUTPUT in line]
    assert [params["delta"] for params in shown] == ["a", "b", "c"]


def test_deltas_of_a_message_stay_as_they_were_sent() -> None:
    text = transcript(running().message("msg_1", "He", "llo").trace())
    assert text.count('"delta"') == 2


def test_ids_paths_and_times_are_named_and_what_stands_around_stays() -> None:
    text = transcript(running().trace())
    assert '"threadId": "<thread 1>"' in text
    assert "thr_1" not in text
    assert '"createdAt": "<time>"' in text
    assert text.splitlines()[-1] == "end: quiescent"


def test_a_request_that_was_resolved_has_the_name_of_its_request() -> None:
    talk = Approvals().running().started(command_item()).question().decides("accept")
    asked, resolved = [
        json.loads(line[3:])
        for line in transcript(talk.resolved().trace()).splitlines()
        if "requestApproval" in line or "serverRequest/resolved" in line
    ]
    assert resolved["params"]["requestId"] == asked["id"]
    assert asked["id"].startswith("<request ")


def test_a_resolved_question_that_was_never_asked_stays_as_sent() -> None:
    text = transcript(running().tells("serverRequest/resolved", requestId=77).trace())
    assert '"requestId": 77' in text


def test_a_cursor_has_the_same_name_where_it_is_given_and_where_it_is_used() -> None:
    talk = Talk().asks("thread/list", limit=2).answers({"data": [], "nextCursor": "2"})
    talk.asks("thread/list", limit=2, cursor="2").answers({"data": [], "nextCursor": None})
    text = transcript(talk.asks("thread/list", cursor="of nobody").trace())
    assert text.count('"<cursor 1>"') == 2
    assert text.count('"limit": 2') == 2
    assert '"nextCursor": null' in text
    assert '"of nobody"' in text
