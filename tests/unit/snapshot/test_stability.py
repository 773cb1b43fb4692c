"""Common part of several plays of one scenario, and whether another play shows it."""

import pytest

from harness.report.snapshot.message import VARIES, Transcript
from harness.report.snapshot.stability import common_transcript, matches, without_order
from tests.unit.snapshot.lines import ANSWER, COMPLETED, ITEM, PLAN, START, STARTED, said

PLAIN = said(START, ANSWER, STARTED, COMPLETED)


def pid(number: object) -> str:
    return f'<- {{"method": "ran", "params": {{"pid": {number}, "by": "bash"}}}}'


def test_equal_plays_stay_as_they_are() -> None:
    assert common_transcript([PLAIN, PLAIN, PLAIN]) == PLAIN
    assert matches(PLAIN, PLAIN)


@pytest.mark.parametrize(
    "other",
    [
        said(START, ANSWER, COMPLETED),
        said(START, ANSWER, STARTED, PLAN, COMPLETED),
        said(START, STARTED, ANSWER, COMPLETED),
        said(START, ANSWER, STARTED, COMPLETED, end="exited"),
        said(START, ANSWER, STARTED, COMPLETED.replace("completed", "failed")),
    ],
)
def test_a_steady_transcript_shows_no_other(other: Transcript) -> None:
    assert not matches(PLAIN, other)


def test_a_value_that_differs_is_left_open_and_the_rest_is_not() -> None:
    kept = common_transcript([said(START, pid(11)), said(START, pid(12)), said(START, pid(12))])
    assert kept.messages[1].value == {"method": "ran", "params": {"pid": VARIES, "by": "bash"}}
    assert not kept.free
    assert matches(kept, said(START, pid(77)))
    assert not matches(kept, said(START, pid(77).replace("bash", "zsh")))


def test_lists_of_several_lengths_are_left_open() -> None:
    kept = common_transcript([said(pid("[1]")), said(pid("[1, 2]"))])
    assert matches(kept, said(pid("[3, 4, 5]")))


def test_where_the_order_of_many_differs_none_is_kept() -> None:
    def told(words: str) -> list[str]:
        return [f'<- {{"method": "{word}", "params": {{}}}}' for word in words]

    one, other = said(START, ANSWER, *told("abcdefgh")), said(*told("hgfedcba"), START, ANSWER)
    kept = common_transcript([one, other])
    assert kept.free
    assert matches(kept, one)
    assert matches(kept, other)
    assert matches(kept, said(*told("badc"), START, *told("efgh"), ANSWER))
    assert not matches(kept, said(START, ANSWER, *told("abcdefg")))
    assert not matches(kept, said(START, ANSWER, *told("abcdefghh")))
    assert not matches(kept, said(START, ANSWER, *told("abcdefgi")))


def test_where_the_number_of_a_message_differs_any_will_do() -> None:
    kept = common_transcript([said(START, ANSWER, PLAN), said(START, ANSWER, PLAN, PLAN)])
    (many,) = [one for one in kept.messages if one.any_number]
    assert many.line.startswith('<- (any place) (any number) {"method": "turn/plan/updated"')
    for number in (0, 1, 5):
        assert matches(kept, said(START, ANSWER, *[PLAN] * number))
    assert not matches(kept, said(START, ANSWER, PLAN, PLAN.replace("[]", '["x"]')))


def test_names_in_no_order_have_no_numbers_and_answers_keep_their_requests() -> None:
    two = [START, START.replace("1>", "2>"), ANSWER, ANSWER.replace("1>", "2>")]
    one = without_order(said(*two))
    assert one == without_order(said(two[1], two[0], two[3], two[2]))
    assert '"id": "<request turn/start>"' in one.messages[-1].line
    assert without_order(one) is one


def test_a_server_that_asks_is_answered_in_no_order_too() -> None:
    asked = '<- {"method": "ask", "id": "<request 1>", "params": {}}'
    told = '-> {"id": "<request 1>", "result": {}}'
    kept = without_order(said(asked, told))
    assert matches(kept, said(asked, told))
    assert not matches(kept, said(asked))


def test_an_end_that_differs_is_left_open() -> None:
    kept = common_transcript([PLAIN, said(START, ANSWER, STARTED, COMPLETED, end="exited")])
    assert kept.end == VARIES
    assert matches(kept, PLAIN)


def test_true_is_not_one() -> None:
    assert not matches(said(pid("true")), said(pid(1)))


def test_a_message_that_races_alone_loses_its_place_and_the_others_keep_theirs() -> None:
    one = said(START, ANSWER, STARTED, ITEM, PLAN, COMPLETED)
    other = said(START, ANSWER, ITEM, PLAN, STARTED, COMPLETED)
    kept = common_transcript([one, other, one])
    assert not kept.free
    (loose,) = [message for message in kept.messages if message.any_place]
    assert loose.line.startswith('<- (any place) {"method": "turn/started"')
    for play in (one, other, said(STARTED, START, ANSWER, ITEM, PLAN, COMPLETED)):
        assert matches(kept, play)
    assert not matches(kept, said(START, ANSWER, STARTED, PLAN, ITEM, COMPLETED))
    assert not matches(kept, said(START, ANSWER, ITEM, PLAN, COMPLETED))
    assert not matches(kept, said(START, ANSWER, STARTED, STARTED, ITEM, PLAN, COMPLETED))


def test_a_request_and_its_answer_race_together() -> None:
    def read(number: int) -> list[str]:
        return [
            f'-> {{"method": "thread/read", "id": "<request {number}>"}}',
            f'<- {{"id": "<request {number}>", "result": {{}}}}',
        ]

    one = said(*read(1), STARTED, ITEM, PLAN, COMPLETED)
    other = said(STARTED, ITEM, PLAN, *read(1), COMPLETED)
    kept = common_transcript([one, other])
    assert not kept.free
    assert [message.any_place for message in kept.messages] == [False] * 4 + [True] * 2
    assert matches(kept, said(STARTED, ITEM, PLAN, COMPLETED, *read(3)))
    refused = '<- {"id": "<request 1>", "error": {"code": 1}}'
    assert not matches(kept, said(read(1)[0], refused, STARTED, ITEM, PLAN, COMPLETED))


def test_names_whose_numbers_differ_have_none() -> None:
    def about(number: int) -> str:
        return f'<- {{"method": "said", "params": {{"itemId": "<item {number}>"}}}}'

    kept = common_transcript([said(about(1)), said(about(2))])
    assert kept.messages[0].value["params"] == {"itemId": "<item>"}
    assert matches(kept, said(about(7)))
    assert not matches(kept, said(about(7).replace("<item 7>", "<turn 7>")))
    assert not matches(said(about(1)), said(about(2)))
