"""Reading and writing of wire models: names, strictness, missing apart from null."""

import pytest
from pydantic import ValidationError

from harness.protocol.wire.base import WireModel
from harness.protocol.wire.error import TurnError
from harness.protocol.wire.initialize import InitializeParams
from harness.protocol.wire.input import TextInput
from harness.protocol.wire.item import AgentMessageItem
from harness.protocol.wire.methods import METHODS
from harness.protocol.wire.settings import WorkspaceWrite
from harness.protocol.wire.thread import IdleStatus, Thread, ThreadStartParams
from harness.protocol.wire.turn import Turn, TurnStartParams

WRITE = {"type": "workspaceWrite", "writableRoots": [], "networkAccess": False}
START = {"threadId": "thr_1", "input": [{"type": "text", "text": "hi"}]}


def test_names_are_camel_case_on_the_wire() -> None:
    assert WorkspaceWrite(writable_roots=["/w"], network_access=False).plain() == {
        "type": "workspaceWrite",
        "writableRoots": ["/w"],
        "networkAccess": False,
    }


def test_python_names_are_not_read_from_the_wire() -> None:
    with pytest.raises(ValidationError, match="threadId"):
        TurnStartParams.parse({"thread_id": "thr_1", "input": []})


def test_an_optional_field_that_was_not_given_is_not_written() -> None:
    error = TurnError(message="m", agent_error_info="Other")
    assert error.encode() == b'{"message":"m","agentErrorInfo":"Other"}'


def test_an_optional_field_given_as_none_is_written_as_null() -> None:
    error = TurnError(message="m", agent_error_info="Other", additional_details=None)
    assert error.plain()["additionalDetails"] is None


def test_a_required_nullable_field_is_always_written() -> None:
    assert Turn(id="turn_1", items=[], status="completed", error=None).plain() == {
        "id": "turn_1",
        "items": [],
        "status": "completed",
        "error": None,
    }


def test_a_type_tag_is_written_without_being_given() -> None:
    assert AgentMessageItem(id="item_1", text="t").plain() == {
        "type": "agentMessage",
        "id": "item_1",
        "text": "t",
    }


def test_missing_and_null_stay_apart_when_read() -> None:
    missing = ThreadStartParams.parse({})
    null = ThreadStartParams.parse({"model": None})
    assert (missing.model, null.model) == (None, None)
    assert "model" not in missing.model_fields_set
    assert "model" in null.model_fields_set


def test_unknown_fields_are_ignored_at_every_depth() -> None:
    params = TurnStartParams.parse(
        {**START, "new": 1, "input": [{"type": "text", "text": "hi", "text_elements": []}]}
    )
    assert params.input == [TextInput(text="hi")]
    assert "new" not in params.plain()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"threadId": 7}, "threadId"),
        ({"input": "hi"}, "input"),
        ({"input": [{"type": "text"}]}, "text"),
        ({"input": [{"type": "sound"}]}, "input"),
        ({"effort": "huge"}, "effort"),
        ({"outputSchema": []}, "outputSchema"),
        ({"sandboxPolicy": {**WRITE, "networkAccess": "true"}}, "networkAccess"),
        ({"sandboxPolicy": {**WRITE, "writableRoots": "/w"}}, "writableRoots"),
        ({"sandboxPolicy": {"type": "readOnly", "access": {"type": "other"}}}, "type"),
        ({"input": [{"type": "mention", "name": "a", "path": "/a"}]}, "path"),
        ({"approvalPolicy": "sometimes"}, "approvalPolicy"),
    ],
)
def test_a_wrong_type_is_an_error_that_names_the_field(
    change: dict[str, object], field: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        TurnStartParams.parse({**START, **change})
    assert field in str(caught.value.errors()[0]["loc"])


def test_no_value_is_converted_to_the_wanted_type() -> None:
    with pytest.raises(ValidationError):
        ThreadStartParams.parse({"ephemeral": 1})
    with pytest.raises(ValidationError):
        InitializeParams.parse({"clientInfo": {"name": 3}})


def test_models_are_built_when_they_are_first_read() -> None:
    class Fresh(WireModel):
        value: int

    assert Fresh(value=1).encode() == b'{"value":1}'
    assert not Fresh.__pydantic_complete__
    assert Fresh.parse({"value": 1}).value == 1
    assert Fresh.__pydantic_complete__


def test_composed_messages_equal_those_read() -> None:
    item = AgentMessageItem(id="item_1", text="t")
    composed = Turn(id="turn_1", items=[item], status="completed", error=None)
    read = Turn.parse(composed.plain())
    assert composed == read
    assert composed.model_fields_set == read.model_fields_set
    assert composed.encode() == read.encode()


def test_a_composed_message_keeps_lists_and_objects_of_its_own() -> None:
    roots, schema = ["/w"], {"type": "object"}
    policy = WorkspaceWrite(writable_roots=roots, network_access=False)
    params = TurnStartParams(thread_id="thr_1", input=[], output_schema=schema)
    roots.append("/x")
    schema["title"] = "x"
    assert policy.writable_roots == ["/w"]
    assert params.output_schema == {"type": "object"}


def test_a_default_that_is_made_belongs_to_one_message_only() -> None:
    def thread() -> Thread:
        return Thread(
            id="thr_1",
            ephemeral=False,
            model_provider="p",
            created_at=1,
            updated_at=1,
            status=IdleStatus(),
            path=None,
            cwd="/w",
        )

    first, second = thread(), thread()
    assert (first.turns, first.plain()["turns"]) == ([], [])
    assert first.turns is not second.turns


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (float("nan"), b"null"),
        ([float("inf"), 1.5, True, None], b"[null,1.5,true,null]"),
        (
            {"b": 1, "a": ['\u2028\x00"\\\u00e9']},
            '{"b":1,"a":["\u2028\\u0000\\"\\\\\u00e9"]}'.encode(),
        ),
        ({"of": TextInput(text="hi")}, b'{"of":{"type":"text","text":"hi"}}'),
    ],
)
def test_open_values_are_written_as_json(value: object, written: bytes) -> None:
    message = AgentMessageItem(id="i", text="t", phase=value)
    assert message.encode().partition(b'"phase":')[2] == written + b"}"


@pytest.mark.parametrize("text", ["plain", '\u2028\x00\x7f"\\/\u00e9\U0001f600', ""])
def test_text_is_written_as_pydantic_writes_it(text: str) -> None:
    message = AgentMessageItem(id="i", text=text)
    assert message.encode() == message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def test_a_model_inside_is_built_once_for_all_messages_around_it() -> None:
    class Inner(WireModel):
        value: int

    class First(WireModel):
        inner: list[Inner | None]

    class Second(WireModel):
        inner: Inner

    assert First.parse({"inner": [{"value": 1}, None]}).plain() == {"inner": [{"value": 1}, None]}
    assert Inner.__pydantic_complete__
    assert not Second.__pydantic_complete__
    built = Inner.__pydantic_core_schema__
    assert Second.parse({"inner": {"value": 2}}).plain() == {"inner": {"value": 2}}
    assert Inner.__pydantic_core_schema__ is built


@pytest.mark.parametrize("spec", METHODS, ids=lambda spec: spec.method)
def test_every_model_of_the_table_can_be_built(spec) -> None:
    for model in (spec.params, spec.result):
        if model is not None:
            assert model.model_json_schema(by_alias=True)["type"] == "object"
