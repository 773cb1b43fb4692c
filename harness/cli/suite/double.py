"""`harness double`: runs a command whose clients find a scripted agent on PATH, and judges them."""

import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.cli.suite.agent_server import AgentServer, Factory
from harness.errors import UsageError

_OWN_WORDS = {
    "agent_server:": "harness double:",
    "no client connected": "no client started the agent",
    "allow_unused=True": "--allow-unused",
    "strict=True": "--strict",
}


@dataclass(frozen=True, slots=True)
class DoubleOptions:
    """Name of the agent, and the scenarios that it plays.

    `dialect` is the release whose words it speaks, "" for what its `name` says; with `strict` a
    broken SHOULD counts too; with `allow_unused` some of several scenarios may stay unplayed.
    """

    scenarios: Sequence[str] = ()
    name: str = "codex"
    dialect: str = ""
    strict: bool = False
    allow_unused: bool = False


class DoubleResult(NamedTuple):
    """End of a command, and the findings about its clients.

    `status` is the command's exit status, or 1 if it succeeded and a client is RED; `stories` are
    texts for the user; `report` is that of the server, None if it wrote none.
    """

    status: int
    stories: tuple[str, ...]
    report: Any


def run_with_double(command: Sequence[str], options: DoubleOptions) -> DoubleResult:
    """Run a command with the agent first on its PATH, and judge the clients that start it.

    Raises `UsageError` if the agent or the command cannot be started.
    """
    if not command:
        raise UsageError("no command; give it behind --: harness double -- npm test")
    with tempfile.TemporaryDirectory(prefix="agent-double-") as folder:
        server = _start(Path(folder), options)
        with _ending_on_sigterm():
            try:
                status = _run(command, server)
            finally:
                story = server.end()
        stories = (story, server.hints, server.notes)
        report = server.read_report()
    texts = tuple(_in_words_of_command(text) for text in stories if text)
    if not story and report is not None:
        count = len(report["connections"])
        texts = (*texts, f"harness double: GREEN ({count} start{'s' if count != 1 else ''} judged)")
    return DoubleResult(status or (1 if story else 0), texts, report)


def _in_words_of_command(lines: str) -> str:
    """Return the fixture's text with the options of this command in place of its arguments."""
    for text, ours in _OWN_WORDS.items():
        lines = lines.replace(text, ours)
    return lines


@contextmanager
def _ending_on_sigterm() -> Generator[None]:
    """End the block on SIGTERM as on an exception, so that no process is left behind."""

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _start(folder: Path, options: DoubleOptions) -> AgentServer:
    """Return a running server. Raises `UsageError` with what it said if it does not start."""

    def make_folder() -> Path:
        (private := folder / "server").mkdir()
        return private

    try:
        server = Factory(Path.cwd(), make_folder)(
            list(options.scenarios) or "default",
            name=options.name,
            dialect=options.dialect or None,
            strict=options.strict,
            allow_unused=options.allow_unused,
        )
        _ = server.program
    except (ValueError, pytest.fail.Exception) as error:
        raise UsageError(str(error)) from None
    return server


def _run(command: Sequence[str], server: AgentServer) -> int:
    """Run the command to its end; 128 plus the signal if one ended it, as a shell says it."""
    sys.stdout.flush()
    try:
        status = subprocess.run(command, env=server.env, check=False).returncode
    except OSError as error:
        raise UsageError(f"{command[0]}: cannot be started: {error.strerror}") from error
    return status if status >= 0 else 128 - status
