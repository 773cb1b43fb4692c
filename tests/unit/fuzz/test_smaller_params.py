"""Shrinking of params: relevant members stay, and invalid params are marked as such."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from harness.protocol.spec.loading import load_book
from harness.protocol.values import obj
from harness.search.fuzz.documents import input_document, mark_deliberate
from harness.search.fuzz.params import Request
from harness.search.fuzz.sessions.shrinking import FailurePoint, shrink_document

BOOK = load_book()
Json = dict[str, Any]
SAID = [{"type": "text", "text": "a" * 5000}, {"type": "text", "text": "b"}]


def request(document: Json) -> Json:
    """The body of the last request of a document."""
    return [step["request"] for step in document["client"] if "request" in step][-1]


def made_small(one: Request, fails: Callable[[Json], bool]) -> Json:
    """Shrink a request; `fails` decides by its body whether it still fails."""

    def wrong(document: Json) -> bool:
        asked = [step["request"] for step in document["client"] if "request" in step]
        return any(body["method"] == one.method and fails(body) for body in asked)

    small = shrink_document(
        input_document(BOOK, [one]),
        lambda documents: [
            FailurePoint(len(one["client"])) if wrong(one) else None for one in documents
        ],
        mark=partial(mark_deliberate, BOOK),
    )
    return request(small)


def test_members_that_do_not_matter_are_left_out() -> None:
    params = {"threadId": 5, "input": SAID, "extra": {"deep": [1, {"a": None}]}}
    small = made_small(
        Request("turn/start", params), lambda body: "deep" in body["params"].get("extra", {})
    )
    assert (small["params"], small["deliberate"]) == ({"extra": {"deep": []}}, True)


def test_a_request_that_is_right_stays_right() -> None:
    params = {"threadId": "{thread}", "input": SAID, "model": "m"}
    small = made_small(Request("turn/start", params), lambda body: "threadId" in body["params"])
    assert "model" not in small["params"]
    assert "deliberate" not in small
    assert BOOK.is_valid_params("turn/start", small["params"])


def test_a_long_text_is_cut_where_its_length_does_not_matter() -> None:
    small = made_small(
        Request("thread/read", {"threadId": "x" * 5000}),
        lambda body: bool(body["params"].get("threadId")),
    )
    assert small["params"] == {"threadId": "x"}


def _depth(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value
    return 1 + max(map(_depth, inner), default=0) if isinstance(value, dict | list) else 0


def _nest(depth: int) -> Any:
    return [{"a": _nest(depth - 2)}] if depth > 0 else None


@pytest.mark.parametrize(
    ("value", "fails", "small"),
    [
        ("x" * 5000, lambda value: isinstance(value, str) and len(value) > 1000, "x" * 1250),
        (10**30, lambda value: isinstance(value, int), 0),
        (10**30, lambda value: isinstance(value, int) and value > 5, 10**30),
        (_nest(60), lambda value: isinstance(value, list), []),
        ([1, {"b": [_nest(9)]}], lambda value: _depth(value) >= 4, None),
    ],
    ids=["length", "number", "large-number", "any-nest", "nest-of-a-depth"],
)
def test_a_value_is_as_simple_as_the_failure_lets_it_be(
    value: Any, fails: Callable[[Any], bool], small: Any
) -> None:
    request = Request("thread/read", {"threadId": "{thread}", "extra": {"deep": value}})
    left = made_small(request, lambda body: fails(obj(body["params"].get("extra")).get("deep")))
    found = left["params"]["extra"]["deep"]
    if small is None:
        assert (fails(found), _depth(found)) == (True, 4)
    else:
        assert found == small


@pytest.mark.parametrize(
    ("params", "wrong"),
    [
        ({"threadId": "{thread}", "includeTurns": True}, False),
        ({"threadId": "{thread}", "includeTurns": "yes"}, True),
        ({"threadId": "$1"}, False),
        ({}, True),
    ],
)
def test_a_request_is_marked_by_what_it_is_now(params: Json, *, wrong: bool) -> None:
    body = request(input_document(BOOK, [Request("thread/read", params)]))
    assert body.get("deliberate", False) is wrong
    assert mark_deliberate(BOOK, {**body, "deliberate": not wrong}) == body


def test_requests_of_a_session_keep_their_params() -> None:
    step = {"request": {"method": "thread/read", "params": {"threadId": "$t.thread.id", "x": 1}}}
    document = {"title": "s", "client": [{"start_thread": {"as": "t"}}, step]}

    def fails(documents: list[Json]) -> list[FailurePoint | None]:
        asked = [any("request" in one for one in document["client"]) for document in documents]
        both = zip(documents, asked, strict=True)
        return [FailurePoint(len(one["client"])) if yes else None for one, yes in both]

    assert step in shrink_document(document, fails, mark=partial(mark_deliberate, BOOK))["client"]
