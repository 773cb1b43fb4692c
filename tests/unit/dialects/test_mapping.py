"""Messages in the words of a release, and back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.protocol.dialects.table import load_dialect
from harness.protocol.wire.methods import BY_METHOD
from reference_server.dialect.ids import from_uuid, to_uuid, with_uuids
from reference_server.dialect.mapping import Compiler
from reference_server.dialect.placeholders import filler

NEWEST = load_dialect("codex")


def mapped(method: str, params: dict[str, Any], *, outgoing: bool = True) -> Any:
    compiler = Compiler(NEWEST, {"version": "0.169.0"}, outgoing=outgoing)
    mapper = compiler.of_model(BY_METHOD[method].params, method)
    assert mapper is not None
    return mapper(params)


@given(st.integers(min_value=0, max_value=10**15 - 1), st.sampled_from(["thr", "turn"]))
def test_each_id_comes_back_from_its_uuid(number: int, kind: str) -> None:
    uuid = to_uuid(f"{kind}_{number}")
    assert len(uuid) == 36
    assert uuid[14] == "7", "the version of the UUID"
    assert from_uuid(uuid) == f"{kind}_{number}"


@pytest.mark.parametrize(
    "text", ["", "thr_", "thr_x", "thread", "0198c1d6-0000-7000-8000-000000000001", "thr_1 turn_2"]
)
def test_other_texts_stay(text: str) -> None:
    assert to_uuid(text) == text
    assert from_uuid(text) == text


def test_ids_in_an_error_message_are_the_clients() -> None:
    assert with_uuids("no thread thr_7 here") == f"no thread {to_uuid('thr_7')} here"


def test_ids_are_mapped_where_a_message_has_ids_and_never_in_texts() -> None:
    item = {"type": "agentMessage", "id": "item_1_1", "text": "thr_1"}
    params = mapped("item/started", {"threadId": "thr_1", "turnId": "turn_1", "item": item})
    assert params["threadId"] == to_uuid("thr_1")
    assert params["turnId"] == to_uuid("turn_1")
    assert params["item"]["text"] == "thr_1"


def test_a_renamed_member_and_a_shape_are_mapped_at_any_depth() -> None:
    error = {"message": "no", "agentErrorInfo": "Other"}
    turn = {"id": "turn_1", "items": [], "status": "failed", "error": error}
    written = mapped("turn/completed", {"threadId": "thr_1", "turn": turn})
    assert "codexErrorInfo" in written["turn"]["error"]
    item = {"type": "commandExecution", "id": "i", "command": ["echo", "a b"]}
    written = mapped("item/completed", {"threadId": "thr_1", "turnId": "turn_1", "item": item})
    assert written["item"]["command"] == "echo 'a b'"


def test_params_of_a_client_come_back_in_the_words_of_the_text() -> None:
    ids = {"threadId": to_uuid("thr_3"), "turnId": to_uuid("turn_4")}
    assert mapped("turn/interrupt", ids, outgoing=False) == {
        "threadId": "thr_3",
        "turnId": "turn_4",
    }


@pytest.mark.parametrize("params", [None, [], "x", 7, {"threadId": 7}, {"turn": []}])
def test_a_value_of_a_wrong_shape_passes_as_it_is(params: Any) -> None:
    compiler = Compiler(NEWEST, {}, outgoing=False)
    mapper = compiler.of_model(BY_METHOD["turn/start"].params, "turn/start")
    assert mapper is not None
    assert mapper(params) == params


def test_placeholders_take_values_whole_or_into_a_text() -> None:
    facts = {"version": "1", "result": {"thread": {"turns": [1]}}}
    value = {"a": "{result.thread.turns}", "b": "v{version}", "c": ["{.id}", "{null}"], "d": 1}
    assert filler(value, facts)({"id": 7}) == {"a": [1], "b": "v1", "c": [7, None], "d": 1}


def test_a_policy_by_kinds_is_read_and_never_written() -> None:
    kinds = {"sandbox_approval": True, "rules": True, "mcp_elicitations": False}
    params = {"threadId": to_uuid("thr_1"), "approvalPolicy": {"granular": kinds}}
    read = mapped("turn/start", params, outgoing=False)
    assert read == {"threadId": "thr_1", "approvalPolicy": "on-request"}
    written = mapped("turn/start", {"threadId": "thr_1", "approvalPolicy": "on-request"})
    assert written["approvalPolicy"] == "on-request"
