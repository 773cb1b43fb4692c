"""Output items of a recorded model, converted to parts of a reply."""

from typing import Any, Final

from harness.protocol.values import arr, dig, obj, text
from harness.scenario.from_trace.item_parts import Conversion, command_in_shell
from harness.scenario.from_trace.story import texts_of
from harness.trace.frame import parse

_SHELL_TOOLS: Final = ("exec_command", "shell_command", "shell", "local_shell", "container.exec")
_STATUS: Final = {"in_progress": "inProgress"}


def is_call(item: Any) -> bool:
    """Return whether an output item calls a tool of the server."""
    return text(obj(item).get("type")) in (
        "function_call",
        "custom_tool_call",
        "local_shell_call",
    )


def message_text(item: Any) -> str:
    """Return the joined texts of a message item."""
    return "".join(texts_of(obj(item).get("content")))


def part_of_output_item(item: Any, conversion: Conversion) -> dict[str, Any] | None:
    """Return the reply part for an output item that is no message; None, noted, if none fits."""
    output = obj(item)
    match output.get("type"):
        case "reasoning":
            conversion.needs["reasoning"] = None
            body: dict[str, Any] = {}
            if summary := texts_of(output.get("summary")):
                body["summary"] = summary
            if raw := texts_of(output.get("content")):
                body["raw"] = raw
            return {"reasoning": body}
        case "function_call":
            arguments = obj(parse(text(output.get("arguments")).encode()))
            return _tool_call_part(
                text(output.get("namespace")), text(output.get("name")), arguments, conversion
            )
        case "local_shell_call":
            command = command_in_shell(dig(output, "action", "command"))
            return _tool_call_part("", "shell", {"command": command}, conversion)
        case "custom_tool_call":
            name, input_text = text(output.get("name")), text(output.get("input"))
            if name == "apply_patch":
                conversion.needs["file-change"] = None
                return {"patch": {"text": conversion.relative(input_text)}}
            conversion.add_note(
                f"the model called the tool {name} with free text; its reply lacks that call"
            )
            return None
        case "web_search_call":
            conversion.needs["web-search"] = None
            action = obj(output.get("action"))
            if text(action.get("url")):
                return {"web_search": {"url": text(action.get("url"))}}
            return {"web_search": {"query": text(action.get("query")) or "?"}}
        case kind:
            conversion.add_note(
                f"the model said an item of the type {kind}, which no part of a reply makes"
            )
            return None


def _tool_call_part(
    namespace: str, name: str, arguments: Any, conversion: Conversion
) -> dict[str, Any]:
    if name in _SHELL_TOOLS:
        conversion.needs["command-execution"] = None
        return {"run": _run_body(arguments, conversion)}
    if name == "update_plan":
        conversion.needs["plan-update"] = None
        steps = [
            {
                "step": text(obj(step).get("step")),
                "status": _STATUS.get(text(obj(step).get("status")), text(obj(step).get("status"))),
            }
            for step in arr(arguments.get("plan"))
        ]
        explanation = text(arguments.get("explanation"))
        return {
            "update_plan": {"steps": steps, **({"explanation": explanation} if explanation else {})}
        }
    if name == "apply_patch":
        conversion.needs["file-change"] = None
        return {"patch": {"text": conversion.relative(text(arguments.get("input")))}}
    if name == "view_image":
        return conversion.part_of_image(text(arguments.get("path")))
    server, tool = namespace.removeprefix("mcp__"), name
    if name.startswith("mcp__"):
        server, _, tool = name.removeprefix("mcp__").partition("__")
    arguments_member = {"arguments": dict(arguments)} if arguments else {}
    if server:
        conversion.needs["mcp-tools"] = None
        return {"mcp_call": {"server": server, "tool": tool, **arguments_member}}
    conversion.needs["dynamic-tools"] = None
    return {"dynamic_call": {"tool": tool, **arguments_member}}


def _run_body(arguments: Any, conversion: Conversion) -> Any:
    raw = arguments.get("cmd", arguments.get("command"))
    command = conversion.relative(command_in_shell(raw) if not isinstance(raw, str) else raw)
    body: dict[str, Any] = {"command": command}
    if arguments.get("tty") is True:
        body["tty"] = True
    if arguments.get("sandbox_permissions") == "require_escalated":
        body["escalate"] = True
        if text(arguments.get("justification")):
            body["reason"] = text(arguments.get("justification"))
    return command if len(body) == 1 else body
