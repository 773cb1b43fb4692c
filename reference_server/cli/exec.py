"""`agent exec`: one turn, whose events go to standard output."""

import contextlib
import gc
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from reference_server.agent_exec.ending import (
    FAILED,
    Interruption,
    NotBegun,
    end_at_once_on_signals,
    stop_signals,
)
from reference_server.agent_exec.input_files import check_images, load_schema
from reference_server.agent_exec.last_message import LastMessageSink, MessageFile
from reference_server.agent_exec.options import Options, parse
from reference_server.agent_exec.output import (
    JsonLines,
    Sink,
    Stream,
    claim_output,
    standard_error,
)
from reference_server.agent_exec.prompt import drain_input, prompt_of
from reference_server.agent_exec.run import Job, run_job
from reference_server.agent_exec.run_config import (
    check_links,
    config_of,
    environment_of,
    folder_of,
    named_settings,
)
from reference_server.cli.process import (
    FirstSignal,
    begin_log,
    hide_secrets_in_log,
    leave_hung_threads,
    start_helper,
    without_secrets,
)
from reference_server.cli.scenario_model import (
    scenario_environment,
    scenario_transport,
)
from reference_server.cli.surroundings import (
    UsageError,
    check_streams,
    complain,
    find_home,
    speak_utf8,
)
from reference_server.config.home import Home
from reference_server.config.load import ConfigError
from reference_server.recovery import recover
from reference_server.safe_files import make_private
from reference_server.terminal_escapes import escape_controls

if TYPE_CHECKING:
    from reference_server.model.pool import MakeTransport


def run(arguments: Sequence[str]) -> int:
    """Run one turn and return the exit status, as docs/exec.md lists them."""
    end_at_once_on_signals()
    # All objects made before the first event stay alive: collections would free nothing.
    gc.disable()
    speak_utf8()
    reads_input = True
    try:
        _check_output()
        options = _in_words_of_text(parse(arguments))
        reads_input = options.prompt in (None, "-")
        begin_log()
        status = _run(options)
    except (ConfigError, UsageError, NotBegun) as error:
        words = escape_controls(" ".join(str(error).splitlines()))
        complain(without_secrets(words, environment_of(os.environ)))
        if reads_input:
            drain_input()
        return error.status if isinstance(error, NotBegun) else FAILED
    leave_hung_threads(status)
    return status


def _check_output() -> None:
    """Raise UsageError if standard output is closed; other closed streams get the null device."""
    closed = sys.stdout is None  # pyright: ignore[reportUnnecessaryComparison]
    check_streams(uses_streams=False)
    if closed:
        raise UsageError("agent exec: standard output is closed; open it, to /dev/null if need be")


def _run(options: Options) -> int:
    """Check options, files and prompt, then run the turn and return its exit status.

    Raises ConfigError, UsageError or NotBegun if a check fails.
    """
    home = find_home(os.environ)
    config = config_of(options, home, complain)
    folder = folder_of(options)
    check_links(options, config, folder)
    model_transport: MakeTransport | None = None
    if options.scenario is not None:
        resumes = options.resume is not None or options.last
        model_transport = scenario_transport(options.scenario, faults=False, resumes=resumes)
        config = replace(config, environment=scenario_environment(config.environment))
    job = Job(
        config,
        prompt="",
        cwd=folder,
        images=check_images(options.images, folder),
        schema=load_schema(options.schema),
        schema_file=options.schema or "",
        resume=options.resume,
        last=options.last,
        ephemeral=options.ephemeral,
        named_settings=named_settings(options),
    )
    file = None if options.last_message is None else MessageFile(options.last_message)
    if options.prompt in (None, "-") and os.isatty(0):
        complain("agent exec: type the prompt, and end it with Ctrl-D")
    job = replace(job, prompt=prompt_of(options.prompt))
    if not job.prompt.strip() and not job.images:
        raise NotBegun(
            "agent exec: there is no prompt; give it as the argument or on standard input"
        )
    hide_secrets_in_log(config)
    with contextlib.ExitStack() as stack:
        if options.ephemeral and not _can_write(home):
            # The thread leaves nothing there; only counters and locks need a place meanwhile.
            state = stack.enter_context(tempfile.TemporaryDirectory(prefix="agent-exec-"))
            home = replace(home, state=Path(state))
        recover(home)
        terminal = os.isatty(1)
        output = claim_output()
        sink = _sink(options, job.cwd, output, terminal=terminal)
        if file is not None:
            sink = LastMessageSink(sink, file)
        if os.environ.get("AGENT_DIALECT"):
            sink = _in_dialect(sink)
        return anyio.run(_play, home, job, sink, output, model_transport)


def _in_words_of_text(options: Options) -> Options:
    """Return the options with the thread to resume under the id that the server gave it."""
    if options.resume is None or not os.environ.get("AGENT_DIALECT"):
        return options
    from reference_server.dialect.ids import from_uuid

    return replace(options, resume=from_uuid(options.resume))


def _in_dialect(sink: Sink) -> Sink:
    from reference_server.dialect.choice import dialect_of
    from reference_server.dialect.exec_events import DialectSink

    dialect = dialect_of(os.environ)
    return sink if dialect is None else DialectSink(sink, dialect)


def _can_write(home: Home) -> bool:
    """Return whether the home is writable, after making it if it is missing."""
    try:
        make_private(home.root)
    except OSError:
        return False
    return os.access(home.root, os.W_OK | os.X_OK)


def _sink(options: Options, folder: str, output: Stream, *, terminal: bool) -> Sink:
    if options.json:
        return JsonLines(output, standard_error())
    from reference_server.agent_exec.human import Human, colors_wanted

    colors = colors_wanted(options.color)
    return Human(output, standard_error(), folder, colors=colors, terminal=terminal)


def _finish_startup() -> None:
    """Do the work that was deferred until the first event was written."""
    gc.freeze()
    gc.enable()
    start_helper()


async def _play(
    home: Home, job: Job, sink: Sink, output: Stream, model_transport: "MakeTransport | None"
) -> int:
    interruption = Interruption()
    signals = FirstSignal(stop_signals())
    signals.call(interruption.stop_by_signal)
    try:
        with output.watch_reader(interruption.stop_by_closed_output):
            return await run_job(home, job, sink, interruption, model_transport, _finish_startup)
    finally:
        # The run has ended in order: a second signal must not kill it now.
        signals.ignore()
