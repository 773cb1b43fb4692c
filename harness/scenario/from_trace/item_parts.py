"""Reply parts that the model must have sent for the items of a trace.

Notes say which data an item lacks.
"""

import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.protocol.values import arr, dig, obj, text
from harness.scenario.from_trace.story import PLAN, Product, Story, approval_request_of, texts_of

_SHELLS: Final = ("sh", "bash", "zsh", "dash", "ash")
# An image of two pixels, in place of one that is not in the trace.
_TINY_IMAGE_BASE64: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEklEQVR4nGP4z8DAAMIM/4EAAB/uBfsL2WiLAAAAAElF"
    "TkSuQmCC"
)
_UNKNOWN_LINE: Final = "not in the trace\n"
Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Change:
    """Change of a file: old and new lines of each hunk; `new_path` is "" if it was not moved."""

    path: str
    kind: str
    diff: str
    hunks: list[tuple[str, str]]
    new_path: str


@dataclass(slots=True)
class Conversion:
    """Results of converting a trace: required files, servers, capabilities and notes.

    `files` are there at first, `result_files` at the end; `asks_on_request` is whether the approval
    policy is on-request.
    """

    story: Story
    add_note: Note
    asks_on_request: bool = False
    files: dict[str, Any] = field(default_factory=dict[str, Any])
    result_files: dict[str, str] = field(default_factory=dict[str, str])
    servers: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    needs: dict[str, None] = field(default_factory=dict[str, None])

    def relative(self, value: str) -> str:
        """Return a text with paths relative to the recorded working folder."""
        for cwd in self.story.cwds:
            value = value.replace(f"{cwd}/", "").replace(cwd, ".")
        return value

    def part_of_product(self, product: Product) -> dict[str, Any] | None:
        """Return the reply part that makes an item; None, with a note, if no part is known."""
        value = product.value
        match product.type:
            case "commandExecution":
                return self._run_part(product)
            case "fileChange":
                return self._patch_part(value)
            case "mcpToolCall":
                return self._mcp_part(value)
            case "dynamicToolCall":
                self.needs["dynamic-tools"] = None
                arguments = dict(obj(value.get("arguments")))
                return {"dynamic_call": {"tool": text(value.get("tool")), "arguments": arguments}}
            case "imageView":
                return self.part_of_image(text(value.get("path")))
            case "webSearch":
                return self._search_part(value)
            case kind if kind == PLAN:
                return self._plan_part(value)
            case "exitedReviewMode":
                self.needs["review"] = None
                if not self.story.has_model:
                    self.add_note(
                        "how many model calls a review makes, and their answers, are not in the "
                        "trace; here each is one call that gives its text"
                    )
                return {"review": {"explanation": text(value.get("review")) or "Reviewed."}}
            case kind:
                self.add_note(
                    f"an item of the type {kind}: no part of a reply is known to make one"
                )
                return None

    def _run_part(self, product: Product) -> dict[str, Any]:
        self.needs["command-execution"] = None
        command = self.relative(command_in_shell(product.value.get("command")))
        question = approval_request_of(self.story, product)
        if question is not None:
            self.needs["command-approval"] = None
            if self.asks_on_request:
                reason = text(dig(question.params, "reason"))
                reason_member = {"reason": reason} if reason else {}
                return {"run": {"command": command, "escalate": True, **reason_member}}
        output = text(product.value.get("aggregatedOutput"))
        self._add_file_that_was_read(command, output, product.value.get("exitCode"))
        return {"run": command}

    def _add_file_that_was_read(self, command: str, output: str, status: Any) -> None:
        """Require the file that `cat NAME` printed, with the output as its content."""
        try:
            words = shlex.split(command)
        except ValueError:
            return
        match words:
            case ["cat", name] if status == 0 and _is_inside(name):
                if name not in self.result_files:
                    self.files.setdefault(name, output)
            case _:
                pass

    def _patch_part(self, value: Any) -> dict[str, Any]:
        self.needs["file-change"] = None
        if not self.story.has_file_contents:
            return self._patch_without_contents(value)
        body: dict[str, Any] = {}
        changes = [self._read_change(change) for change in map(obj, arr(value.get("changes")))]
        for change in changes:
            match change.kind:
                case "add":
                    body.setdefault("add", {})[change.path] = change.diff
                    self._set_result_file(value, change.path, change.diff)
                case "delete":
                    body.setdefault("delete", []).append(change.path)
                    self._require_file(change.path, change.diff)
                    self._set_result_file(value, change.path, "absent")
                case _:
                    self._add_update(body, value, change)
        if any(change.new_path or len(change.hunks) > 1 for change in changes):
            return {"patch": {"text": patch_text(changes)}}
        if not body:
            self.add_note("a patch whose changes the trace does not tell; it adds a file instead")
            body = {"add": {"unknown.txt": "?\n"}}
        return {"patch": body}

    def _patch_without_contents(self, value: Any) -> dict[str, Any]:
        """Return a patch with invented contents, for events that only name the files."""
        self.add_note(
            "what was written into files is not in the events; here it is a line of its own"
        )
        body: dict[str, Any] = {}
        for change in map(obj, arr(value.get("changes"))):
            path, kind = self.relative(text(change.get("path"))), text(change.get("kind"))
            if kind == "add":
                body.setdefault("add", {})[path] = _UNKNOWN_LINE
                continue
            if path not in self.result_files:
                self.files.setdefault(path, _UNKNOWN_LINE)
            if kind == "delete":
                body.setdefault("delete", []).append(path)
            else:
                body.setdefault("update", {})[path] = {
                    "old": _UNKNOWN_LINE,
                    "new": f"still {_UNKNOWN_LINE}",
                }
        return {"patch": body or {"add": {"unknown.txt": _UNKNOWN_LINE}}}

    def _read_change(self, change: Mapping[str, Any]) -> Change:
        kind = change.get("kind")
        kind_word, diff = text(obj(kind).get("type")) or text(kind), text(change.get("diff"))
        moved = text(obj(kind).get("movePath")) or text(obj(kind).get("move_path"))
        places = [] if kind_word in ("add", "delete") else hunks_of(diff)
        return Change(
            self.relative(text(change.get("path"))), kind_word, diff, places, self.relative(moved)
        )

    def _add_update(self, body: dict[str, Any], value: Any, change: Change) -> None:
        path = change.path
        if not change.hunks and not change.new_path:
            self.add_note(f"the change of {path} is not in the trace")
            return
        old, new = ("".join(position[side] for position in change.hunks) for side in (0, 1))
        body.setdefault("update", {})[path] = {"old": old, "new": new}
        content = self.result_files.get(path, "")
        if path not in self.result_files and isinstance(self.files.get(path), dict):
            # The bytes of a link's target, or bytes that are not text, cannot be inferred here.
            return
        if not content or any(lines not in content for lines, _ in change.hunks):
            initial = text(self.files.get(path))
            if any(lines not in initial for lines, _ in change.hunks):
                self._require_file(path, old)
            content = text(self.files.get(path))
        for before, after in change.hunks:
            content = content.replace(before, after, 1)
        self._set_result_file(value, change.new_path or path, content)
        if change.new_path:
            self._set_result_file(value, path, "absent")

    def _require_file(self, path: str, content: str) -> None:
        """Require content in a workspace file; of a changed file only some lines are known."""
        if path in self.result_files:
            return
        initial = self.files.get(path)
        if initial is None or (isinstance(initial, str) and content not in initial):
            self.files[path] = (initial or "") + content

    def _set_result_file(self, value: Any, path: str, content: str) -> None:
        if value.get("status") == "completed":
            self.result_files[path] = content

    def _mcp_part(self, value: Any) -> dict[str, Any]:
        self.needs["mcp-tools"] = None
        server, tool = text(value.get("server")), text(value.get("tool"))
        output = "\n".join(filter(None, texts_of(dig(value, "result", "content"))))
        has_failed = value.get("status") == "failed"
        if has_failed:
            output = output or text(dig(value, "error", "message"))
        result: Any = {"says": output, "fails": True} if has_failed else output
        structured = dig(value, "result", "structuredContent")
        if obj(structured) and not has_failed:
            result = {"says": output, "structured": dict(obj(structured))}
        tools = self.servers.setdefault(server, {"tools": {}})["tools"]
        if tools.setdefault(tool, result) != result:
            self.add_note(
                f"the MCP tool {server}.{tool} gave several results; here it gives the first"
            )
        arguments = value.get("arguments")
        arguments_member = {"arguments": dict(obj(arguments))} if obj(arguments) else {}
        return {"mcp_call": {"server": server, "tool": tool, **arguments_member}}

    def part_of_image(self, path: str) -> dict[str, Any]:
        """Return the part that views an image file, and require the file."""
        self.needs["image-view"] = None
        self.require_image(path)
        return {"view_image": {"path": self.relative(path)}}

    def require_image(self, recorded_path: str) -> None:
        """Require an image file in the workspace; a tiny one stands for it, with a note."""
        path = self.relative(recorded_path)
        if _is_inside(path) and path not in self.files:
            self.files[path] = {"base64": _TINY_IMAGE_BASE64}
            self.add_note(
                f"what was in the image {path} is not in the trace; here it has two pixels"
            )

    def require_folder(self, name: str) -> None:
        """Require a folder in the workspace; ignored outside of it."""
        path = self.relative(name)
        if _is_inside(path):
            self.files.setdefault(f"{path}/.keep", "")

    def _search_part(self, value: Any) -> dict[str, Any]:
        self.needs["web-search"] = None
        action = obj(value.get("action"))
        url, pattern = text(action.get("url")), text(action.get("pattern"))
        if url:
            return {"web_search": {"url": url, **({"pattern": pattern} if pattern else {})}}
        return {"web_search": {"query": text(value.get("query")) or text(action.get("query"))}}

    def _plan_part(self, value: Any) -> dict[str, Any]:
        self.needs["plan-update"] = None
        steps = [
            {"step": text(obj(entry).get("step")), "status": text(obj(entry).get("status"))}
            for entry in arr(value.get("plan"))
        ]
        explanation = text(value.get("explanation"))
        return {
            "update_plan": {"steps": steps, **({"explanation": explanation} if explanation else {})}
        }


def command_in_shell(command: Any) -> str:
    """Return the command inside `bash -lc '…'`; any other command as one text."""
    if isinstance(command, str):
        try:
            words = shlex.split(command)
        except ValueError:
            return command
        plain = command
    else:
        words = [text(word) for word in arr(command)]
        plain = shlex.join(words)
    in_shell = (
        len(words) == 3 and os.path.basename(words[0]) in _SHELLS and words[1] in ("-c", "-lc")
    )
    return words[2] if in_shell else plain


def hunks_of(diff: str) -> list[tuple[str, str]]:
    """Return the old and new lines of each hunk of a unified diff."""
    hunks: list[tuple[list[str], list[str]]] = []
    sides: list[list[str]] = []
    # Some servers append the new path of a moved file to the diff.
    # Only "\n" ends a line of a diff: a "\r" before it belongs to the file.
    for line in _lines_of(diff.partition("\n\nMoved to: ")[0]):
        if line.startswith("@@"):
            hunks.append(([], []))
            continue
        if not hunks and line.startswith(("--- ", "+++ ", "diff ", "index ")):
            continue
        if not hunks:
            hunks.append(([], []))
        old, new = hunks[-1]
        if line.startswith("\\"):
            # "No newline at end of file" is about the line before it.
            for side in sides:
                side[-1] = side[-1].removesuffix("\n")
            sides = []
            continue
        sides = [] if line.startswith("+") else [old]
        sides += [] if line.startswith("-") else [new]
        for side in sides:
            side.append(f"{line[1:]}\n")
    return [("".join(old), "".join(new)) for old, new in hunks if old or new]


def patch_text(changes: Iterable[Change]) -> str:
    """Return changes in patch syntax, for moves and several hunks in one file."""
    lines = ["*** Begin Patch"]
    for change in changes:
        name = {"add": "Add", "delete": "Delete"}.get(change.kind, "Update")
        lines.append(f"*** {name} File: {change.path}")
        if change.kind == "add":
            lines += [f"+{line}" for line in change.diff.splitlines()]
        if change.new_path:
            lines.append(f"*** Move to: {change.new_path}")
        for old, new in change.hunks:
            lines.append("@@")
            lines += [f"-{line}" for line in old.splitlines()]
            lines += [f"+{line}" for line in new.splitlines()]
    return "\n".join([*lines, "*** End Patch", ""])


def _lines_of(content: str) -> list[str]:
    lines = content.split("\n")
    return lines if lines[-1] else lines[:-1]


def _is_inside(path: str) -> bool:
    return bool(path) and not path.startswith(("/", "-", "~")) and ".." not in path.split("/")
