"""Chooses the server's tool for an intent, and reads the outcome from a tool's output."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from harness.model.asks import (
    DynamicCall,
    McpCall,
    Patch,
    PatchBody,
    Run,
    ToolPart,
    UpdatePlan,
    ViewImage,
)

# The capability that a server without a tool for the intent lacks.
CAPABILITIES = {
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
class Offered:
    """A tool that a call offers: its name, its namespace, whether it takes free text.

    `members` are the listed parameters, None where none are listed.
    """

    name: str
    namespace: str = ""
    free: bool = False
    members: frozenset[str] | None = None

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class ToolRow:
    """The tool call for an intent. Names and templates may use `{value}` placeholders.

    `arguments` is a mapping, or one placeholder for a whole value; members whose placeholder has
    no value are left out. A free-text tool gets the member `input` alone.
    """

    intent: str
    name: str
    namespace: str = ""
    arguments: Any = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Chosen:
    """A tool call to make; `lacks` is a capability that the call would need and is missing."""

    tool: Offered
    arguments: Any
    lacks: str = ""


_ESCALATION = {"sandbox_permissions": "{permissions}", "justification": "{reason}"}
BUILT_IN = (
    ToolRow(
        "run",
        "exec_command",
        "",
        {"cmd": "{command}", "yield_time_ms": 10000, "tty": "{tty}", **_ESCALATION},
    ),
    ToolRow("run", "shell_command", "", {"command": "{command}", **_ESCALATION}),
    ToolRow("run", "shell", "", {"command": ["bash", "-lc", "{command}"], **_ESCALATION}),
    ToolRow("patch", "apply_patch", "", {"input": "{patch}"}),
    ToolRow("update_plan", "update_plan", "", {"explanation": "{explanation}", "plan": "{plan}"}),
    ToolRow("view_image", "view_image", "", {"path": "{path}"}),
    ToolRow("mcp_call", "mcp__{server}__{tool}", "", "{arguments}"),
    ToolRow("mcp_call", "{tool}", "mcp__{server}", "{arguments}"),
    ToolRow("dynamic_call", "{tool}", "", "{arguments}"),
)

# Regular expressions by which an output shows the outcome of its call, tried in this order.
OUTCOMES: dict[str, tuple[str, ...]] = {
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
    """The intent of a part and the values for its templates."""
    match part:
        case Run(run=body):
            permissions = "require_escalated" if body.escalate else None
            return "run", {
                "command": body.command,
                "tty": body.tty or None,
                "permissions": permissions,
                "reason": body.reason,
            }
        case Patch(patch=body):
            return "patch", {"patch": patch_text(body)}
        case UpdatePlan(update_plan=body):
            plan = [
                {"step": one.step, "status": re.sub(r"(?=[A-Z])", "_", one.status).lower()}
                for one in body.steps
            ]
            return "update_plan", {"explanation": body.explanation, "plan": plan}
        case McpCall(mcp_call=body):
            values = {"server": body.server, "tool": body.tool, "arguments": body.arguments}
            return "mcp_call", values
        case DynamicCall(dynamic_call=body):
            return "dynamic_call", {"tool": body.tool, "arguments": body.arguments}
        case ViewImage(view_image=body):
            return "view_image", {"path": body.path}


def choose(
    rows: Sequence[ToolRow], offered: Iterable[Offered], intent: str, values: Mapping[str, Any]
) -> Chosen | None:
    """The call by the first row whose tool is offered; None where there is none."""
    there = {(tool.namespace, tool.name): tool for tool in offered}
    for row in (*rows, *BUILT_IN):
        if row.intent != intent:
            continue
        tool = there.get((str(_filled(row.namespace, values)), str(_filled(row.name, values))))
        if tool is not None:
            arguments = _filled(row.arguments, values)
            return Chosen(tool, arguments, TERMINAL if _no_terminal(tool, row, values) else "")
    return None


def _no_terminal(tool: Offered, row: ToolRow, values: Mapping[str, Any]) -> bool:
    """Return whether a command wants a terminal and this tool has no parameter for one."""
    if not values.get("tty"):
        return False
    template: Any = row.arguments
    members = cast("dict[str, Any]", template) if isinstance(template, dict) else {}
    asked = [name for name, value in members.items() if value == "{tty}"]
    return not asked or (tool.members is not None and tool.members.isdisjoint(asked))


def lines_to_add(intent: str) -> str:
    """The lines to add to a profile so that an intent finds its tool."""
    member = f'NAME = "{{{VALUES[intent][0]}}}"'
    return f'[[tools]] intent = "{intent}", name = "NAME", arguments = {{ {member} }}'


VALUES: dict[str, tuple[str, ...]] = {
    "run": ("command", "tty", "permissions", "reason"),
    "patch": ("patch",),
    "update_plan": ("plan", "explanation"),
    "mcp_call": ("arguments", "server", "tool"),
    "dynamic_call": ("arguments", "tool"),
    "view_image": ("path",),
}
"""What the templates of each intent may hold in braces, the value that matters most first."""


def outcome_of(text: str, table: Mapping[str, Sequence[str]]) -> str:
    """The outcome of a call by its output, "" where none of the expressions matches.

    `table` is the profile's; its expressions are tried first.
    """
    for one in (table, OUTCOMES):
        for outcome, patterns in one.items():
            if any(re.search(pattern, text, re.M) for pattern in patterns):
                return outcome
    return ""


def patch_text(body: PatchBody) -> str:
    """A patch in the form in which models write it."""
    if body.text is not None:
        return body.text
    lines = ["*** Begin Patch"]
    for path, content in body.add.items():
        lines += [f"*** Add File: {path}", *_marked("+", content)]
    for path in body.delete:
        lines.append(f"*** Delete File: {path}")
    for path, change in body.update.items():
        old, new = _marked("-", change.old), _marked("+", change.new)
        lines += [f"*** Update File: {path}", "@@", *old, *new]
    return "\n".join([*lines, "*** End Patch"])


def _marked(mark: str, content: str) -> list[str]:
    return [f"{mark}{line}" for line in content.splitlines()]


_PLACEHOLDER = re.compile(r"\{([a-z]+)\}")
_ABSENT = object()


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    filled = _replaced(template, values)
    return "" if filled is _ABSENT else filled


def _replaced(template: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(template, str):
        whole = _PLACEHOLDER.fullmatch(template)
        if whole and whole[1] in values:
            value = values[whole[1]]
            return _ABSENT if value is None else value
        return _PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), template)
    if isinstance(template, list):
        entries = cast("list[Any]", template)
        return [
            one for one in (_replaced(entry, values) for entry in entries) if one is not _ABSENT
        ]
    if isinstance(template, dict):
        members = cast("dict[str, Any]", template)
        filled = {key: _replaced(value, values) for key, value in members.items()}
        return {key: value for key, value in filled.items() if value is not _ABSENT}
    return template
