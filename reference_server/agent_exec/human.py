"""Output for people: progress on standard error, the final message on standard output.

Output of the model or a command may hold control characters, which are escaped. This module imports
Rich, so it is imported only for this output.
"""

import io
import os
import shutil
from typing import Any

from rich.console import Console
from rich.text import Text

from reference_server.agent_exec.output import Stream, failure_of
from reference_server.terminal_escapes import escape_controls

Fields = dict[str, Any]

OUTPUT_LINES_SHOWN = 10
"""Maximum lines shown of a command's output, its last ones."""
MAX_LINE_CHARACTERS = 1000
"""Maximum characters of a shown line of output."""
_MARKS = {"add": "A", "delete": "D", "update": "M"}
_ENDS = {"completed": "green", "failed": "red", "declined": "yellow"}


def colors_wanted(when: str) -> bool:
    """Return whether standard error gets colors; `when` is the value of --color."""
    if when == "auto":
        dumb = os.environ.get("TERM") in ("dumb", "unknown") or "NO_COLOR" in os.environ
        return os.isatty(2) and not dumb
    return when == "always"


class Human:
    """Sink for people. `terminal`: standard output is one, so the final message is escaped."""

    def __init__(
        self, output: Stream, errors: Stream, folder: str, *, colors: bool, terminal: bool
    ) -> None:
        self._output = output
        self._errors = errors
        self._folder = folder
        self._terminal = terminal
        self._message = ""
        self._completed = False
        self._text = io.StringIO()
        self._console = Console(
            file=self._text,
            force_terminal=colors,
            color_system="standard" if colors else None,
            width=shutil.get_terminal_size().columns,
            soft_wrap=True,
            highlight=False,
            markup=False,
            emoji=False,
        )

    async def tell(self, events: list[Fields]) -> None:
        """Show events. Raises PeerGone."""
        for event in events:
            self._show(event)
        text = self._text.getvalue()
        self._text.seek(0)
        self._text.truncate()
        if text:
            await self._errors.write(text.encode("utf-8", "backslashreplace"))

    async def finish(self) -> None:
        """Write the final message if the turn completed. Raises PeerGone."""
        if self._completed and self._message:
            message = escape_controls(self._message) if self._terminal else self._message
            end = "" if message.endswith("\n") else "\n"
            await self._output.write((message + end).encode("utf-8", "backslashreplace"))

    def _print(self, text: str, style: str = "") -> None:
        self._console.print(Text(escape_controls(text), style=style), soft_wrap=True)

    def _show(self, event: Fields) -> None:
        match event["type"]:
            case "thread.started":
                self._print(f"thread {event['thread_id']} in {self._folder}", "dim")
            case "item.started" | "item.updated" | "item.completed":
                self._show_item(event["type"], event["item"])
            case "turn.completed":
                self._completed = True
                counts = ", ".join(
                    f"{number:,} {name}" for name, number in _token_counts(event["usage"])
                )
                self._print(f"tokens: {counts}", "dim")
            case "error":
                self._say_commentary()
                self._print(failure_of(event), "red")
            case _:
                pass

    def _say_commentary(self) -> None:
        """Show the previous message, which was not the final one."""
        if self._message:
            self._print(self._message)
            self._message = ""

    def _show_item(self, kind: str, item: Fields) -> None:
        completed = kind == "item.completed"
        if item["type"] == "todo_list" and completed:
            # It comes at the end of the turn, without changes.
            return
        self._say_commentary()
        match item["type"]:
            case "agent_message":
                self._message = item["text"]
            case "reasoning":
                self._print(item["text"], "dim italic")
            case "command_execution":
                self._show_command(item) if completed else self._print(
                    f"$ {item['command']}", "bold"
                )
            case "file_change" if completed:
                for change in item["changes"]:
                    mark = _MARKS.get(change["kind"], "?")
                    self._print(f"{mark} {change['path']}", _ENDS.get(item["status"], ""))
                if item["status"] != "completed":
                    self._print(f"changes of files: {item['status']}", _ENDS[item["status"]])
            case "mcp_tool_call" if completed:
                words = f"{item['server']}.{item['tool']}: {item['status']}"
                reason = f": {item['error']['message']}" if item["error"] else ""
                self._print(words + reason, _ENDS.get(item["status"], ""))
            case "web_search" if completed:
                self._print(f"searched the web: {item['query']}")
            case "todo_list":
                for step in item["items"]:
                    self._print(f"[{'x' if step['completed'] else ' '}] {step['text']}")
            case "error":
                self._print(f"warning: {item['message']}", "yellow")
            case _:
                pass

    def _show_command(self, item: Fields) -> None:
        lines = item["aggregated_output"].splitlines()
        if len(lines) > OUTPUT_LINES_SHOWN:
            self._print(f"[{len(lines) - OUTPUT_LINES_SHOWN} lines before]", "dim")
        for line in lines[-OUTPUT_LINES_SHOWN:]:
            self._print(line[:MAX_LINE_CHARACTERS], "dim")
        if item["status"] == "declined":
            self._print(
                "declined: the approval policy asks, and nobody can be asked here; "
                "docs/exec.md says more",
                "yellow",
            )
        elif item["status"] != "completed":
            self._print(f"exit code {item['exit_code']}", "red")


def _token_counts(usage: Fields) -> list[tuple[str, int]]:
    return [
        ("in", usage["input_tokens"]),
        ("of them cached", usage["cached_input_tokens"]),
        ("out", usage["output_tokens"]),
    ]
