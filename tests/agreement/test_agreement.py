"""The judge's book and the wire models agree, except for the differences in `settled`."""

from typing import get_args

import pytest

from agreement.messages import BOOK, document_differences, pairs, stated_differences
from agreement.settled import DOCUMENTS, EXPLAINED, NOT_IN_THE_BOOK
from harness.judge.rules.turns.errors import GIVEN
from harness.protocol.spec.rows import MethodRow
from harness.protocol.wire.error import AgentErrorInfo
from harness.protocol.wire.methods import BY_METHOD, METHODS, Direction, MethodSpec

SETTLED = "tests/agreement/settled.py"


def test_the_two_say_something_else_only_where_a_reason_is_given():
    found = stated_differences()
    assert found - set(EXPLAINED) == set(), f"mend book or wire, or give the reason in {SETTLED}"
    assert set(EXPLAINED) - found == set(), f"no longer differ: delete from {SETTLED}"


@pytest.mark.slow
def test_both_take_the_same_values_and_write_again_what_they_read():
    found = document_differences()
    assert {place: seen for place, seen in found.items() if place not in DOCUMENTS} == {}
    assert set(DOCUMENTS) - set(found) == set()


def test_the_values_given_of_the_one_open_list_are_the_same():
    assert set(get_args(AgentErrorInfo)) == set(GIVEN)


def test_every_reason_is_in_the_book():
    points = {f"?{point.id}" for point in BOOK.unspecified}
    for reason in (*EXPLAINED.values(), *DOCUMENTS.values(), *NOT_IN_THE_BOOK.values()):
        assert reason in points or BOOK.requirement(reason)


@pytest.mark.parametrize("spec", METHODS, ids=lambda spec: spec.method)
def test_every_method_of_the_wire_has_its_row_on_the_same_side(spec: MethodSpec):
    method, event = BOOK.method(spec.method), BOOK.event(spec.method)
    if spec.method in NOT_IN_THE_BOOK:
        assert method is None
        assert event is None
    elif spec.direction is Direction.SERVER_NOTIFICATION:
        assert method is None
        assert event is not None, f"needs a row of events, or of NOT_IN_THE_BOOK in {SETTLED}"
        assert event.stability == spec.stability
    else:
        assert event is None
        assert method is not None, f"needs a row of methods, or of NOT_IN_THE_BOOK in {SETTLED}"
        assert method.stability == spec.stability
        from_client = spec.direction is Direction.CLIENT_REQUEST
        assert method.direction == ("client-to-server" if from_client else "server-to-client")


@pytest.mark.parametrize("row", [*BOOK.methods, *BOOK.events], ids=lambda row: row.method)
def test_every_row_of_the_book_is_in_the_wire_and_compared_where_the_text_shows_it(row):
    spec = BY_METHOD[row.method]
    shown = [row.params, row.result if isinstance(row, MethodRow) else None]
    compared = [pair.reference for pair in pairs([spec])]
    assert compared == [reference for reference in shown if reference]
    if None in shown[: 1 + isinstance(row, MethodRow)]:
        assert any(clause.startswith("?") for clause in row.clauses)
