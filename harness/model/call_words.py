"""Calls of the scripted model in words: what was asked, what a step says, what does not fit."""

import difflib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from harness.model.asks import DynamicCall, McpCall, Patch, Run, UpdatePlan, ViewImage
from harness.model.model import Call
from harness.model.parts import Disconnect, Hold, Malformed, Message, Part, PlanItem, Reasoning
from harness.model.play import Unfit
from harness.model.script import ModelStep
from harness.model.tools import intent_of, lines_to_add
from harness.protocol.values import arr, obj, text
from harness.trace.excerpt import visible

# So many characters of a text, and names of tools, are shown.
WIDTH, TOOLS = 100, 12
# Longer texts are not searched for what is most like an expected one.
MAX_SEARCHED_CHARACTERS = 2000


def entry_line(entry: Any) -> str:
    """An entry of a call's input on one line."""
    members = obj(entry)
    kind, role = text(members.get("type")), text(members.get("role"))
    if role:
        return f"{role}: {short(_content(members.get('content')))}"
    if kind.endswith("_call_output"):
        output = members.get("output")
        shown = output if isinstance(output, str) else _content(output)
        return f"output of {text(members.get('call_id'))}: {short(shown)}"
    if kind.endswith("_call"):
        given = members.get("arguments", members.get("input", members.get("action", "")))
        shown = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        name = text(members.get("name")) or kind
        return f"call {text(members.get('call_id'))} of {name}: {short(shown)}"
    if kind == "reasoning":
        return f"reasoning: {short(_content(members.get('summary')))}"
    return short(json.dumps(entry, ensure_ascii=False))


def plan_of(step: ModelStep) -> str:
    """Describe what a step is about to say, in a word for each part."""
    if step.fail is not None:
        fail = step.fail
        return f"fails with status {fail.status}" if fail.status else "fails by an error event"
    names = [next(iter(type(one).model_fields)) for one in step.reply or []]
    return ", ".join(names) if names else "an empty reply"


def told_lines(step: ModelStep) -> list[str]:
    """Return a line for each part of a step."""
    if step.fail is not None:
        return [f"{plan_of(step)}: {short(step.fail.message)}"]
    return [_part_line(one) for one in step.reply or []]


def _part_line(part: Part) -> str:
    match part:
        case Message(message=body) | PlanItem(plan_item=body):
            name = "message" if isinstance(part, Message) else "plan"
            said = "".join(one for one in body.deltas if isinstance(one, str))
            count = sum(isinstance(one, str) for one in body.deltas)
            return f"{name}: {short(said)}" + (f" (in {count} deltas)" if count > 1 else "")
        case Reasoning(reasoning=body):
            blocks = [*body.summary, *body.raw]
            said = " ".join(
                one if isinstance(one, str) else "".join(d for d in one if isinstance(d, str))
                for one in blocks
            )
            return f"reasoning: {short(said)}"
        case Hold(hold=gate):
            return f"hold: {gate}"
        case Disconnect():
            return "disconnect"
        case Malformed():
            return f"malformed: {len(part.malformed.raw)} bytes"
        case Run() | Patch() | UpdatePlan() | McpCall() | DynamicCall() | ViewImage():
            intent, values = intent_of(part)
            given = {name: value for name, value in values.items() if value is not None}
            only = next(iter(given.values())) if len(given) == 1 else given
            shown = only if isinstance(only, str) else json.dumps(only, ensure_ascii=False)
            return f"{intent}: {short(shown)}"
        case _:
            dumped = part.model_dump(mode="json", exclude_none=True, by_alias=True)
            name, value = next(iter(dumped.items()))
            return f"{name}: {short(json.dumps(value, ensure_ascii=False))}"


def nearest_texts(call: Call) -> list[str]:
    """Of each text that a call should contain and does not, the text of it that is most alike."""
    step = call.step
    if step is None or step.expect is None:
        return []
    texts = list(dict.fromkeys(_texts(call.body.get("input"))))
    lines: list[str] = []
    for wanted in step.expect.input_contains:
        for one in [wanted] if isinstance(wanted, str) else wanted:
            if not any(one in said for said in texts):
                near = difflib.get_close_matches(one, texts, n=1, cutoff=0.4)
                lines += [f"nearest to {short(one)} is {short(near[0])}" for near in [near] if near]
    return lines


def _texts(value: Any) -> Iterator[str]:
    """Every text within a value, long ones left out: comparing them takes long."""
    if isinstance(value, str) and len(value) <= MAX_SEARCHED_CHARACTERS:
        yield value
    for one in arr(value) or obj(value).values():
        yield from _texts(one)


def unfit_words(unfit: Unfit) -> str:
    """Name what the model wanted and no offered tool can do, and the profile's entry for it."""
    offered = tool_names([str(one) for one in unfit.offered])
    if unfit.lacks:
        return f"{unfit.intent} needs {unfit.lacks}, which no offered tool has ({offered})"
    return (
        f"{unfit.intent}: the server offered no tool for it ({offered}); if one of them is it, add "
        f"to a profile and give that by --target: {lines_to_add(unfit.intent)}"
    )


def tool_names(names: Sequence[str]) -> str:
    """The names of tools, the first ones of many."""
    shown = ", ".join(visible(one) for one in names[:TOOLS])
    more = f" and {len(names) - TOOLS} more" if len(names) > TOOLS else ""
    return (shown + more) or "none"


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [
        text(obj(one).get("text")) or f"[{text(obj(one).get('type')) or 'something'}]"
        for one in arr(content)
    ]
    return " ".join(texts)


def short(said: str) -> str:
    """A text in quotes on one line, cut to `WIDTH`."""
    shown = visible(json.dumps(said[: 2 * WIDTH], ensure_ascii=False))
    if len(said) <= WIDTH:
        return shown
    return f"{visible(json.dumps(said[:WIDTH], ensure_ascii=False))} … ({len(said)} characters)"
