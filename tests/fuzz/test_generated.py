"""Generated requests, without a server: valid where they claim it, often invalid, every method."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.protocol.spec.loading import load_book
from harness.search.fuzz.documents import input_document
from harness.search.fuzz.params import Request, methods, nearly_valid_params, requests, valid_params
from harness.search.fuzz.sessions.cuts import is_loadable
from harness.search.fuzz.values import (
    FOLDER,
    HUGE,
    HUGE_TEXT,
    NONSENSE,
    THREAD,
    TURN,
    fill_placeholders,
)

BOOK = load_book()
METHODS = sorted(set(methods(BOOK)))
SHOWN = [name for name in METHODS if (row := BOOK.method(name)) is not None and row.params]
KNOWN = {THREAD: "thr_1", TURN: "turn_1", FOLDER: "/work", HUGE: HUGE_TEXT}

pytestmark = pytest.mark.slow
quietly = settings(
    suppress_health_check=[HealthCheck.too_slow],
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=60,
)


def drawn(strategy: st.SearchStrategy[Any]) -> list[Any]:
    found: list[Any] = []

    def take(value: Any) -> None:
        found.append(value)

    quietly(given(strategy)(take))()
    return found


@pytest.mark.parametrize("method", SHOWN)
def test_right_params_are_right_by_the_book(method: str) -> None:
    for params in drawn(valid_params(BOOK, method)):
        assert BOOK.validate_params(method, fill_placeholders(params, KNOWN)) == []


@pytest.mark.parametrize("method", SHOWN)
def test_many_nearly_right_params_are_wrong_by_the_book(method: str) -> None:
    found = drawn(nearly_valid_params(BOOK, method))
    wrong = [
        one for one in found if not BOOK.is_valid_params(method, fill_placeholders(one, KNOWN))
    ]
    assert len(wrong) > len(found) / 8


def test_every_request_of_a_client_comes_up() -> None:
    asked = {row.method for row in BOOK.methods if row.direction == "client-to-server"}
    assert asked == set(METHODS)
    assert len(asked) > 15
    many = drawn(st.lists(requests(BOOK), min_size=20, max_size=20))
    assert {request.method for sent in many for request in sent} == asked


def test_nonsense_is_of_every_kind() -> None:
    kinds = {type(value) for values in drawn(st.lists(NONSENSE, min_size=9)) for value in values}
    assert kinds == {type(None), bool, int, float, str, list, dict}


def test_the_deepest_nonsense_fits_into_the_file_of_a_failure() -> None:
    """Else it could not be made smaller, nor be played again."""
    values = [one for many in drawn(st.lists(NONSENSE, min_size=9)) for one in many]
    deepest = max(values, key=lambda value: json.dumps(value).count("["))
    assert json.dumps(deepest).count("[") == 60
    asked = Request("turn/start", {"threadId": THREAD, "input": [{"text": deepest}]})
    assert is_loadable(input_document(BOOK, [asked]))


def test_placeholders_are_filled_wherever_they_stand() -> None:
    params = {"a": [THREAD, {"b": TURN}], "c": HUGE, "d": "no {thread}", "e": 1}
    assert fill_placeholders(params, KNOWN) == {
        "a": ["thr_1", {"b": "turn_1"}],
        "c": HUGE_TEXT,
        "d": "no {thread}",
        "e": 1,
    }
