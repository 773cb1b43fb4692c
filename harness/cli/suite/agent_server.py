"""The fixture `agent_server`: a server that plays a script to the client that a test is about."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import pytest

# Seconds: until it listens, on a machine under load; until it has ended, after it was told to.
_START: Final = 60.0
_END: Final = 15.0
_LOOK_AGAIN: Final = 0.02
_STDERR_LINES: Final = 40
_LISTENING: Final = re.compile(r"listening on (\S+)")
_LOST: Final = ("FAIL", "ERROR")

Scenarios = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass
class AgentServer:
    """One server for the client under test. Made by the fixture `agent_server`.

    A client that connects uses `url`; one that starts its agent uses `command` and `env`, once for
    each `AgentServer`. What is used first decides which of the two it is.
    """

    scenarios: tuple[str, ...]
    arguments: tuple[str, ...]
    env: dict[str, str]
    allow_unused: bool
    _folder: Path
    _listening: "_Listening | None" = None
    _is_command: bool = False
    _is_started: bool = True

    @property
    def url(self) -> str:
        """The address of its WebSocket, `ws://127.0.0.1:PORT`; it listens from the first use on.

        With one scenario every connection plays it; of several each connection plays the next.
        """
        if self._is_command:
            raise ValueError("agent_server: its command was used before; make another for its url")
        if self._listening is None:
            words = [*self._words(), "--listen", "ws://127.0.0.1:0"]
            self._is_started = False  # The test that asks for the address is told why.
            self._listening = _Listening(words, self.env)
            self._is_started = True
        return self._listening.url

    def url_of(self, scenario: str) -> str:
        """The address at which a connection plays the scenario of this id, of several."""
        return f"{self.url}/{scenario}"

    @property
    def command(self) -> list[str]:
        """The words that start it on standard input and output; run them with `env`."""
        if self._listening is not None:
            raise ValueError("agent_server: its url was used before; make another for its command")
        self._is_command = True
        return [*self._words(), "--listen", "stdio"]

    def _words(self) -> list[str]:
        report = ["--json", str(self._report)]
        return [_agent(), "app-server", *self.arguments, "--scenario", *self.scenarios, *report]

    @property
    def _report(self) -> Path:
        return self._folder / "report.json"

    def end(self) -> str:
        """End it; gives the story of what was wrong, "" where nothing was."""
        if not self._is_started:
            return ""
        if self._listening is not None:
            output, problem = self._listening.end()
        elif self._is_command:
            output, problem = "", self._wait_for_report()
        else:
            name = " ".join(self.scenarios)
            return f"agent_server({name!r}): neither its url nor its command was used"
        report = _read(self._report)
        if report is None:
            problem = problem or "it ended without a report"
            return "\n".join(filter(None, [f"agent_server: {problem}", output]))
        return story(report, allow_unused=self.allow_unused)

    def _wait_for_report(self) -> str:
        """Return why the client's own process wrote no report, "" if it did."""
        until = time.monotonic() + _END
        pause = threading.Event()
        while _read(self._report) is None:
            if not self._report.exists():
                return "the client did not start its command"
            if time.monotonic() > until:
                return (
                    f"the client left it running: {_END:g} s after the test it had not ended; "
                    "close its standard input, and wait for its end"
                )
            pause.wait(_LOOK_AGAIN)
        return ""


class _Listening:
    """A process that listens, and what it says on its standard error."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str]) -> None:
        self._said: deque[str] = deque(maxlen=_STDERR_LINES)
        self._ready = threading.Event()
        self.url = ""
        self._process = subprocess.Popen(
            words,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._ready.wait(_START) or not self.url:
            status = self._process.poll()
            self._kill()
            ended = f"ended with status {status}" if status is not None else "does not listen"
            pytest.fail(f"agent app-server {ended}:\n{self._tail()}", pytrace=False)

    def _read(self) -> None:
        stream = self._process.stderr
        for line in stream or ():
            self._said.append(line.rstrip())
            match = _LISTENING.search(line)
            if match and not self.url:
                self.url = match[1]
                self._ready.set()
        self._process.wait()
        self._ready.set()

    def end(self) -> tuple[str, str]:
        """Tell it to end; gives the end of what it said, and what was wrong with its ending."""
        self._process.terminate()
        try:
            self._process.wait(_END)
        except subprocess.TimeoutExpired:
            self._kill()
            return self._tail(), f"it did not end within {_END:g} s and was killed"
        finally:
            self._kill()
        return self._tail(), ""

    def _kill(self) -> None:
        # Its commands are in its group.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(_END)
        if self._process.stderr is not None and not self._reader.is_alive():
            self._process.stderr.close()

    def _tail(self) -> str:
        return "\n".join(f"  | {line}" for line in self._said)


def _read(report: Path) -> dict[str, Any] | None:
    """The report; None while there is none, or not all of it."""
    with suppress(OSError, ValueError):
        value = json.loads(report.read_text("utf-8"))
        return cast("dict[str, Any]", value) if isinstance(value, dict) else None
    return None


def story(report: Mapping[str, Any], *, allow_unused: bool = False) -> str:
    """Return what a report says against the client, for people; "" if nothing."""
    lines: list[str] = []
    connections = cast("list[dict[str, Any]]", report["connections"])
    if not connections:
        lines.append("no client connected")
    for connection in connections:
        lines += _against(connection)
    unused = [] if allow_unused else cast("list[str]", report["unused"])
    if unused and connections:
        lines.append(f"no connection played {', '.join(unused)} (allow_unused=True accepts that)")
    if not lines and report["verdict"] != "GREEN":
        lines.append(f"the verdict is {report['verdict']}")
    return "\n".join(["agent_server: the client is not as it should be", *lines]) if lines else ""


def _against(connection: Mapping[str, Any]) -> Iterator[str]:
    duties = cast("list[dict[str, Any]]", connection["duties"])
    lost = [duty for duty in duties if duty["verdict"] in _LOST and duty["level"] == "MUST"]
    problems = cast("list[str]", connection["problems"])
    if not (lost or problems):
        return
    name = connection.get("scenario") or "no scenario"
    yield ""
    yield f"connection {connection['connection']} ({name}):"
    for problem in problems:
        yield f"  {problem}"
    for duty in lost:
        yield f"  {duty['rule']} ({duty['level']}): {duty['clause']}"
        yield f"    expected  {duty['expected']}"
        yield f"    actual    {duty['actual']}"
        yield from (f"    {line}" for line in duty["wire"])
        yield f"    harness explain {duty['rule']} says more"


def _agent() -> str:
    """The command that came with the harness; the one of this environment comes first."""
    for folder in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        if (folder / "agent").is_file():
            return str(folder / "agent")
    path = shutil.which("agent")
    if path is None:
        pytest.fail("agent_server: the command agent is not on PATH; it comes with the harness")
    return path


@dataclass
class Factory:
    """Makes servers for one test; `folder` is the test's, to which paths may be relative."""

    folder: Path
    make_folder: Callable[[], Path]
    made: list[AgentServer] = field(default_factory=list[AgentServer])

    def __call__(
        self,
        scenario: Scenarios,
        *,
        arguments: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        allow_unused: bool = False,
    ) -> AgentServer:
        """A server that plays a scenario: a file, a folder, an id such as `turns/plain-turn`.

        A path is looked for beside the test, then in the current folder. Of several scenarios each
        must be played, unless `allow_unused`. `arguments` are further ones of `agent app-server`,
        `env` further variables.
        """
        names = [scenario] if isinstance(scenario, str | os.PathLike) else list(scenario)
        private = self.make_folder()
        server = AgentServer(
            tuple(self._found(os.fspath(name)) for name in names),
            tuple(arguments),
            # Nothing of it goes into the home of whoever runs the tests.
            {**os.environ, "AGENT_HOME": str(private / "home"), **(env or {})},
            allow_unused,
            private,
        )
        self.made.append(server)
        return server

    def _found(self, name: str) -> str:
        beside = self.folder / name
        return str(beside) if beside.exists() else name


@contextmanager
def serving(folder: Path, make_folder: Callable[[], Path]) -> Generator[Factory]:
    """The factory for the length of a test; fails it where a client was not as it should be."""
    factory = Factory(folder, make_folder)
    stories: list[str] = []
    with ExitStack() as ending:

        def end() -> None:
            stories.extend(server.end() for server in factory.made)

        ending.callback(end)
        yield factory
    failure = "\n\n".join(filter(None, stories))
    if failure:
        pytest.fail(failure, pytrace=False)
