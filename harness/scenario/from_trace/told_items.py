"""The words that the model must have said for an item: the item as a part of a reply.

What an item does not tell is noted.
"""

import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.protocol.values import arr, dig, obj, text
from harness.scenario.from_trace.story import PLAN, Made, Story, approved, texts_of

_SHELLS: Final = ("sh", "bash", "zsh", "dash", "ash")
# An image of two pixels, for a file that was looked at and is not in the trace.
_IMAGE: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEklEQVR4nGP4z8DAAMIM/4EAAB/uBfsL2WiLAAAAAElF"
    "TkSuQmCC"
)
_LINE: Final = "not in the trace\n"
Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a file: old and new lines of each of its `places`, and where it was `moved`."""

    path: str
    kind: str
    diff: str
    places: list[tuple[str, str]]
    moved: str


@dataclass(slots=True)
class Workshop:
    """Products of a trace's items: parts, files that must be there, and notes."""

    story: Story
    note: Note
    on_request: bool = False
    files: dict[str, Any] = field(default_factory=dict[str, Any])
    made_files: dict[str, str] = field(default_factory=dict[str, str])
    servers: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    needs: dict[str, None] = field(default_factory=dict[str, None])

    def local(self, value: str) -> str:
        """A text without the recorded working folder: what is in it is named from there."""
        for cwd in self.story.cwds:
            value = value.replace(f"{cwd}/", "").replace(cwd, ".")
        return value

    def part(self, made: Made) -> dict[str, Any] | None:
        """The part of a reply that an item comes from, None where there is none."""
        value = made.value
        match made.type:
            case "commandExecution":
                return self._run(made)
            case "fileChange":
                return self._patch(value)
            case "mcpToolCall":
                return self._mcp(value)
            case "dynamicToolCall":
                self.needs["dynamic-tools"] = None
                given = dict(obj(value.get("arguments")))
                return {"dynamic_call": {"tool": text(value.get("tool")), "arguments": given}}
            case "imageView":
                return self.part_of_image(text(value.get("path")))
            case "webSearch":
                return self._search(value)
            case kind if kind == PLAN:
                return self._plan(value)
            case "exitedReviewMode":
                self.needs["review"] = None
                return {"review": {"explanation": text(value.get("review")) or "Reviewed."}}
            case kind:
                self.note(f"an item of the type {kind}: no part of a reply is known to make one")
                return None

    def _run(self, made: Made) -> dict[str, Any]:
        self.needs["command-execution"] = None
        command = self.local(unwrapped(made.value.get("command")))
        question = approved(self.story, made)
        if question is not None:
            self.needs["command-approval"] = None
            if self.on_request:
                reason = text(dig(question.params, "reason"))
                more = {"reason": reason} if reason else {}
                return {"run": {"command": command, "escalate": True, **more}}
        output = text(made.value.get("aggregatedOutput"))
        self._file_that_was_read(command, output, made.value.get("exitCode"))
        return {"run": command}

    def _file_that_was_read(self, command: str, output: str, status: Any) -> None:
        """`cat NAME` prints a file whole: the trace shows what is in it."""
        try:
            words = shlex.split(command)
        except ValueError:
            return
        match words:
            case ["cat", name] if status == 0 and _inside(name):
                if name not in self.made_files:
                    self.files.setdefault(name, output)
            case _:
                pass

    def _patch(self, value: Any) -> dict[str, Any]:
        self.needs["file-change"] = None
        if not self.story.tells_files:
            return self._untold(value)
        body: dict[str, Any] = {}
        changes = [self._change(one) for one in map(obj, arr(value.get("changes")))]
        for one in changes:
            match one.kind:
                case "add":
                    body.setdefault("add", {})[one.path] = one.diff
                    self._after(value, one.path, one.diff)
                case "delete":
                    body.setdefault("delete", []).append(one.path)
                    self._before(one.path, one.diff)
                    self._after(value, one.path, "absent")
                case _:
                    self._update(body, value, one)
        if any(one.moved or len(one.places) > 1 for one in changes):
            return {"patch": {"text": patch_text(changes)}}
        if not body:
            self.note("a patch whose changes the trace does not tell; it adds a file instead")
            body = {"add": {"unknown.txt": "?\n"}}
        return {"patch": body}

    def _untold(self, value: Any) -> dict[str, Any]:
        """A patch of which only the files are told."""
        self.note("what was written into files is not in the events; here it is a line of its own")
        body: dict[str, Any] = {}
        for change in map(obj, arr(value.get("changes"))):
            path, kind = self.local(text(change.get("path"))), text(change.get("kind"))
            if kind == "add":
                body.setdefault("add", {})[path] = _LINE
                continue
            if path not in self.made_files:
                self.files.setdefault(path, _LINE)
            if kind == "delete":
                body.setdefault("delete", []).append(path)
            else:
                body.setdefault("update", {})[path] = {"old": _LINE, "new": f"still {_LINE}"}
        return {"patch": body or {"add": {"unknown.txt": _LINE}}}

    def _change(self, told: Mapping[str, Any]) -> Change:
        kind = told.get("kind")
        word, diff = text(obj(kind).get("type")) or text(kind), text(told.get("diff"))
        moved = text(obj(kind).get("movePath")) or text(obj(kind).get("move_path"))
        places = [] if word in ("add", "delete") else places_of(diff)
        return Change(self.local(text(told.get("path"))), word, diff, places, self.local(moved))

    def _update(self, body: dict[str, Any], value: Any, change: Change) -> None:
        path = change.path
        if not change.places and not change.moved:
            self.note(f"the change of {path} is not in the trace")
            return
        old, new = ("".join(one[side] for one in change.places) for side in (0, 1))
        body.setdefault("update", {})[path] = {"old": old, "new": new}
        known = self.made_files.get(path, "")
        if not known or any(one not in known for one, _ in change.places):
            there = text(self.files.get(path))
            if any(one not in there for one, _ in change.places):
                self._before(path, old)
            known = text(self.files.get(path))
        for before, after in change.places:
            known = known.replace(before, after, 1)
        self._after(value, change.moved or path, known)
        if change.moved:
            self._after(value, path, "absent")

    def _before(self, path: str, content: str) -> None:
        """A file that must be there; of a file that was changed its changed lines are known."""
        if path in self.made_files:
            return
        there = self.files.get(path)
        if there is None or (isinstance(there, str) and content not in there):
            self.files[path] = (there or "") + content

    def _after(self, value: Any, path: str, content: str) -> None:
        if value.get("status") == "completed":
            self.made_files[path] = content

    def _mcp(self, value: Any) -> dict[str, Any]:
        self.needs["mcp-tools"] = None
        server, tool = text(value.get("server")), text(value.get("tool"))
        says = "\n".join(filter(None, texts_of(dig(value, "result", "content"))))
        fails = value.get("status") == "failed"
        if fails:
            says = says or text(dig(value, "error", "message"))
        made: Any = {"says": says, "fails": True} if fails else says
        structured = dig(value, "result", "structuredContent")
        if obj(structured) and not fails:
            made = {"says": says, "structured": dict(obj(structured))}
        tools = self.servers.setdefault(server, {"tools": {}})["tools"]
        if tools.setdefault(tool, made) != made:
            self.note(f"the MCP tool {server}.{tool} gave several results; here it gives the first")
        arguments = value.get("arguments")
        given = {"arguments": dict(obj(arguments))} if obj(arguments) else {}
        return {"mcp_call": {"server": server, "tool": tool, **given}}

    def part_of_image(self, shown: str) -> dict[str, Any]:
        """The model looked at an image file."""
        self.needs["image-view"] = None
        self.image(shown)
        return {"view_image": {"path": self.local(shown)}}

    def image(self, shown: str) -> None:
        """An image that must be there."""
        path = self.local(shown)
        if _inside(path) and path not in self.files:
            self.files[path] = {"base64": _IMAGE}
            self.note(f"what was in the image {path} is not in the trace; here it has two pixels")

    def folder(self, name: str) -> None:
        """A folder that must be there."""
        path = self.local(name)
        if _inside(path):
            self.files.setdefault(f"{path}/.keep", "")

    def _search(self, value: Any) -> dict[str, Any]:
        self.needs["web-search"] = None
        action = obj(value.get("action"))
        url, pattern = text(action.get("url")), text(action.get("pattern"))
        if url:
            return {"web_search": {"url": url, **({"pattern": pattern} if pattern else {})}}
        return {"web_search": {"query": text(value.get("query")) or text(action.get("query"))}}

    def _plan(self, value: Any) -> dict[str, Any]:
        self.needs["plan-update"] = None
        steps = [
            {"step": text(obj(one).get("step")), "status": text(obj(one).get("status"))}
            for one in arr(value.get("plan"))
        ]
        why = text(value.get("explanation"))
        return {"update_plan": {"steps": steps, **({"explanation": why} if why else {})}}


def unwrapped(command: Any) -> str:
    """Return the command within `bash -lc '…'`, as a text or as words."""
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


def places_of(diff: str) -> list[tuple[str, str]]:
    """The old and the new lines of each place of a unified diff."""
    found: list[tuple[list[str], list[str]]] = []
    # Some servers say behind the diff where the file went.
    for line in diff.partition("\n\nMoved to: ")[0].splitlines():
        if line.startswith("@@"):
            found.append(([], []))
            continue
        if not found and line.startswith(("--- ", "+++ ", "diff ", "index ")):
            continue
        if line.startswith("\\"):
            continue
        if not found:
            found.append(([], []))
        old, new = found[-1]
        if not line.startswith("+"):
            old.append(line[1:])
        if not line.startswith("-"):
            new.append(line[1:])
    return [(_lines(old), _lines(new)) for old, new in found if old or new]


def patch_text(changes: Iterable[Change]) -> str:
    """Changes as the text of a patch, for what `add`, `update` and `delete` cannot say."""
    lines = ["*** Begin Patch"]
    for one in changes:
        name = {"add": "Add", "delete": "Delete"}.get(one.kind, "Update")
        lines.append(f"*** {name} File: {one.path}")
        if one.kind == "add":
            lines += [f"+{line}" for line in one.diff.splitlines()]
        if one.moved:
            lines.append(f"*** Move to: {one.moved}")
        for old, new in one.places:
            lines.append("@@")
            lines += [f"-{line}" for line in old.splitlines()]
            lines += [f"+{line}" for line in new.splitlines()]
    return "\n".join([*lines, "*** End Patch", ""])


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _inside(path: str) -> bool:
    return bool(path) and not path.startswith(("/", "-", "~")) and ".." not in path.split("/")
