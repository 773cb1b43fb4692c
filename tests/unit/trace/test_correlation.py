"""Equality of ids, and the request that an answer belongs to."""

import json
from typing import Any

import pytest

from harness.trace.correlation import Correlation, as_id, same_id
from harness.trace.views import conversation_of
from tests.rules.traces import Talk

# Two ids as they stand on the wire, and whether they are of one request.
PAIRS = [
    ("1", "1", True),
    ("1", "1.0", True),
    ("1e2", "100", True),
    ("1.5", "1.5", True),
    ("-0", "0", True),
    ('"1"', '"1"', True),
    ('"é"', r'"\u00e9"', True),
    ('""', '""', True),
    ("100000000000000000001", "100000000000000000001", True),
    ("1", "2", False),
    ("1", '"1"', False),
    ("1", '"1.0"', False),
    ("1", "true", False),
    ("0", "false", False),
    ("0", "null", False),
    ("0", '""', False),
    ("1", "[1]", False),
    ("9007199254740993", "9007199254740992", False),
    ("9007199254740993", "9007199254740992.0", False),
]
# What is no id belongs to no request, not even to one with the same.
NO_IDS = ["null", "true", "false", "[]", "[1]", "{}", '{"id": 1}', "NaN", "Infinity", "1e999"]


def of(written: str) -> Any:
    return json.loads(written)


@pytest.mark.parametrize(("one", "other", "same"), PAIRS)
def test_ids_are_the_same_by_their_json_value_and_type(one: str, other: str, same: bool) -> None:
    assert same_id(of(one), of(other)) is same
    assert same_id(of(other), of(one)) is same


@pytest.mark.parametrize("written", NO_IDS)
def test_an_invalid_id_is_the_same_as_none(written: str) -> None:
    assert as_id(of(written)) is None
    assert not same_id(of(written), of(written))


@pytest.mark.parametrize(("one", "other", "same"), [*PAIRS, *((one, one, False) for one in NO_IDS)])
def test_an_answer_belongs_to_a_request_exactly_if_their_ids_are_the_same(
    one: str, other: str, same: bool
) -> None:
    """The view, the order, and what is owed say the same."""
    trace = (
        Talk().sends({"method": "a", "id": of(one)}).says({"id": of(other), "result": {}}).trace()
    )
    request, answer = trace.frames
    assert (conversation_of(trace).request_of(answer) is request) is same
    assert trace.before(request, answer) is (True if same else None)


def test_an_id_counts_within_its_connection_and_direction() -> None:
    talk = Talk().asks("a").on("c2").answers({}, to=1)
    talk.on("c1").says({"method": "b", "id": 1}).answers({}, to=1).sends({"id": 1, "result": {}})
    ours, elsewhere, theirs, answer, our_answer = talk.trace().frames
    found = Correlation(talk.trace().frames)
    assert found.request_of(elsewhere) is None
    assert found.request_of(answer) is ours
    assert found.request_of(our_answer) is theirs


def test_an_answer_belongs_to_the_last_request_of_its_id_that_came_before() -> None:
    talk = Talk().asks("a").answers({}).sends({"method": "b", "id": 1})
    talk.answers({}, to=1).answers({}, to=1)
    first, one, second, two, three = talk.trace().frames
    found = Correlation(talk.trace().frames)
    assert [found.request_of(answer) for answer in (one, two, three)] == [first, second, second]
    assert found.answer_of(first) is one
    assert found.answer_of(second) is two
    assert list(found.requests) == [second]


def test_text_that_is_no_message_answers_nothing() -> None:
    talk = Talk().asks("a").says({"id": 1})
    found = Correlation(talk.trace().frames)
    assert found.request_of(talk.trace().frames[1]) is None
    assert found.answer_of(talk.trace().frames[0]) is None
