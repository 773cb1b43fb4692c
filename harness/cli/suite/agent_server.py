"""The fixture `agent_server`: a server that plays a script to the client under test."""

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
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import pytest

from harness.play.consequences import problem_lines, refused_lines

# Time to listen, on a machine under load; time to end after SIGTERM.
_START_SECONDS: Final = 60.0
_END_SECONDS: Final = 15.0
_POLL_SECONDS: Final = 0.02
_STDERR_LINES: Final = 40
_READY: Final = re.compile(r"(?:listening on|program at) (.+)")
_HOME_VARIABLES: Final = ("AGENT_HOME", "CODEX_HOME")
_FAILED_VERDICTS: Final = ("FAIL", "ERROR")
_MUST: Final = "MUST"
_SHOULD: Final = "SHOULD"
_INFO: Final = "INFO"

Scenarios = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class AgentServerWarning(pytest.PytestWarning):
    """A finding against the client that does not fail the test."""


class AgentServerNote(AgentServerWarning):
    """A finding of level INFO: never a failure, even if warnings are errors."""


@dataclass
class AgentServer:
    """One server for the client under test. Made by the fixture `agent_server`.

    A client that connects uses `url`. One that starts its agent uses `program` and `env`, as often
    as it likes, or `command` and `env`, once per `AgentServer`. The first use decides which it is.
    """

    scenarios: tuple[str, ...]
    arguments: tuple[str, ...]
    env: dict[str, str]
    allow_unused: bool
    strict: bool
    _folder: Path
    name: str = "codex"
    _process: "_ListeningProcess | None" = None
    _use: str = ""
    _is_started: bool = True
    hints: str = ""
    notes: str = ""

    @property
    def url(self) -> str:
        """Return the WebSocket address, `ws://127.0.0.1:PORT`; the first use starts the server.

        With one scenario every connection plays it; of several each connection plays the next.
        """
        return self._start("url", "--listen", "ws://127.0.0.1:0", "--end-with-input")

    def url_of(self, scenario: str) -> str:
        """Return the address at which a connection plays the scenario with this id."""
        return f"{self.url}/{scenario}"

    @property
    def program(self) -> str:
        """Return the path of an executable that is the agent; the first use starts the server.

        Each start of its `app-server` is a connection, which plays a scenario as one to `url` does.
        `self.env` has its folder first on PATH.
        """
        path = str(self.folder / self.name)
        return self._start("program", "--program", path, "--end-with-input")

    @property
    def folder(self) -> Path:
        """Return the folder of `program`, the first one on the PATH of `self.env`."""
        return self._folder / "bin"

    @property
    def command(self) -> list[str]:
        """Return the command that starts the server on stdin and stdout; run it in `self.env`.

        Raises ValueError if `url` or `program` was used before.
        """
        self._take_use("command")
        return [*self._words(), "--listen", "stdio"]

    def _start(self, use: str, *words: str) -> str:
        """Start the process unless it runs, and return where it can be reached."""
        self._take_use(use)
        if self._process is None:
            self._is_started = False  # The test that uses the server fails with the reason.
            self._process = _ListeningProcess([*self._words(), *words], self.env)
            self._is_started = True
        return self._process.place

    def _take_use(self, use: str) -> None:
        """Note the use. Raises ValueError if it was another one before."""
        if self._use not in ("", use):
            raise ValueError(
                f"agent_server: its {self._use} was used before; make another for its {use}"
            )
        self._use = use

    def _words(self) -> list[str]:
        report = ["--json", str(self._report)]
        return [
            _agent_program(),
            "app-server",
            *self.arguments,
            "--scenario",
            *self.scenarios,
            *report,
            *(["--strict"] if self.strict else []),
        ]

    @property
    def _report(self) -> Path:
        return self._folder / "report.json"

    def read_report(self) -> dict[str, Any] | None:
        """Return the report that an ended server wrote, as `--json` has it; None without one."""
        return _read(self._report)

    def end(self) -> str:
        """End it and return a story of what was wrong, "" if nothing was; `hints` has the rest."""
        if not self._is_started:
            return ""
        if self._process is not None:
            output, problem = self._process.end()
        elif self._use:
            output, problem = "", self._wait_for_report()
        else:
            name = " ".join(self.scenarios)
            return f"agent_server({name!r}): its program, url or command was not used"
        report = _read(self._report)
        if report is None:
            problem = problem or "it ended without a report"
            return "\n".join(filter(None, [f"agent_server: {problem}", output]))
        self.hints, self.notes = hints_of(report, strict=self.strict), notes_of(report)
        return story(report, allow_unused=self.allow_unused, strict=self.strict)

    def _wait_for_report(self) -> str:
        """Return why the client's own process wrote no report, "" if it did."""
        until = time.monotonic() + _END_SECONDS
        pause = threading.Event()
        while _read(self._report) is None:
            if not self._report.exists():
                return "the client did not start its command"
            if time.monotonic() > until:
                return (
                    f"the client left it running: {_END_SECONDS:g} s after the test it had not "
                    "ended; close its standard input, and wait for its end"
                )
            pause.wait(_POLL_SECONDS)
        return ""


class _ListeningProcess:
    """A listening process with the end of its standard error."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str]) -> None:
        self._said: deque[str] = deque(maxlen=_STDERR_LINES)
        self._ready = threading.Event()
        self.place = ""
        self._process = subprocess.Popen(
            words,
            env=env,
            stdin=subprocess.PIPE,  # Its end, if this process is killed, ends the server.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._ready.wait(_START_SECONDS) or not self.place:
            status = self._process.poll()
            self._kill()
            ended = f"ended with status {status}" if status is not None else "does not listen"
            pytest.fail(f"agent app-server {ended}:\n{self._tail()}", pytrace=False)

    def _read(self) -> None:
        stream = self._process.stderr
        for line in stream or ():
            self._said.append(line.rstrip())
            match = _READY.match(line)
            if match and not self.place:
                self.place = match[1]
                self._ready.set()
        self._process.wait()
        self._ready.set()

    def end(self) -> tuple[str, str]:
        """Terminate it; return the end of its standard error, and a problem or ""."""
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill()
            return self._tail(), f"it did not end within {_END_SECONDS:g} s and was killed"
        finally:
            self._kill()
        return self._tail(), ""

    def _kill(self) -> None:
        # Its commands are in its process group.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(_END_SECONDS)
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.stderr is not None and not self._reader.is_alive():
            self._process.stderr.close()

    def _tail(self) -> str:
        return "\n".join(f"  | {line}" for line in self._said)


def _read(report: Path) -> dict[str, Any] | None:
    """Return the report; None if it is missing or incomplete."""
    with suppress(OSError, ValueError):
        value = json.loads(report.read_text("utf-8"))
        return cast("dict[str, Any]", value) if isinstance(value, dict) else None
    return None


def hints_of(report: Mapping[str, Any], *, strict: bool) -> str:
    """Return the broken SHOULDs if they do not count, "" if there are none.

    Without those of connections with problems, which may follow from them: `story` has both.
    """
    head = "agent_server: the client breaks what it should keep (strict=True makes it count)"
    return "" if strict else _warning_text(report, head, _SHOULD)


def notes_of(report: Mapping[str, Any]) -> str:
    """Return the findings of level INFO, "" if there are none."""
    head = "agent_server: recorded of the client, where the specification leaves it open"
    return _warning_text(report, head, _INFO)


def _warning_text(report: Mapping[str, Any], head: str, level: str) -> str:
    connections = cast("list[dict[str, Any]]", report["connections"])
    lines = [
        line
        for connection in connections
        if level != _SHOULD or not connection["problems"]
        for line in _connection_story(connection, (level,), with_problems=False)
    ]
    return "\n".join([head, *lines]) if lines else ""


def story(report: Mapping[str, Any], *, allow_unused: bool = False, strict: bool = False) -> str:
    """Return a report's findings against the client, "" if there are none.

    With `strict` a broken SHOULD is one too.
    """
    lines: list[str] = []
    connections = cast("list[dict[str, Any]]", report["connections"])
    if not connections:
        lines.append("no client connected")
    for connection in connections:
        lines += _connection_story(connection, (_MUST, _SHOULD) if strict else (_MUST,))
    unused = [] if allow_unused else cast("list[str]", report["unused"])
    if unused and connections:
        lines.append(f"no connection played {', '.join(unused)} (allow_unused=True accepts that)")
    if not lines and report["verdict"] != "GREEN":
        lines.append(f"the verdict is {report['verdict']}")
    return "\n".join(["agent_server: the client is not as it should be", *lines]) if lines else ""


def _connection_story(
    connection: Mapping[str, Any], levels: Sequence[str], *, with_problems: bool = True
) -> Iterator[str]:
    duties = cast("list[dict[str, Any]]", connection["duties"])
    problems = cast("list[str]", connection["problems"]) if with_problems else []
    # A SHOULD does not fail the test, but may be the cause of the problems.
    levels = (_MUST, _SHOULD) if problems else levels
    lost = [
        duty
        for level in levels
        for duty in duties
        if duty["verdict"] in _FAILED_VERDICTS and duty["level"] == level
    ]
    if not (lost or problems):
        return
    name = connection.get("scenario") or "no scenario"
    yield ""
    yield f"connection {connection['connection']} ({name}):"
    for duty in lost:
        yield f"  {duty['rule']} ({duty['level']}): {duty['clause']}"
        yield f"    expected  {duty['expected']}"
        yield f"    actual    {duty['actual']}"
        yield from (f"    {line}" for line in duty["wire"])
        yield f"    harness explain {duty['rule']} says more"
    if with_problems:
        refused = cast("list[str]", connection["refused"])
        lines = (*refused_lines(refused), *problem_lines(problems, after_duty=bool(lost)))
        yield from (f"  {line}" for line in lines)


def _agent_program() -> str:
    """Return the command shipped with the harness, preferably that of this environment."""
    for folder in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        if (folder / "agent").is_file():
            return str(folder / "agent")
    path = shutil.which("agent")
    if path is None:
        pytest.fail("agent_server: the command agent is not on PATH; it comes with the harness")
    return path


@dataclass
class Factory:
    """Makes servers for one test; paths may be relative to the test's `folder`."""

    folder: Path
    make_folder: Callable[[], Path]
    servers: list[AgentServer] = field(default_factory=list[AgentServer])

    def __call__(
        self,
        scenario: Scenarios = "default",
        *,
        name: str = "codex",
        dialect: str | None = None,
        arguments: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        allow_unused: bool = False,
        strict: bool = False,
    ) -> AgentServer:
        """Return a server for a scenario: a file, a folder, an id such as `turns/plain-turn`.

        Without one it plays the default script, in which a word of the prompt says what happens.

        A path is searched beside the test, then in the current folder. Of several scenarios each
        must be played, unless `allow_unused`. `name` is that of the executable `program`; `dialect`
        is the release whose words the server speaks, by default the newest one for a program named
        `codex`, else the specification's words. `arguments` are further ones of `agent app-server`,
        `env` further variables.

        With `strict` a broken SHOULD fails the test too; without it, it is a warning. An INFO is a
        warning in any case.
        """
        names = [scenario] if isinstance(scenario, str | os.PathLike) else list(scenario)
        if not name or name != os.path.basename(name) or name in (".", ".."):
            raise ValueError(f"agent_server: name={name!r}: expected the name of a file")
        private = self.make_folder()
        server = AgentServer(
            tuple(self._resolve(os.fspath(name)) for name in names),
            tuple(arguments),
            self._environment(private, dialect, env or {}),
            allow_unused,
            strict,
            private,
            name,
        )
        server.folder.mkdir()
        self.servers.append(server)
        return server

    @staticmethod
    def _environment(private: Path, dialect: str | None, env: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a server and of a client that starts it.

        Nothing is written to the home of the user who runs the tests.
        """
        (home := private / "home").mkdir()
        environment = {
            **os.environ,
            **{name: str(home) for name in _HOME_VARIABLES},
            **({} if dialect is None else {"AGENT_DIALECT": dialect}),
            **env,
        }
        path = environment.get("PATH", os.defpath)
        return {**environment, "PATH": f"{private / 'bin'}{os.pathsep}{path}"}

    def _resolve(self, name: str) -> str:
        beside = self.folder / name
        return str(beside) if beside.exists() else name


@contextmanager
def agent_server_factory(folder: Path, make_folder: Callable[[], Path]) -> Generator[Factory]:
    """Yield the factory during a test; fail the test if a client broke a duty."""
    factory = Factory(folder, make_folder)
    stories: list[str] = []
    with ExitStack() as ending:

        def end() -> None:
            stories.extend(server.end() for server in factory.servers)

        ending.callback(end)
        yield factory
    for notes in (server.notes for server in factory.servers if server.notes):
        _warn_without_failing(AgentServerNote(notes))
    hints = [server.hints for server in factory.servers if server.hints]
    failure = "\n\n".join(filter(None, stories))
    if failure:
        pytest.fail("\n\n".join([failure, *hints]), pytrace=False)
    if hints:
        warnings.warn(AgentServerWarning("\n\n".join(hints)), stacklevel=1)


def _warn_without_failing(note: AgentServerNote) -> None:
    try:
        warnings.warn(note, stacklevel=1)
    except AgentServerNote:
        with warnings.catch_warnings():
            warnings.simplefilter("always", AgentServerNote)
            warnings.warn(note, stacklevel=1)
