"""Rollouts written by tests, with the expected content of thread/list."""

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

BEGUN = 1_760_000_000.0


@dataclass
class Stored:
    """The expected fields of one stored thread."""

    id: str
    path: Path
    created: float
    updated: float
    provider: str = "mock"
    cwd: str = "/work"
    source: str = "vscode"
    preview: str = ""
    name: str | None = None

    @property
    def archived(self) -> bool:
        return "archived_sessions" in self.path.parts

    def settings(self) -> dict[str, Any]:
        return {
            "model": "m",
            "modelProvider": self.provider,
            "cwd": self.cwd,
            "approvalPolicy": "never",
            "sandbox": {"type": "dangerFullAccess"},
        }


@dataclass
class StoredHome:
    """A home whose rollouts are written record by record; `threads` has the expected fields."""

    root: Path
    threads: dict[str, Stored] = field(default_factory=dict)
    now: float = BEGUN

    def add(self, number: int, *, day: str = "2025/01/02", **fields: Any) -> Stored:
        self.now += 1
        name = f"rollout-{datetime.fromtimestamp(self.now, UTC):%Y-%m-%dT%H-%M-%S}"
        path = self.root / "sessions" / day / f"{name}-thr_{number}.jsonl"
        thread = Stored(f"thr_{number}", path, self.now, self.now, **fields)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.threads[thread.id] = thread
        first = {"version": 1, "id": thread.id, "source": thread.source}
        self.write(thread, "thread", **first, settings=thread.settings())
        if thread.preview:
            self.say(thread, thread.preview)
        return thread

    def write(self, thread: Stored, kind: str, **fields: Any) -> None:
        """Append a record with the next timestamp."""
        self.now += 1
        at = thread.created if kind == "thread" else self.now
        thread.updated = max(thread.updated, at)
        line = json.dumps({"type": kind, "at": at, **fields}, separators=(",", ":"))
        with thread.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def say(self, thread: Stored, text: str) -> None:
        content = [{"type": "text", "text": text}]
        item = {"type": "userMessage", "id": "item_1", "content": content}
        self.write(thread, "item", turnId="turn_1", item=item)
        thread.preview = thread.preview or text

    def answer(self, thread: Stored) -> None:
        """Append a turn-completed record, which changes only the thread's update time."""
        end = {"turnId": "turn_1", "status": "completed", "error": None}
        self.write(thread, "turn-completed", **end)

    def begin_turn(self, thread: Stored, **overrides: str) -> None:
        changed = replace(thread, **overrides)
        self.write(thread, "turn-started", turnId="turn_1", settings=changed.settings())
        thread.cwd, thread.provider = changed.cwd, changed.provider

    def name(self, thread: Stored, name: str | None) -> None:
        self.write(thread, "name", name=name)
        thread.name = name

    def move(self, thread: Stored) -> Path:
        """Archive a thread, or unarchive it; return the old path of its rollout."""
        old = thread.path
        if thread.archived:
            thread.path = self.root / "sessions" / "2025/01/02" / old.name
        else:
            thread.path = self.root / "archived_sessions" / old.name
        thread.path.parent.mkdir(parents=True, exist_ok=True)
        old.rename(thread.path)
        return old

    def remove(self, thread: Stored) -> None:
        thread.path.unlink()
        del self.threads[thread.id]
