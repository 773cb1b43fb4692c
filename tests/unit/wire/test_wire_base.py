"""How wire models read and write: names, strictness, missing apart from null."""

import pytest
from pydantic import ValidationError

from harness.wire.base import WireModel
from harness.wire.error import TurnError
from harness.wire.initialize import InitializeParams
from harness.wire.input import TextInput
from harness.wire.item import AgentMessageItem
from harness.wire.methods import METHODS
from harness.wire.settings import WorkspaceWrite
from harness.wire.thread import ThreadStartParams
from harness.wire.turn import Turn, TurnStartParams

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
        ({"sandboxPolicy": {"type": "workspaceWrite", "networkAccess": True}}, "writableRoots"),
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


def test_models_are_built_on_first_use_only() -> None:
    class Fresh(WireModel):
        value: int

    assert not Fresh.__pydantic_complete__
    assert Fresh.parse({"value": 1}).value == 1
    assert Fresh.__pydantic_complete__


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
    assert Second(inner=Inner(value=2)).plain() == {"inner": {"value": 2}}
    assert Inner.__pydantic_core_schema__ is built


@pytest.mark.parametrize("spec", METHODS, ids=lambda spec: spec.method)
def test_every_model_of_the_table_can_be_built(spec) -> None:
    for model in (spec.params, spec.result):
        if model is not None:
            assert model.model_json_schema(by_alias=True)["type"] == "object"
