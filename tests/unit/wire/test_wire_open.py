"""Open parts of the protocol: our own members are models, foreign values stay as they are."""

from typing import Any

import pytest
from pydantic import ValidationError

from harness.protocol.wire.approval import (
    AcceptWithExecpolicyAmendment,
    ApplyNetworkPolicyAmendment,
    CommandApprovalResult,
    FileChangeApprovalResult,
)
from harness.protocol.wire.error import TurnError
from harness.protocol.wire.item import (
    AddKind,
    CommandExecutionItem,
    DynamicToolCallItem,
    FileUpdateChange,
    ListFilesAction,
    McpToolCallItem,
    ReadAction,
    SearchAction,
    UnknownAction,
    UpdateKind,
)
from harness.protocol.wire.skills import SkillErrorInfo, SkillsListEntry
from harness.protocol.wire.thread import ActiveStatus
from harness.protocol.wire.tool import (
    InputImage,
    InputText,
    McpToolError,
    McpToolResult,
    ToolCallResult,
)


def command_with(action: Any) -> CommandExecutionItem:
    return CommandExecutionItem.parse(
        {
            "type": "commandExecution",
            "id": "item_1",
            "command": "ls",
            "cwd": "/w",
            "status": "inProgress",
            "commandActions": [action],
        }
    )


@pytest.mark.parametrize(
    ("action", "model"),
    [
        ({"type": "read", "command": "cat a", "name": "a", "path": "a"}, ReadAction),
        ({"type": "listFiles", "command": "ls", "path": None}, ListFilesAction),
        ({"type": "search", "command": "rg x", "query": "x", "path": None}, SearchAction),
        ({"type": "unknown", "command": "make"}, UnknownAction),
        ({"type": "read", "file": "a"}, dict),
        ({"kind": "other"}, dict),
        ({}, dict),
    ],
)
def test_a_command_action_is_ours_or_any_object(action: dict[str, Any], model: type) -> None:
    item = command_with(action)
    assert type(item.command_actions[0]) is model
    assert item.plain()["commandActions"] == [action]


def test_a_command_action_is_an_object() -> None:
    with pytest.raises(ValidationError):
        command_with("ls")


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ({"type": "add"}, AddKind),
        ({"type": "update", "move_path": None}, UpdateKind),
        ({"type": "update", "move_path": "/w/b"}, UpdateKind),
        ({"type": "update"}, dict),
        ("add", str),
        (None, type(None)),
    ],
)
def test_the_kind_of_a_change_is_ours_or_anything(kind: Any, model: type) -> None:
    change = FileUpdateChange.parse({"path": "/w/a", "kind": kind, "diff": "d"})
    assert type(change.kind) is model
    assert change.plain() == {"path": "/w/a", "kind": kind, "diff": "d"}


def test_a_file_that_moves_names_its_place_as_real_clients_know_it() -> None:
    change = FileUpdateChange(path="/w/a", kind=UpdateKind(move_path="/w/b"), diff="")
    assert change.plain()["kind"] == {"type": "update", "move_path": "/w/b"}


CALL = {"id": "item_1", "tool": "t", "arguments": {"a": 1}, "status": "completed"}


def test_the_result_of_an_mcp_tool_is_ours_or_any_object() -> None:
    item = {**CALL, "type": "mcpToolCall", "server": "s"}
    ours = McpToolCallItem.parse({**item, "result": {"content": []}, "error": {"message": "m"}})
    assert ours.result == McpToolResult(content=[])
    assert ours.error == McpToolError(message="m")
    others = McpToolCallItem.parse({**item, "result": {"ok": 1}, "error": {"code": 2}})
    assert (others.result, others.error) == ({"ok": 1}, {"code": 2})
    nothing = McpToolCallItem.parse({**item, "result": None})
    assert nothing.plain() == {**item, "result": None}


def test_the_result_of_a_dynamic_tool_is_ours_or_any_object() -> None:
    content = [{"type": "inputText", "text": "x"}, {"type": "sound"}]
    item = {**CALL, "type": "dynamicToolCall", "contentItems": content, "success": True}
    read = DynamicToolCallItem.parse(item)
    assert read.content_items == [InputText(text="x"), {"type": "sound"}]
    assert read.plain() == item


def test_a_client_answers_a_tool_call_in_our_form_only() -> None:
    content = [{"type": "inputText", "text": "x"}, {"type": "inputImage", "imageUrl": "data:,"}]
    read = ToolCallResult.parse({"success": True, "contentItems": content})
    assert read.content_items == [InputText(text="x"), InputImage(image_url="data:,")]
    with pytest.raises(ValidationError):
        ToolCallResult.parse({"success": True, "contentItems": [{"type": "sound"}]})


@pytest.mark.parametrize("info", ["Other", "someNewOne", {"tooMany": {"status": 429}}, None, 3])
def test_the_classification_of_an_error_is_open(info: Any) -> None:
    assert TurnError.parse({"message": "m", "agentErrorInfo": info}).plain() == {
        "message": "m",
        "agentErrorInfo": info,
    }


def test_the_flags_of_an_active_thread_are_open() -> None:
    status = {"type": "active", "activeFlags": ["waitingOnApproval", "other", 3]}
    assert ActiveStatus.parse(status).plain() == status


def test_a_skill_error_is_ours_or_any_object() -> None:
    errors = [{"path": "/s/SKILL.md", "message": "m"}, {"reason": "r"}]
    entry = SkillsListEntry.parse({"cwd": "/w", "skills": [], "errors": errors})
    assert entry.errors == [SkillErrorInfo(path="/s/SKILL.md", message="m"), {"reason": "r"}]


WORDS = [
    "accept",
    "acceptForSession",
    "acceptWithExecpolicyAmendment",
    "applyNetworkPolicyAmendment",
    "decline",
    "cancel",
]


@pytest.mark.parametrize("word", WORDS)
def test_each_decision_for_a_command_is_a_word(word: str) -> None:
    assert CommandApprovalResult.parse({"decision": word}).decision == word


def test_the_two_amendments_may_carry_what_is_amended() -> None:
    rule = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["git", "push"]}}
    read = CommandApprovalResult.parse({"decision": rule}).decision
    assert isinstance(read, AcceptWithExecpolicyAmendment)
    assert read.accept_with_execpolicy_amendment.execpolicy_amendment == ["git", "push"]
    assert read.plain() == rule
    host = {"host": "a.example", "action": "allow"}
    rule = {"applyNetworkPolicyAmendment": {"network_policy_amendment": host}}
    read = CommandApprovalResult.parse({"decision": rule}).decision
    assert isinstance(read, ApplyNetworkPolicyAmendment)
    assert read.apply_network_policy_amendment.network_policy_amendment.plain() == host
    assert read.plain() == rule


@pytest.mark.parametrize("decision", ["approved", "", None, {}, {"accept": {}}, ["accept"]])
def test_no_other_decision_is_read(decision: Any) -> None:
    with pytest.raises(ValidationError):
        CommandApprovalResult.parse({"decision": decision})


@pytest.mark.parametrize("decision", [*WORDS[1:4], "cancel"])
def test_a_file_change_has_two_decisions_only(decision: str) -> None:
    assert FileChangeApprovalResult.parse({"decision": "decline"}).decision == "decline"
    with pytest.raises(ValidationError):
        FileChangeApprovalResult.parse({"decision": decision})
