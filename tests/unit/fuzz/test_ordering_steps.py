"""Shrinking removes ordering steps last; without a server."""

from collections.abc import Callable
from typing import Any

import pytest

from harness.search.fuzz.sessions import shrinking
from harness.search.fuzz.sessions.cuts import one_after_another, ordering_places, split_step
from harness.search.fuzz.sessions.shrinking import FailurePoint, shrink_document

Json = dict[str, Any]
ASKED = "item/commandExecution/requestApproval"
DOCUMENT: Json = {
    "title": "A session",
    "model": {"t": [{"reply": [{"run": "echo one"}]}, {"reply": [{"message": "Done."}]}]},
    "client": [
        {"start_thread": {"as": "t", "params": {"approvalPolicy": "untrusted"}}},
        {"start_turn": {"thread": "t", "text": "go", "as": "u"}},
        {"wait": {"request": ASKED}},
        {"request": {"method": "thread/loaded/list"}},
        {"request": {"method": "thread/read", "params": {"threadId": "$t.thread.id"}}},
        {"answer": {"to": ASKED, "decision": "accept"}},
        {"wait": {"turn": "u"}},
    ],
}


def kinds(document: Json) -> list[str]:
    return [split_step(step)[0] for step in document["client"]]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A case of one step alone is small enough."""
    monkeypatch.setattr(shrinking, "SMALL_CASE_STEPS", 1)


def small(wrong: Callable[[Json, int], bool]) -> tuple[Json, list[Json]]:
    """The document made small, where a play goes wrong as the function says, and what was tried.

    The function is also given how often the same document was played before.
    """
    tried: list[Json] = []

    def fails(documents: list[Json]) -> list[FailurePoint | None]:
        found: list[FailurePoint | None] = []
        for one in documents:
            number = sum(1 for before in tried if before == one)
            tried.append(one)
            found.append(FailurePoint(len(one["client"])) if wrong(one, number) else None)
        return found

    return shrink_document(DOCUMENT, fails, at_once=2), tried


def test_a_small_case_keeps_what_says_what_comes_first() -> None:
    document, _ = small(lambda document, _: "start_turn" in kinds(document))
    assert kinds(document) == ["start_thread", "start_turn", "wait", "answer", "wait"]


def test_a_wait_is_kept_where_it_goes_wrong_by_chance_without(few: None) -> None:
    def wrong(document: Json, number: int) -> bool:
        """Each time with the wait for the question; without it the first two times."""
        asked = any(obj.get("request") == ASKED for _, obj in map(split_step, document["client"]))
        return "start_turn" in kinds(document) and (asked or number < 2)

    document, _ = small(wrong)
    assert kinds(document) == ["start_thread", "start_turn", "wait"]
    assert split_step(document["client"][-1])[1] == {"request": ASKED}


def test_in_a_long_case_what_goes_wrong_each_time_without_waits_has_none(few: None) -> None:
    document, _ = small(lambda document, _: "start_turn" in kinds(document))
    assert kinds(document) == ["start_thread", "start_turn"]


def test_the_answer_stays_while_anything_else_can_be_left_out(few: None) -> None:
    _, tried = small(lambda document, _: "start_turn" in kinds(document))
    first = next(one for one in tried if "answer" not in kinds(one) and "start_turn" in kinds(one))
    assert "request" not in kinds(first)


def test_the_steps_of_a_kind_are_named_by_their_places() -> None:
    assert ordering_places(DOCUMENT) == [2, 5, 6]


OVERLAP: Json = {
    "title": "A session",
    "client": [
        {"connect": "b"},
        {"start_thread": {"as": "t"}},
        {"request": {"method": "thread/list", "wait": False, "as": "r1", "expect": "any"}},
        {"request": {"method": "thread/loaded/list", "wait": False, "as": "r2", "expect": "any"}},
        {"wait": {"answer": "r1"}},
        {"wait": {"answer": "r2"}},
    ],
}


def methods(document: Json) -> list[str]:
    return [
        body["method"] for kind, body in map(split_step, document["client"]) if kind == "request"
    ]


def test_requests_that_overlap_are_sent_one_after_the_other_in_either_order() -> None:
    found = list(one_after_another(OVERLAP))
    assert [methods(one) for one in found] == [
        ["thread/list", "thread/loaded/list"],
        ["thread/loaded/list", "thread/list"],
    ]
    assert all(kinds(one) == ["connect", "start_thread", "request", "request"] for one in found)
    assert "wait" not in repr(found)
    assert list(one_after_another(DOCUMENT)) == []


def test_an_overlap_stays_where_it_goes_wrong_by_chance_without() -> None:
    def fails(documents: list[Json], *, orders: list[list[str]]) -> list[FailurePoint | None]:
        both = [sorted(methods(one)) == ["thread/list", "thread/loaded/list"] for one in documents]
        apart = ["wait" not in repr(one) for one in documents]
        return [
            FailurePoint(len(one["client"]))
            if two and (not alone or methods(one) in orders)
            else None
            for one, two, alone in zip(documents, both, apart, strict=True)
        ]

    for orders in ([], [["thread/loaded/list", "thread/list"]]):
        left = shrink_document(OVERLAP, lambda some, orders=orders: fails(some, orders=orders))
        assert ("wait" in repr(left)) is (not orders)
