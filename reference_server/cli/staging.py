"""`agent app-server --scenario … --listen …`: a stage, which plays scenarios to clients under test.

Only this mode imports the module.
"""

import os
import signal
import stat
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

import anyio

from harness.errors import UsageError as HarnessUsageError
from harness.play.client_tests.connection import ConnectionResult
from harness.play.client_tests.report import is_red, lines_of, report_text, summary_lines
from harness.play.client_tests.scenario_choice import Choice, load_choice
from reference_server.cli.edge import edge_of_process
from reference_server.cli.listening import Listening, ListenOptions, listen
from reference_server.cli.process import (
    FirstSignal,
    hide_secrets_in_log,
    leave_hung_threads,
    start_helper,
)
from reference_server.cli.program_file import program_file, script, socket_path
from reference_server.cli.surroundings import UsageError, complain
from reference_server.client_tests.program_starts import ProgramStarts
from reference_server.client_tests.stage import Bounds, Stage
from reference_server.config.model import Config
from reference_server.handlers import discover
from reference_server.private_folder import private_root
from reference_server.terminal_escapes import escape_controls
from reference_server.transport.base import Edge
from reference_server.transport.stdio import StdioTransport

_INPUT_CHUNK = 1 << 16
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class StageWords:
    """Options of a stage: scenarios as the command line names them, report, and when to end."""

    scenarios: tuple[str, ...]
    json: Path | None = None
    connections: int | None = None
    idle: float | None = None
    once: bool = False
    strict: bool = False
    program: Path | None = None
    end_with_input: bool = False


@dataclass(slots=True)
class _Results:
    """Results of ended connections, printed as they come; `strict`: a broken SHOULD is RED too."""

    strict: bool
    results: list[ConnectionResult] = field(default_factory=list[ConnectionResult])

    def add(self, result: ConnectionResult) -> None:
        result = replace(result, strict=self.strict)
        self.results.append(result)
        for line in lines_of(result):
            # It quotes clients, models and files.
            complain("\n".join(map(escape_controls, line.split("\n"))))


def _load_choice(words: Sequence[str], *, one_connection: bool) -> Choice:
    """Load the scenarios. Raises UsageError, also for several scenarios with `one_connection`."""
    try:
        choice = load_choice(words)
    except HarnessUsageError as error:
        raise UsageError(str(error)) from error
    if one_connection and not choice.is_single:
        raise UsageError(
            f"--scenario {' '.join(words)}: {len(choice.unused_ids)} scenarios, and standard input "
            "and output are one connection; name one, or listen on ws://127.0.0.1:0"
        )
    return choice


def _begin_report(path: Path) -> None:
    """Empty the report file, so that no report of an earlier run is taken for this one's.

    Raises UsageError if it cannot be written.
    """
    try:
        path.write_bytes(b"")
    except OSError as error:
        raise UsageError(f"--json {path}: cannot be written: {error.strerror}") from error


def run_stage(
    words: StageWords,
    listening: ListenOptions | None,
    *,
    overrides: tuple[str, ...],
    requires_initialize: bool,
) -> int:
    """Play scenarios until the stage ends and return the exit status.

    1 if a result is RED or the report cannot be written. Raises UsageError if it cannot begin.
    """
    program = None if words.program is None else Path(os.path.abspath(words.program))
    uses_streams = listening is None and program is None
    choice = _load_choice(words.scenarios, one_connection=uses_streams)
    if words.json is not None:
        _begin_report(words.json)
    results = _Results(words.strict)
    with ExitStack() as stack:
        try:
            root = stack.enter_context(private_root())
            socket = "" if program is None else socket_path(root, stack)
        except OSError as error:
            raise UsageError(
                f"no folder for the connections can be made ({error}); set TMPDIR to another one"
            ) from error
        environment = dict(os.environ)
        edge = edge_of_process(environment, root)
        listening = ListenOptions(f"unix:{socket}") if socket else listening
        listening_socket = None if listening is None else listen(listening, environment, edge)
        if listening_socket is not None:
            environment = listening_socket.hidden_from_commands(environment)
            stack.callback(listening_socket.close)
        if program is not None:
            (home := root / "home").mkdir(mode=0o700)
            text = script(socket, home, os.environ, words.scenarios)
            stack.enter_context(program_file(program, text))
        hide_secrets_in_log(Config(environment=environment))
        # Imported now, so that the first connection does not wait for it.
        import_module("reference_server.services")
        discover()
        stage = Stage(
            choice,
            root,
            environment,
            overrides=overrides,
            requires_initialize=requires_initialize,
            bounds=Bounds(words.connections, words.once, words.idle),
            say=complain,
            on_result=results.add,
        )
        if words.end_with_input:
            _check_input()
        anyio.run(_serve, stage, listening_socket, edge, program, words.end_with_input)
    status = _finish(results.results, choice, words.json)
    leave_hung_threads(status)
    return status


def _check_input() -> None:
    """Raise UsageError if standard input is nothing whose end can be waited for."""
    mode = os.fstat(0).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        raise UsageError("--end-with-input: standard input must be a pipe")


async def _stop_with_input(stage: Stage) -> None:
    """Stop the stage when nobody can write to standard input any more."""
    os.set_blocking(0, False)
    data = b"unread"
    while data:
        await anyio.wait_readable(0)
        with suppress(BlockingIOError):
            data = os.read(0, _INPUT_CHUNK)
    stage.stop()


async def _serve(
    stage: Stage,
    listening: Listening | None,
    edge: Edge,
    program: Path | None,
    end_with_input: bool,
) -> None:
    signals = FirstSignal(_SIGNALS)
    try:
        start_helper()
        signals.call(lambda _number: stage.stop())
        async with anyio.create_task_group() as tasks:
            if end_with_input:
                tasks.start_soon(_stop_with_input, stage)
            if listening is not None and program is not None:
                await listening.serve(ProgramStarts(stage), announcement=f"program at {program}")
            elif listening is not None:
                await listening.serve(stage, stage.missing_reason)
            else:
                await stage.host(edge(StdioTransport.take_over()), "")
                stage.stop()
            tasks.cancel_scope.cancel()
    finally:
        if listening is not None:
            listening.close()
        signals.ignore()


def _finish(results: Sequence[ConnectionResult], choice: Choice, report: Path | None) -> int:
    for line in summary_lines(results, choice.unused_ids):
        complain(line)
    if report is not None:
        try:
            report.write_text(report_text(results, choice.unused_ids), "utf-8")
        except OSError as error:
            complain(f"--json {report}: cannot be written: {error.strerror}")
            return 1
    return 1 if is_red(results) else 0
