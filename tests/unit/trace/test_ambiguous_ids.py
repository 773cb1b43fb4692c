"""Two open requests with one id: only the side that sent them is blamed."""

import pytest

from harness.judge.judge import feed_trace
from harness.judge.rules.discovery import all_rules, client_rules
from harness.judge.verdict import Verdict
from harness.protocol.spec.loading import load_book
from harness.trace.correlation import Correlation
from harness.trace.trace import End
from tests.rules.traces import Talk

THREAD_ANSWER = {"id": 7, "result": {"thread": {"id": "thr_1"}}}
TURN_ANSWER = {"id": 7, "result": {"turn": {"id": "turn_1", "items": [], "status": "inProgress"}}}
THREAD_START = {"method": "thread/start", "id": 7, "params": {}}
TURN_START = {
    "method": "turn/start",
    "id": 7,
    "params": {"threadId": "thr_1", "input": [{"type": "text", "text": "hi"}]},
}


def test_answers_to_one_id_belong_to_the_open_requests_in_order() -> None:
    trace = (
        Talk().sends(THREAD_START).sends(TURN_START).says(THREAD_ANSWER).says(TURN_ANSWER).trace()
    )
    first, second, first_answer, second_answer = trace.frames
    pairs = Correlation(trace.frames)
    assert pairs.request_of(first_answer) is first
    assert pairs.request_of(second_answer) is second


@pytest.mark.parametrize(
    "answers",
    [
        (THREAD_ANSWER, TURN_ANSWER),
        (TURN_ANSWER, THREAD_ANSWER),
        (TURN_ANSWER,),
        (THREAD_ANSWER, TURN_ANSWER, TURN_ANSWER),
        ({"id": 7, "error": {"code": -32600, "message": "id 7 is open"}}, THREAD_ANSWER),
    ],
)
def test_no_rule_blames_the_server_for_answers_to_an_id_that_two_requests_have(
    answers: tuple[dict[str, object], ...],
) -> None:
    talk = Talk().sends(THREAD_START).sends(TURN_START)
    for answer in answers:
        talk.says(answer)
    trace = talk.trace()
    rules = [rule for rule in all_rules().values() if not rule.id.startswith("harness.")]
    rows = feed_trace(load_book(), trace, rules).finish(End.QUIESCENT)
    blamed = [row.rule for row in rows if row.verdict is Verdict.FAIL and set(row.frames) & {0, 1}]
    assert blamed == []
    duties = feed_trace(load_book(), trace, client_rules().values()).finish(End.CLOSED)
    assert "duty.id-free" in {row.rule for row in duties if row.verdict is Verdict.FAIL}


def test_an_id_that_is_used_again_after_its_answer_is_judged() -> None:
    wrong_answer = {"id": 7, "result": {}}
    trace = (
        Talk().sends(THREAD_START).says(THREAD_ANSWER).sends(TURN_START).says(wrong_answer).trace()
    )
    rows = feed_trace(load_book(), trace, all_rules().values()).finish(End.CLOSED)
    assert "shape.response" in {row.rule for row in rows if row.verdict is Verdict.FAIL}
