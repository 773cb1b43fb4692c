"""Output schemas: the file that the agent gets, and `parse` of its answer."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_type

import pytest
from jsonschema_rs import validator_for
from pydantic import BaseModel

from agent_sdk import Agent, AgentError, ConfigError
from agent_sdk.schema import build_schema, strict

pytestmark = [pytest.mark.socket, pytest.mark.anyio]


class Part(BaseModel):
    """One of several."""

    name: str
    count: int | None = None


class Answer(BaseModel):
    """A model with a model in it, and a field that is named like a word of JSON Schema."""

    parts: list[Part]
    default: str = "x"
    properties: dict[str, int] | None = None


@dataclass
class Point:
    x: int
    label: str = "here"


def _answers(fake, answer: str) -> Agent:
    """An agent that shows the schema in its first message and answers in its last."""
    body = f"""
path = sys.argv[sys.argv.index("--output-schema") + 1]
read()
begin()
message(open(path).read())
message({answer!r})
complete()
"""
    return Agent(agent_path=fake(body).path)


async def test_a_model_gives_a_strict_schema_and_an_instance(fake) -> None:
    answer = {"parts": [{"name": "a", "count": None}], "default": "y", "properties": None}
    thread = _answers(fake, json.dumps(answer)).start_thread()
    result = await thread.run("x", output_schema=Answer)
    assert result.final_response == json.dumps(answer)
    assert_type(result.parse(), Answer)
    assert result.parse() == Answer.model_validate(answer)
    given = json.loads(result.items[0].raw["text"])
    assert validator_for(given).is_valid(answer)
    assert given["required"] == ["parts", "default", "properties"]
    assert given["additionalProperties"] is False
    assert "default" not in given["properties"]["default"]
    part = given["$defs"]["Part"]
    assert (part["required"], part["additionalProperties"]) == (["name", "count"], False)


async def test_a_dataclass_gives_one_too(fake) -> None:
    thread = _answers(fake, '{"x": 3, "label": "there"}').start_thread()
    assert (await thread.run("x", output_schema=Point)).parse() == Point(3, "there")


async def test_a_schema_is_passed_as_it_is(fake) -> None:
    given = {"type": "object", "properties": {"é": {"default": 1}}, "required": []}
    result = await _answers(fake, '{"é": 2}').start_thread().run("x", output_schema=given)
    assert json.loads(result.items[0].raw["text"]) == given
    assert result.parse() == {"é": 2}


@pytest.mark.parametrize("answer", ["no JSON", '{"x": "three"}', ""])
async def test_an_answer_that_is_not_of_the_schema_is_kept_and_not_parsed(fake, answer) -> None:
    result = await _answers(fake, answer).start_thread().run("x", output_schema=Point)
    assert result.final_response == answer
    with pytest.raises(AgentError, match="not JSON of a Point"):
        result.parse()


async def test_without_a_schema_the_answer_is_parsed_as_json(fake) -> None:
    body = "read(); begin(); message('[1]'); complete()"
    result = await Agent(agent_path=fake(body).path).start_thread().run("x")
    assert result.parse() == [1]


class Odd:
    """pydantic does not know this."""


class Call(BaseModel):
    """pydantic knows this, but JSON Schema has no functions."""

    back: Callable[[], int]


@pytest.mark.parametrize(
    "given", [[], "{}", True, 7, {"a": object()}, {"a": float("nan")}, Odd, Call]
)
async def test_an_invalid_schema_is_refused_before_anything_starts(fake, given: Any) -> None:
    thread = _answers(fake, "").start_thread()
    with pytest.raises(ConfigError, match="schema"):
        await thread.run("x", output_schema=given)
    with pytest.raises(ConfigError, match="schema"):
        thread.run_streamed("x", output_schema=given)


def test_an_object_that_is_open_on_purpose_stays_open() -> None:
    given: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"type": "object", "additionalProperties": {"type": "integer"}}},
        "enum": [{"default": 1, "properties": {}}],
    }
    made = strict(given)
    assert made["properties"]["a"] == given["properties"]["a"]
    assert made["enum"] == given["enum"]


def test_a_type_is_told_from_a_mapping() -> None:
    assert build_schema({"type": "string"}).type is None
    assert build_schema(Part).type is Part


def test_without_pydantic_only_a_type_needs_it(tmp_path: Path) -> None:
    program = """
import sys
sys.modules["pydantic"] = None
from agent_sdk import ConfigError
from agent_sdk.schema import build_schema
build_schema({"type": "object"})
try:
    build_schema(int)
except ConfigError as error:
    print(error)
"""
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "install agent-sdk[pydantic], or give a JSON Schema" in told.stdout


def test_importing_the_sdk_imports_no_pydantic_and_nothing_of_the_harness(tmp_path: Path) -> None:
    program = """
import sys
before = set(sys.modules)
import agent_sdk
others = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(others - set(sys.stdlib_module_names)))
"""
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert told.stdout == "['agent_sdk']\n"
