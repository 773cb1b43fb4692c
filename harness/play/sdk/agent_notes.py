"""The program that an SDK starts as its agent, and its notes about each start."""

import hashlib
import json
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from harness.client.target.process_tree import MARK
from harness.play.sdk import scripted_agent
from harness.protocol.values import obj

# Variables in which an SDK may pass the API key.
KEY_VARIABLES: Final = ("PROVIDER_API_KEY",)


class AgentNotes:
    """Script and notes of `program`, which the SDK starts; both are in the folder `state`.

    `env` is the driver's environment: of the agent's variables, only those that the driver did not
    have are noted, and those with these `names`.
    """

    def __init__(
        self,
        scratch: Path,
        env: Mapping[str, str],
        names: Iterable[str] = (),
        *,
        program_name: str = "agent",
    ) -> None:
        self.state = scratch / "state"
        self.state.mkdir(parents=True)
        # The folder may become part of PATH, so it has no other file.
        self.program = scratch / "bin" / program_name
        self.program.parent.mkdir()
        words = [sys.executable, "-I", "-S", str(Path(scripted_agent.__file__)), str(self.state)]
        self.program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', "utf-8")
        self.program.chmod(0o755)
        digests = {name: _digest(value) for name, value in env.items()}
        # The harness sets these two anew for each process.
        unnoted = ["TMPDIR", MARK]
        watched = {"names": sorted({*names, *KEY_VARIABLES}), "known": digests, "unnoted": unnoted}
        self._write("watch", watched)
        self._last_taken = 0

    def follow_script(self, script: list[dict[str, Any]]) -> None:
        """Make the program play a script, one entry for each start."""
        self._write("script", script)

    def run_real_agent(self, command: list[str]) -> None:
        """Make the program run a real agent with this command."""
        self._write("command", command)
        self._write("script", [])

    def starts(self) -> list[dict[str, Any]]:
        """Return the notes about each start, in order."""
        return [json.loads(path.read_text("utf-8")) for _, path in self._start_files()]

    def take_new_notes(self) -> list[dict[str, Any]]:
        """Return the notes about starts since the last call, as messages of a trace.

        Each start has its input, each event written so far, and its exit status if it ended.
        """
        notes: list[dict[str, Any]] = []
        for number, path in self._start_files():
            if number <= self._last_taken:
                continue
            self._last_taken = number
            notes.append({"started": json.loads(path.read_text("utf-8"))})
            notes += [{"wrote": event} for event in _events(self.state / f"wrote-{number}.jsonl")]
            ended = self.state / f"ended-{number}.json"
            if ended.exists():
                notes.append({"ended": json.loads(ended.read_text("utf-8"))})
        return notes

    def _start_files(self) -> list[tuple[int, Path]]:
        files = self.state.glob("start-*.json")
        return sorted((int(path.stem.partition("-")[2]), path) for path in files)

    def _write(self, name: str, value: Any) -> None:
        (self.state / f"{name}.json").write_text(json.dumps(value), "utf-8")


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()


def _events(path: Path) -> list[dict[str, Any]]:
    """Return the events in a file; other lines are skipped."""
    events: list[dict[str, Any]] = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            event = obj(json.loads(line))
        except (ValueError, RecursionError):
            continue
        events += [event] if isinstance(event.get("type"), str) else []
    return events
