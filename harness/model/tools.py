"""Choice of the server's tool for an intent, and the outcome shown by a tool's output."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from harness.model.tool_parts import (
    DynamicCall,
    McpCall,
    Patch,
    PatchBody,
    Run,
    ToolPart,
    UpdatePlan,
    ViewImage,
)

# Intent -> the capability that a server without a tool for it lacks.
CAPABILITY_OF_INTENT = {
    "run": "command-execution",
    "patch": "file-change",
    "update_plan": "plan-update",
    "mcp_call": "mcp-tools",
    "dynamic_call": "dynamic-tools",
    "view_image": "image-view",
}
TERMINAL = "terminal"
"""The capability of a command that has a terminal."""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that a call offers: its name, its namespace, whether it takes free text.

    `parameters` are the listed parameters, None if none are listed.
    """

    name: str
    namespace: str = ""
    takes_free_text: bool = False
    parameters: frozenset[str] | None = None

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class ToolRow:
    """The tool call for an intent. Names and templates may use `{value}` placeholders.

    `arguments` is a mapping, or one placeholder for a whole value; members whose placeholder has no
    value are left out. A free-text tool gets only the member `input`.
    """

    intent: str
    name: str
    namespace: str = ""
    arguments: Any = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ChosenTool:
    """A tool call to make; `lacks` is a capability that the tool lacks for it, "" for none."""

    tool: OfferedTool
    arguments: Any
    lacks: str = ""


_ESCALATION = {"sandbox_permissions": "{permissions}", "justification": "{reason}"}
BUILT_IN_ROWS = (
    ToolRow(
        "run",
        "exec_command",
        "",
        {"cmd": "{command}", "yield_time_ms": "{patience}", "tty": "{tty}", **_ESCALATION},
    ),
    ToolRow("run", "shell_command", "", {"command": "{command}", **_ESCALATION}),
    ToolRow("run", "shell", "", {"command": ["bash", "-lc", "{command}"], **_ESCALATION}),
    ToolRow("patch", "apply_patch", "", {"input": "{patch}"}),
    ToolRow("update_plan", "update_plan", "", {"explanation": "{explanation}", "plan": "{plan}"}),
    ToolRow("view_image", "view_image", "", {"path": "{path}"}),
    ToolRow("mcp_call", "mcp__{server}__{tool}", "", "{arguments}"),
    ToolRow("mcp_call", "{tool}", "mcp__{server}", "{arguments}"),
    ToolRow("mcp_call", "{tool}", "mcp__{server}__", "{arguments}"),
    ToolRow("dynamic_call", "{tool}", "", "{arguments}"),
)

# Regular expressions for the outcome that a tool's output shows, tried in this order.
OUTCOME_PATTERNS: dict[str, tuple[str, ...]] = {
    "declined": (r"rejected by user", r"declined by (the )?user"),
    "refused": (r"approval policy", r"blocked by policy", r"not allowed", r"unsupported call"),
    "failed": (
        r"[Ee]xit(ed with)? code:? [1-9-]",
        r'"exit_code":\s*[1-9-]',
        r"verification failed",
        r"^(error|failed)\b",
    ),
    "ok": (
        r"[Ee]xit(ed with)? code:? 0\b",
        r'"exit_code":\s*0\b',
        r"^(Success|Plan updated|Done)",
    ),
}


def intent_of(part: ToolPart) -> tuple[str, dict[str, Any]]:
    """Return the intent of a part, and the values for the templates of its tool call."""
    match part:
        case Run(run=body):
            permissions = "require_escalated" if body.escalate else None
            return "run", {
                "command": body.command,
                "tty": body.tty or None,
                "patience": round(body.background_after * 1000),
                "permissions": permissions,
                "reason": body.reason,
            }
        case Patch(patch=body):
            return "patch", {"patch": patch_text(body)}
        case UpdatePlan(update_plan=body):
            plan = [
                {"step": step.step, "status": re.sub(r"(?=[A-Z])", "_", step.status).lower()}
                for step in body.steps
            ]
            return "update_plan", {"explanation": body.explanation, "plan": plan}
        case McpCall(mcp_call=body):
            values = {"server": body.server, "tool": body.tool, "arguments": body.arguments}
            return "mcp_call", values
        case DynamicCall(dynamic_call=body):
            return "dynamic_call", {"tool": body.tool, "arguments": body.arguments}
        case ViewImage(view_image=body):
            return "view_image", {"path": body.path}


def choose_tool(
    rows: Sequence[ToolRow],
    offered_tools: Iterable[OfferedTool],
    intent: str,
    values: Mapping[str, Any],
) -> ChosenTool | None:
    """Return the call by the first row whose tool is offered, None if there is none."""
    tools_by_name = {(tool.namespace, tool.name): tool for tool in offered_tools}
    for row in (*rows, *BUILT_IN_ROWS):
        if row.intent != intent:
            continue
        tool = tools_by_name.get((str(_fill(row.namespace, values)), str(_fill(row.name, values))))
        if tool is not None:
            arguments = _fill(row.arguments, values)
            return ChosenTool(
                tool, arguments, TERMINAL if _lacks_terminal(tool, row, values) else ""
            )
    return None


def _lacks_terminal(tool: OfferedTool, row: ToolRow, values: Mapping[str, Any]) -> bool:
    """Return whether a command needs a terminal and this tool has no parameter for one."""
    if not values.get("tty"):
        return False
    template: Any = row.arguments
    members = cast("dict[str, Any]", template) if isinstance(template, dict) else {}
    terminal_members = [name for name, value in members.items() if value == "{tty}"]
    return not terminal_members or (
        tool.parameters is not None and tool.parameters.isdisjoint(terminal_members)
    )


def profile_lines(intent: str) -> str:
    """Return the lines to add to a profile so that an intent finds its tool."""
    member = f'NAME = "{{{VALUES_OF_INTENT[intent][0]}}}"'
    return f'[[tools]] intent = "{intent}", name = "NAME", arguments = {{ {member} }}'


VALUES_OF_INTENT: dict[str, tuple[str, ...]] = {
    "run": ("command", "tty", "patience", "permissions", "reason"),
    "patch": ("patch",),
    "update_plan": ("plan", "explanation"),
    "mcp_call": ("arguments", "server", "tool"),
    "dynamic_call": ("arguments", "tool"),
    "view_image": ("path",),
}
"""Values that templates of each intent may have in braces, the most important one first."""


def outcome_of(text: str, table: Mapping[str, Sequence[str]]) -> str:
    """Return the outcome that a tool's output shows, "" if no expression matches.

    `table` is the profile's; its expressions are tried first.
    """
    for patterns_by_outcome in (table, OUTCOME_PATTERNS):
        for outcome, patterns in patterns_by_outcome.items():
            if any(re.search(pattern, text, re.M) for pattern in patterns):
                return outcome
    return ""


def patch_text(body: PatchBody) -> str:
    """Return a patch in the syntax that models write."""
    if body.text is not None:
        return body.text
    lines = ["*** Begin Patch"]
    for path, content in body.add.items():
        lines += [f"*** Add File: {path}", *_prefix_lines("+", content)]
    for path in body.delete:
        lines.append(f"*** Delete File: {path}")
    for path, change in body.update.items():
        old, new = _prefix_lines("-", change.old), _prefix_lines("+", change.new)
        lines += [f"*** Update File: {path}", "@@", *old, *new]
    return "\n".join([*lines, "*** End Patch"])


def _prefix_lines(mark: str, content: str) -> list[str]:
    return [f"{mark}{line}" for line in content.splitlines()]


_PLACEHOLDER = re.compile(r"\{([a-z]+)\}")
_ABSENT = object()


def _fill(template: Any, values: Mapping[str, Any]) -> Any:
    filled = _fill_or_absent(template, values)
    return "" if filled is _ABSENT else filled


def _fill_or_absent(template: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(template, str):
        match = _PLACEHOLDER.fullmatch(template)
        if match and match[1] in values:
            value = values[match[1]]
            return _ABSENT if value is None else value
        return _PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), template)
    if isinstance(template, list):
        entries = cast("list[Any]", template)
        return [
            value
            for value in (_fill_or_absent(entry, values) for entry in entries)
            if value is not _ABSENT
        ]
    if isinstance(template, dict):
        members = cast("dict[str, Any]", template)
        filled = {key: _fill_or_absent(value, values) for key, value in members.items()}
        return {key: value for key, value in filled.items() if value is not _ABSENT}
    return template
