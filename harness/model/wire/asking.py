"""Contents of a call of the OpenAI Responses API: texts, tools, outputs, settings."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from harness.model.encoder import CallContents
from harness.model.tools import OfferedTool
from harness.protocol.values import arr, dig, obj, text

Json = dict[str, Any]

# The beginnings of the user's last texts are enough to see whether an input arrived.
MAX_TEXTS = 8
MAX_TEXT_CHARACTERS = 200
MAX_IMAGES = 20


def call_contents(body: Mapping[str, Any]) -> CallContents:
    """Return the contents of a call that rules use."""
    reasoning = obj(body.get("reasoning"))
    return {
        "model": text(body.get("model")),
        "user_texts": tuple(
            user_text[:MAX_TEXT_CHARACTERS] for user_text in user_texts(body)[-MAX_TEXTS:]
        ),
        "effort": text(reasoning.get("effort")),
        "summary": text(reasoning.get("summary")),
        "schema": dig(obj(body.get("text")), "format", "type") == "json_schema",
        "images": images(body),
    }


def images(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a short digest of each image in the input, of at most the last MAX_IMAGES."""
    urls = [
        text(part.get("image_url"))
        for entry in map(obj, arr(body.get("input")))
        for part in map(obj, [*arr(entry.get("content")), *arr(entry.get("output"))])
        if part.get("type") == "input_image"
    ]
    digests = [sha256(url.encode("utf-8", "replace")).hexdigest()[:12] for url in urls if url]
    return tuple(digests[-MAX_IMAGES:])


def schema(body: Mapping[str, Any]) -> Any:
    """Return the JSON Schema that the answer must have, None if there is none."""
    form = obj(obj(body.get("text")).get("format"))
    return form.get("schema") if form.get("type") == "json_schema" else None


def user_texts(body: Mapping[str, Any]) -> list[str]:
    """Return the texts of all user messages in the input, in order."""
    return [
        text(obj(part).get("text"))
        for message in _messages(body)
        if message.get("role") == "user"
        for part in _parts(message)
    ]


def message_texts(body: Mapping[str, Any]) -> list[str]:
    """Return the texts of all messages in the input, whoever said them, in order."""
    parts = [part for message in _messages(body) for part in _parts(message)]
    return [text(obj(part).get("text")) for part in parts]


def offered_tools(body: Mapping[str, Any]) -> list[OfferedTool]:
    """Return the tools that the call offers, including those in a namespace."""
    tools: list[OfferedTool] = []
    for tool in map(obj, arr(body.get("tools"))):
        name = text(tool.get("name"))
        if tool.get("type") == "namespace":
            inner = map(obj, arr(tool.get("tools")))
            tools += [
                OfferedTool(
                    text(tool_in_namespace.get("name")),
                    name,
                    parameters=_members(tool_in_namespace),
                )
                for tool_in_namespace in inner
            ]
        elif name:
            free = tool.get("type") == "custom"
            tools.append(OfferedTool(name, takes_free_text=free, parameters=_members(tool)))
    return tools


def _members(tool: Json) -> frozenset[str] | None:
    """Return the parameters that a tool lists, None if it lists none."""
    properties = obj(obj(tool.get("parameters")).get("properties"))
    return frozenset(properties) if properties else None


def outputs(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each tool output in the input, keyed by the id of its call."""
    texts: dict[str, str] = {}
    for entry in map(obj, arr(body.get("input"))):
        if text(entry.get("type")).endswith("_call_output"):
            output = entry.get("output")
            shown = output if isinstance(output, str) else _texts(output)
            texts[text(entry.get("call_id"))] = shown
    return texts


def orphans(body: Mapping[str, Any]) -> list[str]:
    """Return a problem for each tool output without an earlier call, and each call without output.

    The API rejects both.
    """
    open_calls: dict[str, str] = {}
    call_ids: set[str] = set()
    problems: list[str] = []
    for entry in map(obj, arr(body.get("input"))):
        kind, call_id = text(entry.get("type")), text(entry.get("call_id"))
        if kind.endswith("_call_output"):
            open_calls.pop(call_id, None)
            if call_id not in call_ids:
                problems.append(f"a {kind} for call {call_id!r}, which the input does not hold")
        elif kind.endswith("_call") and call_id:
            call_ids.add(call_id)
            open_calls[call_id] = kind
    return problems + [
        f"a {kind} {call_id!r} without its output" for call_id, kind in open_calls.items()
    ]


def _messages(body: Mapping[str, Any]) -> list[Json]:
    entries = body.get("input")
    if isinstance(entries, str):
        return [{"role": "user", "content": entries}]
    return [entry for entry in map(obj, arr(entries)) if "role" in entry]


def _texts(output: Any) -> str:
    """Return the texts of an output that is a list of content items, any other output as JSON."""
    texts = [text(obj(item).get("text")) for item in arr(output)]
    return "\n".join(filter(None, texts)) or json.dumps(output, ensure_ascii=False)


def _parts(message: Json) -> list[Any]:
    content = message.get("content")
    return [{"text": content}] if isinstance(content, str) else arr(content)
