"""The contents of a call of the OpenAI Responses API: texts, tools, outputs, settings."""

import json
from collections.abc import Mapping
from typing import Any

from harness.model.encoder import Asked
from harness.model.tools import Offered
from harness.protocol.values import arr, dig, obj, text

Json = dict[str, Any]

# The beginnings of the user's last texts are enough to see whether an input arrived.
MAX_TEXTS = 8
MAX_CHARACTERS = 200


def asked(body: Mapping[str, Any]) -> Asked:
    """Return the contents of a call, as far as rules use them."""
    reasoning = obj(body.get("reasoning"))
    return {
        "model": text(body.get("model")),
        "user_texts": tuple(said[:MAX_CHARACTERS] for said in user_texts(body)[-MAX_TEXTS:]),
        "effort": text(reasoning.get("effort")),
        "summary": text(reasoning.get("summary")),
        "schema": dig(obj(body.get("text")), "format", "type") == "json_schema",
    }


def schema(body: Mapping[str, Any]) -> Any:
    """The JSON Schema of the answer, None for none."""
    form = obj(obj(body.get("text")).get("format"))
    return form.get("schema") if form.get("type") == "json_schema" else None


def user_texts(body: Mapping[str, Any]) -> list[str]:
    """The texts of all user messages of the input."""
    return [
        text(obj(part).get("text"))
        for message in _messages(body)
        if message.get("role") == "user"
        for part in _parts(message)
    ]


def offered(body: Mapping[str, Any]) -> list[Offered]:
    """The tools of the call, including those in a namespace."""
    found: list[Offered] = []
    for tool in map(obj, arr(body.get("tools"))):
        name = text(tool.get("name"))
        if tool.get("type") == "namespace":
            inner = map(obj, arr(tool.get("tools")))
            found += [Offered(text(one.get("name")), name, members=_members(one)) for one in inner]
        elif name:
            free = tool.get("type") == "custom"
            found.append(Offered(name, free=free, members=_members(tool)))
    return found


def _members(tool: Json) -> frozenset[str] | None:
    """The members that a tool's parameters list, None where they list none."""
    listed = obj(obj(tool.get("parameters")).get("properties"))
    return frozenset(listed) if listed else None


def outputs(body: Mapping[str, Any]) -> dict[str, str]:
    """The texts of all tool outputs of the input."""
    found: dict[str, str] = {}
    for entry in map(obj, arr(body.get("input"))):
        if text(entry.get("type")).endswith("_call_output"):
            output = entry.get("output")
            shown = output if isinstance(output, str) else _texts(output)
            found[text(entry.get("call_id"))] = shown
    return found


def orphans(body: Mapping[str, Any]) -> list[str]:
    """Tool outputs whose call is not in the input before them, and calls without an output.

    The API refuses both.
    """
    open_calls: dict[str, str] = {}
    called: set[str] = set()
    problems: list[str] = []
    for entry in map(obj, arr(body.get("input"))):
        kind, call_id = text(entry.get("type")), text(entry.get("call_id"))
        if kind.endswith("_call_output"):
            open_calls.pop(call_id, None)
            if call_id not in called:
                problems.append(f"a {kind} for call {call_id!r}, which the input does not hold")
        elif kind.endswith("_call") and call_id:
            called.add(call_id)
            open_calls[call_id] = kind
    return problems + [
        f"a {kind} {call_id!r} without its output" for call_id, kind in open_calls.items()
    ]


def _messages(body: Mapping[str, Any]) -> list[Json]:
    given = body.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return [entry for entry in map(obj, arr(given)) if "role" in entry]


def _texts(output: Any) -> str:
    """The texts of an output that is a list of content items, else its JSON."""
    texts = [text(obj(item).get("text")) for item in arr(output)]
    return "\n".join(filter(None, texts)) or json.dumps(output, ensure_ascii=False)


def _parts(message: Json) -> list[Any]:
    content = message.get("content")
    return [{"text": content}] if isinstance(content, str) else arr(content)
