"""The words of a recorded model, as parts of a reply."""

from typing import Any, Final

from harness.protocol.values import arr, dig, obj, text
from harness.scenario.from_trace.story import texts_of
from harness.scenario.from_trace.told_items import Workshop, unwrapped
from harness.trace.frame import parse

_RUNS: Final = ("exec_command", "shell_command", "shell", "local_shell", "container.exec")
_STATUS: Final = {"in_progress": "inProgress"}


def is_call(item: Any) -> bool:
    """Return whether an output item calls a tool of the server."""
    return text(obj(item).get("type")) in (
        "function_call",
        "custom_tool_call",
        "local_shell_call",
    )


def said_text(item: Any) -> str:
    """The text of a message."""
    return "".join(texts_of(obj(item).get("content")))


def part_of(item: Any, shop: Workshop) -> dict[str, Any] | None:
    """The part of a reply that an output item other than a message comes from."""
    said = obj(item)
    match said.get("type"):
        case "reasoning":
            shop.needs["reasoning"] = None
            body: dict[str, Any] = {}
            if summary := texts_of(said.get("summary")):
                body["summary"] = summary
            if raw := texts_of(said.get("content")):
                body["raw"] = raw
            return {"reasoning": body}
        case "function_call":
            arguments = obj(parse(text(said.get("arguments")).encode()))
            return _called(text(said.get("namespace")), text(said.get("name")), arguments, shop)
        case "local_shell_call":
            command = unwrapped(dig(said, "action", "command"))
            return _called("", "shell", {"command": command}, shop)
        case "custom_tool_call":
            name, given = text(said.get("name")), text(said.get("input"))
            if name == "apply_patch":
                shop.needs["file-change"] = None
                return {"patch": {"text": shop.local(given)}}
            shop.note(f"the model called the tool {name} with free text; its reply lacks that call")
            return None
        case "web_search_call":
            shop.needs["web-search"] = None
            action = obj(said.get("action"))
            if text(action.get("url")):
                return {"web_search": {"url": text(action.get("url"))}}
            return {"web_search": {"query": text(action.get("query")) or "?"}}
        case kind:
            shop.note(f"the model said an item of the type {kind}, which no part of a reply makes")
            return None


def _called(namespace: str, name: str, arguments: Any, shop: Workshop) -> dict[str, Any]:
    if name in _RUNS:
        shop.needs["command-execution"] = None
        return {"run": _run(arguments, shop)}
    if name == "update_plan":
        shop.needs["plan-update"] = None
        steps = [
            {
                "step": text(obj(one).get("step")),
                "status": _STATUS.get(text(obj(one).get("status")), text(obj(one).get("status"))),
            }
            for one in arr(arguments.get("plan"))
        ]
        why = text(arguments.get("explanation"))
        return {"update_plan": {"steps": steps, **({"explanation": why} if why else {})}}
    if name == "apply_patch":
        shop.needs["file-change"] = None
        return {"patch": {"text": shop.local(text(arguments.get("input")))}}
    if name == "view_image":
        return shop.part_of_image(text(arguments.get("path")))
    server, tool = namespace.removeprefix("mcp__"), name
    if name.startswith("mcp__"):
        server, _, tool = name.removeprefix("mcp__").partition("__")
    given = {"arguments": dict(arguments)} if arguments else {}
    if server:
        shop.needs["mcp-tools"] = None
        return {"mcp_call": {"server": server, "tool": tool, **given}}
    shop.needs["dynamic-tools"] = None
    return {"dynamic_call": {"tool": tool, **given}}


def _run(arguments: Any, shop: Workshop) -> Any:
    raw = arguments.get("cmd", arguments.get("command"))
    command = shop.local(unwrapped(raw) if not isinstance(raw, str) else raw)
    body: dict[str, Any] = {"command": command}
    if arguments.get("tty") is True:
        body["tty"] = True
    if arguments.get("sandbox_permissions") == "require_escalated":
        body["escalate"] = True
        if text(arguments.get("justification")):
            body["reason"] = text(arguments.get("justification"))
    return command if len(body) == 1 else body
