"""Descriptions of the scripted model's calls: their input, step and problems."""

import difflib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from harness.model.model import Call
from harness.model.parts import Disconnect, Hold, Malformed, Message, Part, PlanItem, Reasoning
from harness.model.performance import MissingTool
from harness.model.script import ModelStep
from harness.model.tool_parts import DynamicCall, McpCall, Patch, Run, UpdatePlan, ViewImage
from harness.model.tools import intent_of, profile_lines
from harness.protocol.escapes import visible
from harness.protocol.values import arr, obj, text

# Characters of a text, and names of tools, that are shown.
MAX_TEXT_WIDTH, MAX_TOOL_NAMES = 100, 12
# Longer texts are not compared with an expected text.
MAX_SEARCHED_CHARACTERS = 2000
USUAL_PATIENCE_MS = 10_000


def entry_line(entry: Any) -> str:
    """Return an entry of a call's input on one line."""
    members = obj(entry)
    kind, role = text(members.get("type")), text(members.get("role"))
    if role:
        return f"{role}: {shorten(_content_text(members.get('content')))}"
    if kind.endswith("_call_output"):
        output = members.get("output")
        shown = output if isinstance(output, str) else _content_text(output)
        return f"output of {text(members.get('call_id'))}: {shorten(shown)}"
    if kind.endswith("_call"):
        arguments = members.get("arguments", members.get("input", members.get("action", "")))
        shown = (
            arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        )
        name = text(members.get("name")) or kind
        return f"call {text(members.get('call_id'))} of {name}: {shorten(shown)}"
    if kind == "reasoning":
        return f"reasoning: {shorten(_content_text(members.get('summary')))}"
    return shorten(json.dumps(entry, ensure_ascii=False))


def step_summary(step: ModelStep) -> str:
    """Return the names of a step's parts, or the kind of its failure."""
    if step.fail is not None:
        fail = step.fail
        return f"fails with status {fail.status}" if fail.status else "fails by an error event"
    names = [next(iter(type(part).model_fields)) for part in step.reply or []]
    return ", ".join(names) if names else "an empty reply"


def part_lines(step: ModelStep) -> list[str]:
    """Return a line for each part of a step."""
    if step.fail is not None:
        return [f"{step_summary(step)}: {shorten(step.fail.message)}"]
    return [_part_line(part) for part in step.reply or []]


def _part_line(part: Part) -> str:
    match part:
        case Message(message=body) | PlanItem(plan_item=body):
            name = "message" if isinstance(part, Message) else "plan"
            streamed = "".join(delta for delta in body.deltas if isinstance(delta, str))
            count = sum(isinstance(delta, str) for delta in body.deltas)
            return f"{name}: {shorten(streamed)}" + (f" (in {count} deltas)" if count > 1 else "")
        case Reasoning(reasoning=body):
            blocks = [*body.summary, *body.raw]
            streamed = " ".join(
                block if isinstance(block, str) else "".join(d for d in block if isinstance(d, str))
                for block in blocks
            )
            return f"reasoning: {shorten(streamed)}"
        case Hold(hold=gate):
            return f"hold: {gate}"
        case Disconnect():
            return "disconnect"
        case Malformed():
            return f"malformed: {len(part.malformed.raw)} bytes"
        case Run() | Patch() | UpdatePlan() | McpCall() | DynamicCall() | ViewImage():
            intent, values = intent_of(part)
            # The patience of a command is set in each, and told where it is not the usual one.
            usual = {"patience": USUAL_PATIENCE_MS}
            set_values = {
                name: value
                for name, value in values.items()
                if value is not None and usual.get(name) != value
            }
            shown_value = next(iter(set_values.values())) if len(set_values) == 1 else set_values
            shown = (
                shown_value
                if isinstance(shown_value, str)
                else json.dumps(shown_value, ensure_ascii=False)
            )
            return f"{intent}: {shorten(shown)}"
        case _:
            dumped = part.model_dump(mode="json", exclude_none=True, by_alias=True)
            name, value = next(iter(dumped.items()))
            return f"{name}: {shorten(json.dumps(value, ensure_ascii=False))}"


def nearest_texts(call: Call) -> list[str]:
    """Return a line with the most similar text for each expected text that the call lacks."""
    step = call.step
    if step is None or step.expect is None:
        return []
    texts = list(dict.fromkeys(_texts(call.body.get("input"))))
    lines: list[str] = []
    for expected in step.expect.input_contains:
        for expected_text in [expected] if isinstance(expected, str) else expected:
            if not any(expected_text in input_text for input_text in texts):
                closest = difflib.get_close_matches(expected_text, texts, n=1, cutoff=0.4)
                lines += [
                    f"nearest to {shorten(expected_text)} is {shorten(near[0])}"
                    for near in [closest]
                    if near
                ]
    return lines


def _texts(value: Any) -> Iterator[str]:
    """Yield every text within a value, except long ones, which take long to compare."""
    if isinstance(value, str) and len(value) <= MAX_SEARCHED_CHARACTERS:
        yield value
    for inner in arr(value) or obj(value).values():
        yield from _texts(inner)


def describe_missing_tool(unfit: MissingTool) -> str:
    """Return a message for an intent without an offered tool, with the profile's entry for it."""
    if unfit.reason:
        return f"{unfit.intent}: {unfit.reason}"
    offered = tool_names([str(tool) for tool in unfit.offered_tools])
    if unfit.lacks:
        return f"{unfit.intent} needs {unfit.lacks}, which no offered tool has ({offered})"
    return (
        f"{unfit.intent}: the server offered no tool for it ({offered}); if one of them is it, add "
        f"to a profile and give that by --target: {profile_lines(unfit.intent)}"
    )


def tool_names(names: Sequence[str]) -> str:
    """Return the names of tools as one text, cut after `MAX_TOOL_NAMES`; "none" without any."""
    shown = ", ".join(visible(name) for name in names[:MAX_TOOL_NAMES])
    more = f" and {len(names) - MAX_TOOL_NAMES} more" if len(names) > MAX_TOOL_NAMES else ""
    return (shown + more) or "none"


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [
        text(obj(item).get("text")) or f"[{text(obj(item).get('type')) or 'something'}]"
        for item in arr(content)
    ]
    return " ".join(texts)


def shorten(value: str) -> str:
    """Return a text in quotes on one line, cut to `MAX_TEXT_WIDTH`."""
    shown = visible(json.dumps(value[: 2 * MAX_TEXT_WIDTH], ensure_ascii=False))
    if len(value) <= MAX_TEXT_WIDTH:
        return shown
    beginning = visible(json.dumps(value[:MAX_TEXT_WIDTH], ensure_ascii=False))
    return f"{beginning} … ({len(value)} characters)"
