"""Effects of requests: the column of the book agrees with the models of results."""

import pytest

from harness.protocol.spec.effects import methods_with
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.rows import EFFECTS, make_unlisted, read_table
from harness.protocol.spec.yamlfile import BookError, read_text
from harness.protocol.wire.methods import METHODS, Direction
from harness.scenario.client_steps import METHOD_OF_STEP, result_has
from harness.trace.views import OPENING_METHODS

BOOK = load_book()
REQUESTS = [row.method for row in METHODS if row.direction is Direction.CLIENT_REQUEST]
# Its threads stand in a list, which names none of them.
LISTS = {"thread/list"}


def test_an_answer_shows_a_thread_where_its_model_has_one() -> None:
    assert {one for one in REQUESTS if result_has(one, "thread")} | LISTS == set(
        methods_with("shows-thread")
    )


def test_an_answer_gives_a_turn_where_its_model_has_one() -> None:
    assert {one for one in REQUESTS if result_has(one, "turn")} == set(methods_with("gives-turn"))


def test_whoever_opens_a_thread_is_shown_it() -> None:
    assert set(methods_with("opens-thread")) <= set(methods_with("shows-thread"))


def test_the_view_of_a_trace_knows_what_opens_a_thread() -> None:
    """It cannot read the book, which is made with values of traces."""
    assert methods_with("opens-thread") == OPENING_METHODS


def test_every_effect_is_one_that_some_request_has() -> None:
    assert [effect for effect in EFFECTS if not methods_with(effect)] == []


def test_effects_that_the_text_does_not_name_have_no_row_but_an_open_point() -> None:
    name = "unlisted_methods.yaml"
    rows = read_table(name, read_text(name), "method", make_unlisted)
    points = {f"?{point.id}" for point in BOOK.unspecified}
    assert rows.keys() <= set(REQUESTS)
    for row in rows.values():
        assert BOOK.method(row.method) is None
        assert set(row.clauses) <= points


def test_every_step_that_is_a_request_names_one() -> None:
    assert set(METHOD_OF_STEP.values()) <= set(REQUESTS)


def test_an_effect_that_nobody_knows_is_refused() -> None:
    row = {"method": "a/b", "clauses": ["?a.b"], "effects": ["opens-doors"]}
    with pytest.raises(BookError, match="'opens-doors' is none of shows-thread, opens-thread"):
        make_unlisted("here", row)
