"""Running `agent exec` as a child process, with scenarios for its model."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import reference_server
from tests.agent_process import AgentProcess

ROOT = Path(reference_server.__file__).parents[1]
BOUND = 60
"""Maximum seconds of a run, on a machine under load."""
JSON = ("--experimental-json", "--skip-git-repo-check")


def scenario(folder: Path, reply: str, *more: str) -> str:
    """Write a scenario with these model steps, each a reply (`[…]`) or a whole step; return its
    path."""
    path = folder / "one.scenario.yaml"
    steps = "".join(
        f"  - reply: {one}\n" if one.startswith("[") else f"  - {one}\n" for one in (reply, *more)
    )
    path.write_text(
        f"title: One turn\nmodel:\n{steps}client:\n  - start_thread: {{as: t}}\n"
        "  - start_turn: {thread: t, text: hi, as: u}\n  - wait: {turn: u, status: completed}\n"
    )
    return str(path)


SAYS_HELLO = '[{message: {deltas: ["Hel", "lo"]}}]'


@dataclass(frozen=True)
class Ran:
    status: int
    out: bytes
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    @property
    def items(self) -> list[dict[str, Any]]:
        return [event["item"] for event in self.events if event["type"] == "item.completed"]


@dataclass
class Agent:
    """The command `agent exec`, with a home and a working directory of its own."""

    folder: Path

    def __post_init__(self) -> None:
        self.cwd = self.folder / "work"
        self.home = self.folder / "home"
        self.cwd.mkdir()

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.folder),
            "AGENT_HOME": str(self.home),
            **more,
        }

    def start(
        self, *words: str, env: Mapping[str, str] = {}, **more: Any
    ) -> subprocess.Popen[bytes]:
        settings: dict[str, Any] = {
            "cwd": self.cwd,
            **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE),
            **more,
        }
        process = AgentProcess(
            [sys.executable, "-m", "reference_server", "exec", *words],
            env=self.environment(env),
            **settings,
        )
        return cast("subprocess.Popen[bytes]", process)

    def run(self, *words: str, stdin: bytes = b"", env: Mapping[str, str] = {}, **more: Any) -> Ran:
        process = self.start(*words, env=env, **more)
        try:
            out, err = process.communicate(stdin, BOUND)
        finally:
            process.kill()
            process.wait()
        return Ran(process.returncode, out, err.decode())

    def play(self, *words: str, reply: str = SAYS_HELLO, stdin: bytes = b"hi") -> Ran:
        return self.run(*JSON, "--scenario", scenario(self.folder, reply), *words, stdin=stdin)
