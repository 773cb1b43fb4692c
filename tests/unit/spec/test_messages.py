"""Right messages pass, and messages with one thing wrong fail at exactly that thing."""

from typing import Any

import pytest

from harness.protocol.spec.loading import load_book
from spec.examples import EVENTS, ITEMS, PARAMS, RESULTS, TURN, WHERE, changed, item, without

BOOK = load_book()


def paths(errors: list[Any]) -> list[tuple[str | int, ...]]:
    return [error.path for error in errors]


def test_the_examples_cover_every_message_that_the_text_shows():
    assert set(EVENTS) == {row.method for row in BOOK.events if row.params}
    assert set(PARAMS) == {row.method for row in BOOK.methods if row.params}
    assert set(RESULTS) == {row.method for row in BOOK.methods if row.result}


@pytest.mark.parametrize("method", EVENTS)
def test_right_notification_is_valid(method: str):
    assert BOOK.validate_event(method, EVENTS[method]) == []
    assert BOOK.is_valid_event(method, EVENTS[method])
    assert BOOK.validate_event(method, {**EVENTS[method], "emittedAt": 1}) == []


@pytest.mark.parametrize("method", PARAMS)
def test_right_params_are_valid(method: str):
    assert BOOK.validate_params(method, PARAMS[method]) == []
    assert BOOK.is_valid_params(method, PARAMS[method])


@pytest.mark.parametrize("method", RESULTS)
def test_right_result_is_valid(method: str):
    assert BOOK.validate_result(method, RESULTS[method]) == []
    assert BOOK.is_valid_result(method, RESULTS[method])


OPTIONAL_IN_EVENTS = {("turn/plan/updated", "explanation")}


@pytest.mark.parametrize(
    ("method", "member"), [(method, member) for method in EVENTS for member in EVENTS[method]]
)
def test_notification_without_a_member_fails_at_that_member(method: str, member: str):
    errors = BOOK.validate_event(method, without(EVENTS[method], member))
    if (method, member) in OPTIONAL_IN_EVENTS:
        assert errors == []
    else:
        assert paths(errors) == [(member,)]
        assert "it is missing" in errors[0].message
        assert errors[0].clauses


@pytest.mark.parametrize(
    ("method", "member"), [(method, member) for method in EVENTS for member in EVENTS[method]]
)
def test_notification_with_a_member_of_the_wrong_type_fails_at_that_member(
    method: str, member: str
):
    if (method, member) == ("model/rerouted", "reason"):
        assert BOOK.validate_event(method, changed(EVENTS[method], reason=5)) == []
        return
    wrong = 5 if isinstance(EVENTS[method][member], (str, bool, dict, list)) else "five"
    errors = BOOK.validate_event(method, changed(EVENTS[method], **{member: wrong}))
    hint = f"is {wrong!r} of the wrong type? examples.py: {member} must not be null"
    assert paths(errors) == [(member,)], hint
    assert not BOOK.is_valid_event(method, changed(EVENTS[method], **{member: wrong}))


@pytest.mark.parametrize("item_type", ITEMS)
def test_right_item_is_valid(item_type: str):
    assert BOOK.validate_event("item/started", {**WHERE, "item": item(item_type)}) == []


REQUIRED = [(name, member) for name, members in ITEMS.items() for member in members]
OPTIONAL_IN_ITEMS = {("webSearch", "action")}


@pytest.mark.parametrize(("item_type", "member"), REQUIRED)
def test_item_without_a_required_member_fails_at_that_member(item_type: str, member: str):
    wrong = without(item(item_type), member)
    errors = BOOK.validate_event("item/completed", {**WHERE, "item": wrong})
    optional = (item_type, member) in OPTIONAL_IN_ITEMS
    assert paths(errors) == ([] if optional else [("item", member)])


@pytest.mark.parametrize(
    ("item_type", "member"),
    [
        ("agentMessage", "phase"),
        ("commandExecution", "processId"),
        ("commandExecution", "aggregatedOutput"),
        ("commandExecution", "exitCode"),
        ("commandExecution", "durationMs"),
        ("mcpToolCall", "result"),
        ("mcpToolCall", "error"),
        ("mcpToolCall", "durationMs"),
        ("dynamicToolCall", "contentItems"),
        ("dynamicToolCall", "success"),
        ("dynamicToolCall", "durationMs"),
        ("webSearch", "action"),
    ],
)
def test_optional_member_of_an_item_may_be_null(item_type: str, member: str):
    message = {**WHERE, "item": item(item_type, **{member: None})}
    assert BOOK.validate_event("item/completed", message) == []


@pytest.mark.parametrize(
    ("method", "member", "value", "path"),
    [
        ("turn/start", "input", [{"type": "text"}], ("input", 0, "text")),
        ("turn/start", "input", [{"type": "image", "path": "a"}], ("input", 0, "url")),
        ("turn/start", "input", [{"type": "local_image", "path": "a"}], ("input", 0, "type")),
        ("turn/start", "input", [{"type": "skill", "path": "/s"}], ("input", 0, "name")),
        (
            "turn/start",
            "input",
            [{"type": "mention", "name": "n", "path": "conn1"}],
            ("input", 0, "path"),
        ),
        ("turn/start", "effort", "xhigh", ("effort",)),
        ("turn/start", "summary", "detailed", ("summary",)),
        ("turn/start", "approvalPolicy", "granular", ("approvalPolicy",)),
        ("thread/start", "personality", "grim", ("personality",)),
        ("thread/list", "sortKey", "createdAt", ("sortKey",)),
        ("thread/list", "modelProviders", "all", ("modelProviders",)),
        (
            "skills/list",
            "perCwdExtraUserRoots",
            [{"cwd": "/a"}],
            ("perCwdExtraUserRoots", 0, "extraUserRoots"),
        ),
    ],
)
def test_wrong_params_fail_where_they_are_wrong(
    method: str, member: str, value: Any, path: tuple[str | int, ...]
):
    errors = BOOK.validate_params(method, changed(PARAMS[method], **{member: value}))
    assert paths(errors) == [path]


@pytest.mark.parametrize(
    ("info", "valid"),
    [("Other", True), ("SomethingNew", True), ({"cause": {}}, True), (None, True)],
)
def test_agent_error_info_is_an_open_list(info: Any, valid: bool):
    turn = changed(TURN, status="failed", error={"message": "m", "agentErrorInfo": info})
    message = {"threadId": "thr_7", "turn": turn}
    assert BOOK.is_valid_event("turn/completed", message) is valid


@pytest.mark.parametrize(
    ("method", "member", "clause"),
    [
        ("thread/read", "cwd", "thread-read.whole-thread"),
        ("thread/unarchive", "status", "thread-read.whole-thread"),
        ("thread/rollback", "createdAt", "thread-read.whole-thread"),
    ],
)
def test_a_member_that_is_not_said_to_be_always_there_is_a_hint(
    method: str, member: str, clause: str
):
    thread = RESULTS[method]["thread"]
    for shown in (without(thread, member), {**thread, member: None}):
        (error,) = BOOK.validate_result(method, {"thread": shown})
        assert (error.path, error.hint, error.clauses) == (("thread", member), True, (clause,))
    (error,) = BOOK.validate_result(method, {"thread": {**thread, member: []}})
    assert (error.path, error.hint) == (("thread", member), False)


def test_hints_do_not_push_out_what_binds():
    turns = [without({**TURN, "id": f"turn_{n}"}, "error") for n in range(40)]
    thread = {**RESULTS["thread/fork"]["thread"], "turns": [*turns, {**TURN, "status": "over"}]}
    errors = BOOK.validate_result("thread/fork", {"thread": thread})
    assert [error.path for error in errors if not error.hint] == [("thread", "turns", 40, "status")]


def test_turn_error_needs_only_its_message():
    def errors(error: Any) -> list[Any]:
        turn = changed(TURN, status="failed", error=error)
        return BOOK.validate_event("turn/completed", {"threadId": "thr_7", "turn": turn})

    assert errors({"message": "m"}) == []
    assert errors({"message": "m", "additionalDetails": None}) == []
    assert paths(errors({"agentErrorInfo": "Other"})) == [("turn", "error", "message")]
    assert paths(errors("broken")) == [("turn", "error")]


def test_brand_colour_is_six_hexadecimal_digits():
    result = RESULTS["skills/list"]
    for colour, right in (("#123abc", True), ("#123", False), ("red", False)):
        skill: dict[str, Any] = {"name": "n", "description": "d", "enabled": True}
        skill["interface"] = {"brandColor": colour}
        entry = changed(result["data"][0], skills=[skill])
        assert BOOK.is_valid_result("skills/list", {"data": [entry]}) is right


@pytest.mark.parametrize(
    ("form", "message", "path"),
    [
        ("Request", {"method": "a", "id": 1, "params": {}}, None),
        ("Request", {"method": "a", "id": "1", "params": {}}, ("id",)),
        ("Request", {"method": "a", "id": 1, "params": []}, ("params",)),
        ("Response", {"id": 1, "result": {}}, None),
        ("Response", {"id": 1, "result": None}, ("result",)),
        ("Response", {"result": {}}, ("id",)),
        ("ErrorResponse", {"id": None, "error": {"code": 1}}, None),
        ("ErrorResponse", {"id": 1}, ("error",)),
        ("Notification", {"method": "a", "params": {}}, None),
        ("Notification", {"method": "a"}, ("params",)),
        ("ServerRequest", {"method": "a", "id": 0, "params": {}, "jsonrpc": "2.0"}, None),
        ("ServerRequest", {"method": 3, "id": 0, "params": {}}, ("method",)),
        ("Answer", {"id": 0, "result": {"decision": "accept"}}, None),
        ("Answer", {"id": 0}, ("result",)),
    ],
)
def test_message_forms(form: Any, message: Any, path: tuple[str, ...] | None):
    assert paths(BOOK.schemas.errors(f"rpc.json#/$defs/{form}", message)) == (
        [path] if path else []
    )
