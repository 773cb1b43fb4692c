"""The program that an SDK is told is the agent, and what it noted of its starts."""

import hashlib
import json
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from harness.client.target.family import MARK
from harness.play.sdk import scripted_agent
from harness.protocol.values import obj

# Variables that an SDK may pass the key in.
KEYS: Final = ("PROVIDER_API_KEY",)


class AgentNotes:
    """`program` is what the SDK shall start; the notes of its starts lie in the folder `state`.

    `env` is the environment of the driver: of the agent's own only what the driver did not have is
    noted, and the variables of these `names`.
    """

    def __init__(self, scratch: Path, env: Mapping[str, str], names: Iterable[str] = ()) -> None:
        self.state = scratch / "state"
        self.state.mkdir(parents=True)
        self.program = scratch / "agent"
        words = [sys.executable, "-I", "-S", str(Path(scripted_agent.__file__)), str(self.state)]
        self.program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', "utf-8")
        self.program.chmod(0o755)
        known = {name: _digest(value) for name, value in env.items()}
        # `start` sets the last two anew for each process.
        unnoted = ["TMPDIR", MARK]
        watched = {"names": sorted({*names, *KEYS}), "known": known, "unnoted": unnoted}
        self._write("watch", watched)
        self._given = 0

    def follow(self, script: list[dict[str, Any]]) -> None:
        """Let the program do what a script says, turn by turn."""
        self._write("script", script)

    def stand_for(self, command: list[str]) -> None:
        """Let the program be a real agent of this command."""
        self._write("command", command)
        self._write("script", [])

    def starts(self) -> list[dict[str, Any]]:
        """Return what each start was given, in order."""
        return [json.loads(path.read_text("utf-8")) for _, path in self._started()]

    def since(self) -> list[dict[str, Any]]:
        """Return the notes on starts that were not told before, as messages of a trace.

        Of each: its input, each event that it wrote so far, its exit status if it ended.
        """
        found: list[dict[str, Any]] = []
        for number, path in self._started():
            if number <= self._given:
                continue
            self._given = number
            found.append({"started": json.loads(path.read_text("utf-8"))})
            found += [{"wrote": event} for event in _events(self.state / f"wrote-{number}.jsonl")]
            ended = self.state / f"ended-{number}.json"
            if ended.exists():
                found.append({"ended": json.loads(ended.read_text("utf-8"))})
        return found

    def _started(self) -> list[tuple[int, Path]]:
        found = self.state.glob("start-*.json")
        return sorted((int(path.stem.partition("-")[2]), path) for path in found)

    def _write(self, name: str, value: Any) -> None:
        (self.state / f"{name}.json").write_text(json.dumps(value), "utf-8")


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()


def _events(path: Path) -> list[dict[str, Any]]:
    """The events in a file, and nothing else that was written."""
    found: list[dict[str, Any]] = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            event = obj(json.loads(line))
        except (ValueError, RecursionError):
            continue
        found += [event] if isinstance(event.get("type"), str) else []
    return found
