"""`agent exec`: one turn, whose events go to standard output.

Here lives how a run is put together from the command line and the environment, and what signals do.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from reference_server.cli.process import (
    begin_log,
    hide_secrets_in_log,
    leave_hung_threads,
    without_secrets,
)
from reference_server.cli.scenario_model import scenario_environment, scenario_transport
from reference_server.cli.surroundings import (
    UsageError,
    check_streams,
    complain,
    find_home,
    speak_utf8,
)
from reference_server.config.home import Home
from reference_server.config.load import ConfigError
from reference_server.oneshot.ending import NOT_BEGUN, SIGNALS, Interruption, NotBegun
from reference_server.oneshot.options import parse
from reference_server.oneshot.output import JsonLines, Sink, claim_output
from reference_server.oneshot.prompt import drain_input, prompt_of
from reference_server.oneshot.run import Job, run_job
from reference_server.oneshot.setting import config_of, folder_of
from reference_server.recovery import recover

if TYPE_CHECKING:
    import httpx


def run(arguments: Sequence[str]) -> int:
    """Run one turn; gives the exit status, see docs/exec.md."""
    speak_utf8()
    try:
        options = parse(arguments)
        check_streams()
        begin_log()
        home = find_home(os.environ)
        config = config_of(options, home, complain)
        model_transport = None if options.scenario is None else scenario_transport(options.scenario)
        if model_transport is not None:
            config = replace(config, environment=scenario_environment(config.environment))
        cwd = folder_of(options)
        prompt = prompt_of(options.prompt)
        hide_secrets_in_log(config)
        recover(home)
        job = Job(config, prompt, cwd, resume=options.resume, ephemeral=options.ephemeral)
        stream = claim_output()
        status = anyio.run(_run, home, job, JsonLines(stream), model_transport)
    except (ConfigError, UsageError, NotBegun) as error:
        complain(without_secrets(str(error)))
        drain_input()
        return NOT_BEGUN
    leave_hung_threads(status)
    return status


async def _run(
    home: Home,
    job: Job,
    sink: Sink,
    model_transport: "Callable[[], httpx.AsyncBaseTransport] | None",
) -> int:
    interruption = Interruption()
    loop = asyncio.get_running_loop()

    def stop(number: int, _frame: object) -> None:
        loop.call_soon_threadsafe(interruption.by_signal, number)

    for number in SIGNALS:
        signal.signal(number, stop)
    try:
        return await run_job(home, job, sink, interruption, model_transport)
    finally:
        # The run has ended in order: a second signal must not kill it now.
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
