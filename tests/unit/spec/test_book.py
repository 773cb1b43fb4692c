"""Answers of the book: errors in words, types in messages, unknown names."""

import pytest

from harness.protocol.spec.errors import SchemaError, show_path, show_value
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.schemas import MAX_ERRORS, SchemaBook, acceptable
from harness.protocol.spec.yamlfile import BookError
from spec.examples import EVENTS, THREAD, TURN, WHERE, changed, item

BOOK = load_book()


def test_the_book_is_loaded_once():
    assert load_book() is BOOK


def test_the_revision_stands_for_the_documents():
    assert len(BOOK.revision) == 12
    assert int(BOOK.revision, 16)


def test_an_error_says_where_what_and_why():
    errors = BOOK.validate_event(
        "thread/status/changed", {"threadId": "t", "status": {"type": "Idle"}}
    )
    assert errors == [
        SchemaError(
            path=("status", "type"),
            message="status.type: expected one of notLoaded, idle, systemError, active; "
            'found "Idle"',
            expected="one of notLoaded, idle, systemError, active",
            clauses=("thread-status.values",),
        )
    ]


def test_an_error_cites_the_clause_of_the_type_before_that_of_the_member():
    (error,) = BOOK.validate_event("thread/status/changed", {"threadId": "t", "status": "idle"})
    assert error.message == 'status: expected an object; found "idle"'
    assert error.clauses == ("thread-status.form", "event.thread-status-changed")


def test_a_missing_member_cites_the_clause_of_that_member():
    thread = {key: value for key, value in THREAD.items() if key != "cwd"}
    (error,) = BOOK.validate_event("thread/started", {"thread": thread})
    assert error.message == "thread.cwd: expected the member to be there; it is missing"
    assert error.clauses == ("thread.cwd",)


def test_a_value_wrong_in_type_and_enumeration_is_one_error():
    (error,) = BOOK.validate_result("turn/start", {"turn": changed(TURN, status=3)})
    assert error.expected == "one of inProgress, completed, interrupted, failed"


def test_errors_are_sorted_by_place():
    turn = changed(TURN, items=[{"id": 1, "type": "plan", "text": ""} for _ in range(12)], id=0)
    errors = BOOK.validate_event("turn/started", {"turn": turn})
    indexes = [error.path[2] for error in errors if len(error.path) > 2]
    assert [error.path for error in errors][:2] == [("threadId",), ("turn", "id")]
    assert indexes == list(range(12))


def test_a_huge_wrong_message_gives_few_short_errors():
    items = [item("plan", text=["x" * 100]) for _ in range(5000)]
    turn = changed(TURN, items=items, status="y" * 1_000_000)
    errors = BOOK.validate_event("turn/started", {"threadId": {"k": "v" * 10**6}, "turn": turn})
    assert 0 < len(errors) <= MAX_ERRORS
    assert all(len(error.message) < 300 for error in errors)


def test_half_a_surrogate_pair_is_a_string_like_any_other():
    delta = {**EVENTS["item/agentMessage/delta"], "delta": "\ud83d"}
    assert BOOK.is_valid_event("item/agentMessage/delta", delta)
    assert BOOK.validate_event("item/agentMessage/delta", delta) == []
    (error,) = BOOK.validate_event("item/agentMessage/delta", {**delta, "turnId": 1})
    assert error.path == ("turnId",)
    status = {"threadId": "t", "status": {"type": "\ud83d"}}
    assert not BOOK.is_valid_event("thread/status/changed", status)
    (error,) = BOOK.validate_event("thread/status/changed", status)
    assert error.path == ("status", "type")
    assert acceptable({"\ud83d": ["a\udc00", 1]}) == {"\ufffd": ["a\ufffd", 1]}


def test_values_are_shown_short_and_by_size():
    assert show_value("x" * 1000) == '"' + "x" * 78 + "…"
    assert show_value({}) == "an empty object"
    assert show_value({"a": 1}) == "an object with 1 member"
    assert show_value([1, 2]) == "an array of 2"
    assert show_value(b"raw") == "a value of type bytes"


def test_paths_are_shown_as_people_write_them():
    assert show_path(("thread", "turns", 0, "status")) == "thread.turns[0].status"
    assert show_path(()) == "(the value)"


@pytest.mark.parametrize("value", [None, True, 1, "text", []])
def test_params_that_are_no_object_are_one_error_at_the_top(value: object):
    for method in ("turn/started", "thread/closed", "nobody/knows/this"):
        (error,) = BOOK.validate_event(method, value)
        assert error.path == ()
        assert error.message.startswith("(the value): expected an object; found ")


def test_an_unlisted_method_may_carry_any_object():
    assert BOOK.method("nobody/knows/this") is None
    assert BOOK.event("nobody/knows/this") is None
    assert BOOK.validate_event("nobody/knows/this", {"a": 1}) == []
    assert BOOK.validate_params("nobody/knows/this", {"a": 1}) == []
    assert BOOK.validate_result("nobody/knows/this", {"a": 1}) == []


def test_turn_errors_are_found_wherever_they_occur():
    def paths(method: str, part: str) -> tuple[tuple[str | int, ...], ...]:
        return BOOK.paths_of("TurnError", method, part)

    assert paths("turn/completed", "params") == (("turn", "error"),)
    assert paths("error", "params") == (("error",),)
    assert paths("turn/start", "result") == (("turn", "error"),)
    assert paths("thread/read", "result") == (("thread", "turns", "*", "error"),)
    assert paths("thread/list", "result") == (("data", "*", "turns", "*", "error"),)
    assert paths("thread/started", "params") == (("thread", "turns", "*", "error"),)
    assert paths("turn/start", "params") == ()
    assert paths("item/started", "params") == ()
    assert paths("nobody/knows/this", "params") == ()


def test_types_behind_conditions_and_arrays_are_found():
    assert BOOK.paths_of("SandboxPolicy", "turn/start", "params") == (("sandboxPolicy",),)
    assert BOOK.paths_of("UserInput", "item/completed", "params") == (("item", "content", "*"),)
    assert BOOK.paths_of("ThreadStatus", "thread/resume", "result") == (("thread", "status"),)


def test_an_unknown_type_is_refused():
    with pytest.raises(BookError, match="no type 'TurnEror'"):
        BOOK.paths_of("TurnEror", "error", "params")


def test_a_type_that_contains_itself_is_followed_once_round():
    tree = {
        "$id": "book:/tree.json",
        "$defs": {
            "Tree": {
                "properties": {
                    "left": {"$ref": "#/$defs/Tree"},
                    "leaves": {"items": {"$ref": "#/$defs/Leaf"}},
                }
            },
            "Leaf": {"type": "string"},
        },
    }
    book = SchemaBook({"tree.json": tree})
    assert book.paths_of("Tree", "tree.json#/$defs/Tree") == ((), ("left",))
    assert book.paths_of("Leaf", "tree.json#/$defs/Tree") == (("leaves", "*"),)


def test_a_requirement_is_found_by_id_and_by_rule():
    requirement = BOOK.requirement("turn.order-started-first")
    assert requirement.rules == ("turn.started-first",)
    assert requirement.clause.heading == "Events"
    assert requirement in BOOK.requirements_of("turn.started-first")
    with pytest.raises(BookError, match="no requirement"):
        BOOK.requirement("turn.no-such-thing")


def test_server_requests_are_methods_with_params_of_their_own():
    method = "item/fileChange/requestApproval"
    row = BOOK.method(method)
    assert row is not None
    assert row.direction == "server-to-client"
    (error,) = BOOK.validate_params(method, {**WHERE})
    assert error.path == ("itemId",)
