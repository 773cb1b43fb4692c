"""Marks: their writers and their readers agree.

Every value of every field comes back from a file; the scripted model fills every field of what it
notes; and every class is written, and every field read, somewhere in the harness.
"""

import ast
import dataclasses
import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.model import ScriptedModel
from harness.model.performance import StreamCut
from harness.model.script import ModelStep
from harness.model.tools import BUILT_IN_ROWS
from harness.model.wire.registry import wire_of
from harness.model.wire.responses import ResponsesEncoder
from harness.trace.marks import BODIES as OTHERS
from harness.trace.marks import CallEnd, FileWritten, MarkBody, McpToolCall, ModelCall, ModelEnd
from harness.trace.mcp_marks import MCP_BODIES
from harness.trace.recorder import Recorder
from harness.trace.store import load, save

BODIES = (*OTHERS, *MCP_BODIES)
HARNESS = Path(__file__).parents[2] / "harness"
# Where marks are defined and stored: nothing there says that somebody wants a field.
STORAGE = (
    "harness/trace/marks.py",
    "harness/trace/mcp_marks.py",
    "harness/trace/mark_rows.py",
)
DEFINING = ("harness.trace.marks", "harness.trace.mcp_marks")

# Fields that no code asks for, and why they are in a trace all the same.
FOR_PEOPLE = {
    ("ModelCall", "wire"): "harness show tells by which API the server called its model",
    ("RaceActs", "action"): "harness show tells when the action of a race was performed",
    ("GateOpened", "gate"): "harness show tells which gate; a rule asks whether one was opened",
    ("Settled", "owed"): "harness show tells what was owed; the judge finds that out by itself",
    ("PartialLine", "size"): "harness show tells how long the line was",
    ("ProgramStarted", "variables"): "harness show tells which variables the harness set",
    ("TurnRequested", "turn"): "harness show tells which turn of the scenario it is",
    ("RecorderNote", "note"): "harness show tells what the recorder noted",
}


def fields_of(body: type[MarkBody]) -> list[str]:
    return [field.name for field in dataclasses.fields(body)]  # pyright: ignore[reportArgumentType]


def stored(*bodies: MarkBody) -> list[MarkBody]:
    """The bodies as they come back from a file."""
    recorder = Recorder()
    for body in bodies:
        recorder.mark(body)
    with tempfile.TemporaryDirectory() as folder:
        save(recorder.trace, Path(folder) / "t.jsonl")
        return [mark.body for mark in load(Path(folder) / "t.jsonl").marks]


def any_body(body: type[MarkBody]) -> st.SearchStrategy[MarkBody]:
    """Any value of a class, each field by its type; NaN is no number of seconds."""
    hints = get_type_hints(body)
    numbers = st.floats(allow_nan=False)
    return st.builds(
        body, **{name: numbers if hints[name] is float else ... for name in fields_of(body)}
    )


def test_every_class_is_listed_once_and_has_a_kind_of_its_own() -> None:
    trees = [ast.parse((HARNESS.parent / one).read_text("utf-8")) for one in STORAGE[:2]]
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    bodies = {
        one.name
        for one in classes
        for part in one.body
        if isinstance(part, ast.AnnAssign) and ast.unparse(part.target) == "kind" and part.value
    }
    assert {body.__name__ for body in BODIES} == bodies
    assert len({body.kind for body in BODIES}) == len(BODIES)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.kind)
@given(data=st.data())
def test_a_mark_comes_back_from_a_file(body: type[MarkBody], data: Any) -> None:
    said = data.draw(any_body(body))
    assert stored(said) == [said]


# The scripted model.

HELLO = "hello to everybody"
ASKS = {
    "model": "m",
    "reasoning": {"effort": "low", "summary": "auto"},
    "text": {"format": {"type": "json_schema"}},
    "tools": [
        {"type": "function", "name": name, "parameters": {}}
        for name in ("exec_command", "update_plan", "mcp__tiny__add")
    ],
}
STEPS: list[dict[str, Any]] = [
    {
        "reply": [
            {"reroute": {"model": "other"}},
            {"update_plan": {"steps": [{"step": "look", "status": "pending"}]}},
            {"message": {"deltas": ["Let me look."], "phase": "commentary"}},
            {"run": "ls"},
            {"mcp_call": {"server": "tiny", "tool": "add"}},
            {"usage": {"input": 10, "output": 5}},
        ]
    },
    {"reply": [{"message": {"deltas": ["half", {"disconnect": True}]}}]},
    {"fail": {"status": 401, "code": "invalid_api_key", "message": "who are you?"}},
    {"fail": {"code": "insufficient_quota", "message": "no more"}},
    {"reply": [{"message": "Never read."}]},
]


async def noted() -> list[MarkBody]:
    """Return the marks of the scripted model for one call per way in which an answer can end."""
    marks: list[MarkBody] = []
    model = ScriptedModel(
        {"t": [ModelStep.model_validate(step) for step in STEPS]},
        ResponsesEncoder(),
        mark=marks.append,
        tools=BUILT_IN_ROWS,
    )
    model.watch(
        FileWritten(path="/w/SKILL.md", text="# one\nhello to everybody\nnobody said this\n")
    )
    model.watch_tools([McpToolCall("tiny", "add")])
    for number in range(len(STEPS)):
        outputs = [
            {"type": "function_call_output", "call_id": call_id, "output": "made.txt\n"}
            for call_id in (model.calls[-1].tool_calls if model.calls else [])
        ]
        image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
        user = {"role": "user", "content": [{"type": "input_text", "text": HELLO}, image]}
        body = {**ASKS, "input": [user, *outputs]}
        # The last call comes by another API, which its mark names.
        is_last = number == len(STEPS) - 1
        chat = {"stream": True, "messages": [{"role": "user", "content": HELLO}]}
        wire = wire_of("/chat/completions") if is_last else None
        answer = model.answer(json.dumps(chat if is_last else body).encode(), wire)
        if answer.chunks is None:
            continue
        try:
            async for _ in answer.chunks:
                if is_last:
                    await answer.chunks.aclose()
        except StreamCut:
            continue
    return marks


async def test_the_scripted_model_fills_every_field_and_all_of_it_comes_back() -> None:
    marks = await noted()
    assert stored(*marks) == marks
    for body in (ModelCall, ModelEnd):
        mine = [mark for mark in marks if isinstance(mark, body)]
        assert len(mine) == len(STEPS)
        empty = body()
        never = {
            name
            for name in fields_of(body)
            if all(getattr(mark, name) == getattr(empty, name) for mark in mine)
        }
        assert never == set(), f"the scripted model never says {never}"


async def test_the_scripted_model_tells_every_end_but_the_unknown_one() -> None:
    ends = [mark.outcome for mark in await noted() if isinstance(mark, ModelEnd)]
    assert ends == [
        CallEnd.COMPLETED,
        CallEnd.DISCONNECTED,
        CallEnd.STATUS,
        CallEnd.FAILED,
        CallEnd.DROPPED,
    ]
    assert set(CallEnd) - set(ends) == {CallEnd.UNKNOWN}


# Who writes and who reads, by the syntax trees.


@dataclasses.dataclass(frozen=True, slots=True)
class Module:
    """The mark classes that a module makes, those it names as a type, the attributes it reads."""

    made: frozenset[str]
    named: frozenset[str]
    read: frozenset[str]


@cache
def modules() -> tuple[Module, ...]:
    return tuple(
        _module(ast.parse(path.read_text("utf-8")))
        for path in sorted(HARNESS.rglob("*.py"))
        if path.relative_to(HARNESS.parent).as_posix() not in STORAGE
    )


def _module(tree: ast.Module) -> Module:
    nodes = list(ast.walk(tree))
    imported = {
        name.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module in DEFINING
        for name in node.names
    }
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    made = {node.id for node in calls if isinstance(node, ast.Name)}
    named = {node.id for node in nodes if isinstance(node, ast.Name) and node not in calls}
    read = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    return Module(frozenset(imported & made), frozenset(imported & named), frozenset(read))


def _through(body: type[MarkBody], name: str) -> Iterator[str]:
    """The field itself, and the properties and methods of the class that read it."""
    yield name
    trees = [ast.parse((HARNESS.parent / one).read_text("utf-8")) for one in STORAGE[:2]]
    [form] = [
        node
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == body.__name__
    ]
    for method in (node for node in form.body if isinstance(node, ast.FunctionDef)):
        if any(isinstance(node, ast.Attribute) and node.attr == name for node in ast.walk(method)):
            yield method.name


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.kind)
def test_every_class_is_written_by_somebody(body: type[MarkBody]) -> None:
    name = body.__name__
    assert any(name in module.made for module in modules())


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.kind)
def test_every_field_is_read_by_somebody_who_knows_the_class(body: type[MarkBody]) -> None:
    name = body.__name__
    # Who reads marks names their class: in `marks_of`, `on_mark`, `isinstance` or an annotation.
    readers = [module for module in modules() if name in module.named]
    for field in fields_of(body):
        ways = set(_through(body, field))
        read = any(ways & module.read for module in readers)
        assert read is ((name, field) not in FOR_PEOPLE), f"{name}.{field}"
