"""The 25 traps of the readings: those of single messages as facts about the schemas.

The numbers in the names are those of the readings. What a trap says of behaviour is tested in
`tests/rules/test_conversation_readings.py` and `tests/rules/test_approval_readings.py`; `LATER`
lists the rows by which later parts of the work will judge the rest.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from harness.protocol.spec.loading import load_book
from spec.examples import (
    PARAMS,
    RESULTS,
    START_RESULT,
    THREAD,
    TURN,
    WHERE,
    changed,
    item,
    without,
)

BOOK = load_book()
RULES = Path(__file__).parents[2] / "rules"
BEHAVIOUR = ("test_conversation_readings.py", "test_approval_readings.py")

# Reading -> the requirements whose rules come with a later part: E threads on disk, lists and
# skills, F the command line and the SDKs.
LATER: dict[int, tuple[str, ...]] = {
    2: ("thread-resume.turns", "thread-fork.turns", "turn.items-filled"),
    4: ("thread-status.shown-not-loaded", "thread-read.not-resumed"),
    5: ("thread-resume.not-announced", "thread-fork.emits"),
    6: ("thread-list.archived", "thread-list.model-providers"),
    7: ("thread-list.search-term", "thread-list.cwd"),
    8: ("thread-list.complete", "thread-list.cursor", "sort-key.default"),
    21: ("loading.unsubscribe-last", "loading.others-keep-it", "event.thread-closed"),
    22: ("skills-list.cwds-default", "skills-list.empty-entry", "skills-list.extra-roots-scope"),
    23: ("sdk-item.agent-message", "sdk-event.types", "sdk-types.exported"),
    24: ("sdk-agent.start-thread", "sdk-errors.run-rejects", "sdk-client.env-not-inherited"),
    25: ("mcp-config.bearer-variable", "mcp-add.verbatim", "mcp-name.characters"),
}


def test_every_reading_has_a_test_or_rows_of_a_later_part():
    sources = [Path(__file__), *(RULES / name for name in BEHAVIOUR)]
    found = re.findall(r"def test_((?:\d\d_)+)", "".join(one.read_text("utf-8") for one in sources))
    tested = {int(number) for numbers in found for number in numbers.split("_") if number}
    assert tested | set(LATER) == set(range(1, 26))


@pytest.mark.parametrize("number", LATER)
def test_rows_of_a_reading_are_judged_or_say_why_not(number: int):
    rows = {row.id: row for row in BOOK.requirements}
    for name in LATER[number]:
        row = rows[name]
        assert row.rules or row.excluded, name


def event(method: str, params: dict[str, Any]) -> list[Any]:
    return [error.path for error in BOOK.validate_event(method, params)]


def result(method: str, value: dict[str, Any]) -> list[Any]:
    return [error.path for error in BOOK.validate_result(method, value)]


def params(method: str, value: dict[str, Any]) -> list[Any]:
    return [error.path for error in BOOK.validate_params(method, value)]


def started(value: dict[str, Any]) -> list[Any]:
    return event("item/started", {**WHERE, "item": value})


def test_01_items_of_a_turn_may_be_neither_absent_nor_null():
    assert result("turn/start", {"turn": without(TURN, "items")}) == [("turn", "items")]
    assert result("turn/start", {"turn": changed(TURN, items=None)}) == [("turn", "items")]


def test_01_items_filled_in_thread_read_are_accepted_and_judged():
    turn = changed(TURN, status="completed", items=[item("agentMessage"), item("plan", text=1)])
    path = ("thread", "turns", 0, "items", 1, "text")
    assert result("thread/read", {"thread": changed(THREAD, turns=[turn])}) == [path]


def test_02_turns_of_a_thread_may_be_absent_or_empty():
    assert result("thread/read", {"thread": without(THREAD, "turns")}) == []
    assert result("thread/read", {"thread": changed(THREAD, turns=[])}) == []
    assert result("thread/read", {"thread": changed(THREAD, turns={})}) == [("thread", "turns")]


def test_03_a_thread_status_is_an_object_never_a_string():
    assert event("thread/status/changed", {"threadId": "t", "status": "idle"}) == [("status",)]
    assert result("thread/read", {"thread": changed(THREAD, status="idle")}) == [
        ("thread", "status")
    ]


def test_03_active_needs_active_flags_and_other_states_do_not():
    def status(value: Any) -> list[Any]:
        return event("thread/status/changed", {"threadId": "t", "status": value})

    assert status({"type": "active"}) == [("status", "activeFlags")]
    assert status({"type": "active", "activeFlags": None}) == [("status", "activeFlags")]
    assert status({"type": "active", "activeFlags": ["anything", 1]}) == []
    for state in ("idle", "notLoaded", "systemError"):
        assert status({"type": state}) == []
    assert status({"type": "Idle"}) == [("status", "type")]
    assert status({"type": "loading"}) == [("status", "type")]


def test_03_a_turn_status_is_a_string_never_an_object():
    turn = changed(TURN, status={"type": "inProgress"})
    assert result("turn/start", {"turn": turn}) == [("turn", "status")]


def test_03_unsubscribe_answers_a_string():
    for status in ("unsubscribed", "notSubscribed", "notLoaded"):
        assert result("thread/unsubscribe", {"status": status}) == []
    assert result("thread/unsubscribe", {"status": {"type": "notLoaded"}}) == [("status",)]
    assert result("thread/unsubscribe", {"status": "idle"}) == [("status",)]


@pytest.mark.parametrize("status", ["notLoaded", "idle", "systemError"])
def test_04_list_and_read_may_show_the_live_status_or_not_loaded(status: str):
    thread = changed(THREAD, status={"type": status})
    assert result("thread/read", {"thread": thread}) == []
    assert result("thread/list", {"data": [thread], "nextCursor": None}) == []


@pytest.mark.parametrize("member", START_RESULT)
def test_05_start_and_resume_have_six_members_and_fork_needs_only_the_thread(member: str):
    assert result("thread/start", without(START_RESULT, member)) == [(member,)]
    assert result("thread/resume", without(START_RESULT, member)) == [(member,)]
    assert result("thread/fork", {"thread": THREAD}) == []


def test_06_filters_of_thread_list_may_be_null_or_empty():
    assert params("thread/list", {"archived": None, "modelProviders": None}) == []
    assert params("thread/list", {"modelProviders": []}) == []
    assert params("thread/list", {}) == []


def test_07_a_thread_has_no_title_and_its_search_term_is_a_string():
    assert "title" not in str(THREAD)
    assert result("thread/list", {"data": [THREAD], "nextCursor": None}) == []
    assert params("thread/list", {"searchTerm": "ZebraQ", "cwd": "/w/a"}) == []
    assert params("thread/list", {"searchTerm": ["ZebraQ"]}) == [("searchTerm",)]
    assert params("thread/list", {"cwd": ["/w/a"]}) == [("cwd",)]


def test_08_the_sort_key_is_in_snake_case():
    for key in ("created_at", "updated_at"):
        assert params("thread/list", {"sortKey": key}) == []
    assert params("thread/list", {"sortKey": "createdAt"}) == [("sortKey",)]


def test_08_the_cursor_is_there_and_null_at_the_end():
    assert result("thread/list", {"data": []}) == [("nextCursor",)]
    assert result("thread/list", {"data": [], "nextCursor": None}) == []
    assert result("thread/loaded/list", {"data": [THREAD], "nextCursor": None}) == [("data", 0)]


def test_09_sandbox_is_a_string_in_and_an_object_out():
    for mode in ("read-only", "workspace-write", "danger-full-access", "workspaceWrite"):
        assert params("thread/start", {"sandbox": mode}) == []
    assert params("thread/start", {"sandbox": {"type": "readOnly"}}) == [("sandbox",)]
    assert result("thread/start", changed(START_RESULT, sandbox="read-only")) == [("sandbox",)]


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        ({"type": "dangerFullAccess"}, None),
        ({"type": "readOnly", "access": {"type": "fullAccess"}}, None),
        ({"type": "readOnly", "access": "fullAccess"}, ("access",)),
        ({"type": "workspaceWrite", "writableRoots": ["/a"], "networkAccess": True}, None),
        (
            {"type": "workspaceWrite", "writableRoots": [], "networkAccess": "enabled"},
            ("networkAccess",),
        ),
        ({"type": "workspaceWrite", "networkAccess": True}, ("writableRoots",)),
        ({"type": "externalSandbox", "networkAccess": "enabled"}, None),
        ({"type": "externalSandbox", "networkAccess": "restricted"}, None),
        ({"type": "externalSandbox", "networkAccess": True}, ("networkAccess",)),
        ({"type": "read-only"}, ("type",)),
    ],
)
def test_09_members_of_a_sandbox_policy_depend_on_its_type(policy: Any, path: Any):
    expected = [("sandbox", *path)] if path else []
    assert result("thread/start", changed(START_RESULT, sandbox=policy)) == expected
    turn = changed(PARAMS["turn/start"], sandboxPolicy=policy)
    assert params("turn/start", turn) == ([("sandboxPolicy", *path)] if path else [])


def test_10_the_approval_policies_are_five_and_include_reject():
    for policy in ("never", "untrusted", "on-request", "on-failure", "reject"):
        assert params("thread/start", {"approvalPolicy": policy}) == []
        assert result("thread/start", changed(START_RESULT, approvalPolicy=policy)) == []
    wrong = changed(START_RESULT, approvalPolicy={"reject": {}})
    assert result("thread/start", wrong) == [("approvalPolicy",)]


def test_11_six_decisions_for_a_command_and_two_for_a_file_change():
    command, file = "item/commandExecution/requestApproval", "item/fileChange/requestApproval"
    both, only_command = (
        ("accept", "decline"),
        (
            "acceptForSession",
            "acceptWithExecpolicyAmendment",
            "applyNetworkPolicyAmendment",
            "cancel",
        ),
    )
    for decision in (*both, *only_command):
        assert result(command, {"decision": decision}) == []
        expected = [] if decision in both else [("decision",)]
        assert result(file, {"decision": decision}) == expected
    assert result(command, {"decision": "approved"}) == [("decision",)]


def test_12_an_interrupted_turn_has_error_null():
    turn = changed(TURN, status="interrupted")
    assert event("turn/completed", {"threadId": "t", "turn": turn}) == []
    assert event("turn/completed", {"threadId": "t", "turn": without(turn, "error")}) == [
        ("turn", "error")
    ]


def test_14_a_command_is_a_string_in_the_item_and_an_array_in_the_request():
    method = "item/commandExecution/requestApproval"
    assert params(method, changed(PARAMS[method], command="ls -l")) == [("command",)]
    assert started(item("commandExecution", command=["ls", "-l"])) == [("item", "command")]
    assert started(without(item("commandExecution"), "commandActions")) == [
        ("item", "commandActions")
    ]


@pytest.mark.parametrize(
    ("item_type", "declinable"),
    [
        ("commandExecution", True),
        ("fileChange", True),
        ("mcpToolCall", False),
        ("dynamicToolCall", False),
    ],
)
def test_16_only_commands_and_file_changes_can_be_declined(item_type: str, declinable: bool):
    for status in ("inProgress", "completed", "failed"):
        assert started(item(item_type, status=status)) == []
    expected = [] if declinable else [("item", "status")]
    assert started(item(item_type, status="declined")) == expected
    for status in ("pending", "interrupted"):
        assert started(item(item_type, status=status)) == [("item", "status")]


def test_15_a_delta_may_be_empty_and_is_a_string():
    delta = {**WHERE, "itemId": "i", "delta": ""}
    assert event("item/agentMessage/delta", delta) == []
    assert event("item/agentMessage/delta", {**delta, "delta": None}) == [("delta",)]


def test_16_a_dynamic_tool_call_has_no_server_and_search_actions_are_in_snake_case():
    assert started(item("dynamicToolCall")) == []
    assert started(without(item("mcpToolCall"), "server")) == [("item", "server")]
    for action in ("open_page", "find_in_page"):
        assert started(item("webSearch", action={"type": action})) == []
    assert started(item("webSearch", action={"type": "openPage"})) == [("item", "action", "type")]
    assert started(item("webSearch", action={"type": "search"})) == [("item", "action", "query")]


def test_16_pending_is_a_status_of_plan_steps_only():
    plan: dict[str, Any] = {
        **WHERE,
        "explanation": None,
        "plan": [{"step": "s", "status": "pending"}],
    }
    assert event("turn/plan/updated", plan) == []
    plan["plan"][0]["status"] = "failed"
    assert event("turn/plan/updated", plan) == [("plan", 0, "status")]


def test_16_an_item_type_that_is_not_listed_is_refused():
    assert started({"type": "agent_message", "id": "i", "text": ""}) == [("item", "type")]
    assert started({"id": "i"}) == [("item", "type")]
    assert started({"type": "contextCompaction"}) == [("item", "id")]


def test_17_will_retry_is_required_and_there_is_no_turn_failed():
    error = {**WHERE, "error": {"message": "m"}}
    assert event("error", error) == [("willRetry",)]
    assert BOOK.event("turn/failed") is None


def test_18_steer_has_its_own_name_for_the_turn_and_returns_the_id():
    assert params("turn/steer", {"threadId": "t", "input": [], "turnId": "u"}) == [
        ("expectedTurnId",)
    ]
    assert result("turn/steer", {"turn": TURN}) == [("turnId",)]


def test_19_the_overrides_of_a_turn_and_of_a_thread_have_their_own_names():
    turn = PARAMS["turn/start"]
    assert params("turn/start", {**turn, "effort": "medium", "summary": "verbose"}) == []
    assert params("turn/start", {**turn, "effort": "xhigh"}) == [("effort",)]
    assert params("turn/start", {**turn, "outputSchema": "{}"}) == [("outputSchema",)]
    assert params("thread/start", {"personality": "pragmatic"}) == []
    assert params("thread/start", {"personality": "grim"}) == [("personality",)]


def test_20_the_reply_to_interrupt_is_empty_and_that_to_start_is_the_turn():
    assert result("turn/interrupt", {}) == []
    assert result("turn/start", {"turnId": "turn_3"}) == [("turn",)]


@pytest.mark.parametrize(
    "method",
    [
        "thread/unarchived",
        "thread/closed",
        "thread/name/updated",
        "thread/tokenUsage/updated",
        "item/mcpToolCall/progress",
        "serverRequest/resolved",
    ],
)
def test_21_payloads_that_are_not_shown_are_any_object(method: str):
    row = BOOK.event(method)
    assert row is not None
    assert row.params is None
    assert event(method, {"whatever": [1]}) == []
    assert event(method, []) == [()]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "method",
    [
        "thread/unarchive",
        "thread/name/set",
        "thread/loaded/list",
        "thread/unsubscribe",
        "thread/rollback",
        "thread/compact/start",
        "initialize",
    ],
)
def test_21_params_that_are_not_shown_are_any_object(method: str):
    assert params(method, {"whatever": 1}) == []
    assert BOOK.is_valid_params(method, {})


def test_21_archived_is_shown():
    assert event("thread/archived", {}) == [("threadId",)]


def test_22_skills_take_their_names_as_they_are():
    roots = {"cwd": "/b", "extraUserRoots": ["/r"]}
    assert params("skills/list", {"cwds": [], "perCwdExtraUserRoots": [roots]}) == []
    assert params("skills/list", {"cwds": "/b"}) == [("cwds",)]
    assert params("skills/config/write", {"path": "/s/SKILL.md"}) == [("enabled",)]


def test_22_skill_metadata_has_no_path_and_an_entry_may_be_empty():
    assert "path" not in str(RESULTS["skills/list"])
    empty = {"data": [{"cwd": "/b", "skills": [], "errors": []}]}
    assert result("skills/list", empty) == []
    assert result("skills/list", {"data": [{"cwd": "/b", "skills": []}]}) == [("data", 0, "errors")]


@pytest.mark.parametrize("method", ["turn.completed", "thread.started", "item.updated"])
def test_23_events_of_the_sdk_are_none_of_the_protocol(method: str):
    assert BOOK.event(method) is None


def test_23_items_and_input_of_the_sdk_are_none_of_the_protocol():
    assert started({"type": "todo_list", "id": "i", "items": []}) == [("item", "type")]
    turn = PARAMS["turn/start"]
    assert params("turn/start", {**turn, "input": [{"type": "localImage", "path": "/p"}]}) == []
    said = {**turn, "input": [{"type": "local_image", "path": "/p"}]}
    assert params("turn/start", said) == [("input", 0, "type")]


def test_the_path_of_a_thread_may_be_null_and_must_be_for_an_ephemeral_one():
    assert result("thread/read", {"thread": changed(THREAD, path=None)}) == []
    assert result("thread/read", {"thread": without(THREAD, "path")}) == [("thread", "path")]
    ephemeral = changed(THREAD, ephemeral=True)
    assert result("thread/read", {"thread": ephemeral}) == [("thread", "path")]
    assert result("thread/read", {"thread": changed(ephemeral, path=None)}) == []
