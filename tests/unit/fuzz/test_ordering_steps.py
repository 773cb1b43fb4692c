"""Shrinking leaves the steps that say what comes before what until last; without a server."""

from collections.abc import Callable
from typing import Any

import pytest

from harness.fuzz.sessions import shrinking
from harness.fuzz.sessions.cuts import only, ordering
from harness.fuzz.sessions.shrinking import Wrong, shrunk

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
    return [only(step)[0] for step in document["client"]]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A case of one step alone is small enough."""
    monkeypatch.setattr(shrinking, "SMALL", 1)


def small(wrong: Callable[[Json, int], bool]) -> tuple[Json, list[Json]]:
    """The document made small, where a play goes wrong as the function says, and what was tried.

    The function is also given how often the same document was played before.
    """
    tried: list[Json] = []

    def fails(documents: list[Json]) -> list[Wrong | None]:
        found: list[Wrong | None] = []
        for one in documents:
            number = sum(1 for before in tried if before == one)
            tried.append(one)
            found.append(Wrong(len(one["client"])) if wrong(one, number) else None)
        return found

    return shrunk(DOCUMENT, fails, at_once=2), tried


def test_a_small_case_keeps_what_says_what_comes_first() -> None:
    document, _ = small(lambda document, _: "start_turn" in kinds(document))
    assert kinds(document) == ["start_thread", "start_turn", "wait", "answer", "wait"]


def test_a_wait_is_kept_where_it_goes_wrong_by_chance_without(few: None) -> None:
    def wrong(document: Json, number: int) -> bool:
        """Each time with the wait for the question; without it the first two times."""
        asked = any(obj.get("request") == ASKED for _, obj in map(only, document["client"]))
        return "start_turn" in kinds(document) and (asked or number < 2)

    document, _ = small(wrong)
    assert kinds(document) == ["start_thread", "start_turn", "wait"]
    assert only(document["client"][-1])[1] == {"request": ASKED}


def test_in_a_long_case_what_goes_wrong_each_time_without_waits_has_none(few: None) -> None:
    document, _ = small(lambda document, _: "start_turn" in kinds(document))
    assert kinds(document) == ["start_thread", "start_turn"]


def test_the_answer_stays_while_anything_else_can_be_left_out(few: None) -> None:
    _, tried = small(lambda document, _: "start_turn" in kinds(document))
    first = next(one for one in tried if "answer" not in kinds(one) and "start_turn" in kinds(one))
    assert "request" not in kinds(first)


def test_the_steps_of_a_kind_are_named_by_their_places() -> None:
    assert ordering(DOCUMENT) == [2, 5, 6]
