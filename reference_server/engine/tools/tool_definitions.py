"""Definitions of the server's own tools for the model: entries of `tools` in a model call.

They are separate from the tools themselves, which take long to import: a turn without tool calls
does not need those. The shapes follow the Responses API. To add a tool: its entry here, and its
class in `standard`.
"""

from typing import Any

from reference_server.config.model import Config

Fields = dict[str, Any]

EXEC_COMMAND = "exec_command"
APPLY_PATCH = "apply_patch"
UPDATE_PLAN = "update_plan"
VIEW_IMAGE = "view_image"
WEB_SEARCH = "web_search"
STEP_STATUS = ("pending", "in_progress", "completed")
"""The model's values of the status of a plan's step."""

_COMMAND: Fields = {
    "type": "function",
    "name": EXEC_COMMAND,
    "description": (
        "Runs a command line in bash and gives its output and exit code. Without tty its "
        "standard input is empty."
    ),
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {
            "cmd": {"type": "string", "description": "The command line."},
            "workdir": {
                "type": "string",
                "description": "Where to run it; the working directory unless given.",
            },
            "tty": {"type": "boolean", "description": "Run it in a terminal."},
            "timeout_ms": {
                "type": "number",
                "description": "After this many milliseconds it is ended.",
            },
            "sandbox_permissions": {
                "type": "string",
                "enum": ["use_default", "require_escalated"],
                "description": "require_escalated asks to run it outside the sandbox.",
            },
            "justification": {
                "type": "string",
                "description": "Why; shown to the user who is asked.",
            },
        },
        "required": ["cmd"],
        "additionalProperties": False,
    },
}
_PATCH: Fields = {
    "type": "custom",
    "name": APPLY_PATCH,
    "description": (
        "Changes files. The input is a patch: `*** Begin Patch`, then for each file "
        "`*** Add File: path` with + lines, `*** Delete File: path`, or "
        "`*** Update File: path` (and `*** Move to: path`) with `@@` hunks of context, "
        "- and + lines, then `*** End Patch`. All of it is made, or nothing."
    ),
}
_STEP: Fields = {
    "type": "object",
    "properties": {
        "step": {"type": "string"},
        "status": {"type": "string", "enum": list(STEP_STATUS)},
    },
    "required": ["step", "status"],
    "additionalProperties": False,
}
_PLAN: Fields = {
    "type": "function",
    "name": UPDATE_PLAN,
    "description": (
        "Shows the user the plan for a task of several steps. Call it when the plan is "
        "made and whenever a step begins or ends; always give the whole plan."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "explanation": {"type": "string"},
            "plan": {"type": "array", "items": _STEP},
        },
        "required": ["plan"],
        "additionalProperties": False,
    },
    "strict": False,
}
_IMAGE: Fields = {
    "type": "function",
    "name": VIEW_IMAGE,
    "description": "Shows you an image file (PNG, JPEG, GIF, WebP) of the local disk.",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    },
    "strict": False,
}
_WEB_SEARCH_TOOLS: dict[str, Fields] = {
    "live": {"type": WEB_SEARCH},
    "cached": {"type": WEB_SEARCH, "external_web_access": False},
}
"""Entry by the setting `web_search`; the provider itself carries out the searches."""


def offers(config: Config) -> list[Fields]:
    """Return the entries of the server's own tools for `tools` of a model call."""
    hosted = [_WEB_SEARCH_TOOLS[mode]] if (mode := config.web_search) in _WEB_SEARCH_TOOLS else []
    return [_COMMAND, _PATCH, _PLAN, _IMAGE, *hosted]
