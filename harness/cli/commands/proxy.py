"""A proxy between a client on this process's standard streams and a server process.

The server inherits our environment, working directory and standard error. The proxy is transparent
at the end too: it exits with the server's status, or by the signal that ended the server.
"""

import contextlib
import os
import resource
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from subprocess import PIPE

import anyio
from anyio.abc import Process

from harness.cli.commands.standard_streams import GONE, OwnStreams, ProcessStreams, write_all
from harness.cli.end_signals import received_signals
from harness.client.target.lost_input import ignore_lost_input
from harness.client.target.program import NotStarted, describe_start_failure, find_program
from harness.errors import TargetGone, UsageError
from harness.faults.live.chain import LineFilter
from harness.faults.live.lines import BreakableSide
from harness.faults.live.relay import Relay, Side

# Time for a server to end when its client is gone, and again after TERM.
GRACE_SECONDS = 2.0
# Time to read a server's output after its end: a child may hold the pipe open.
DRAIN_SECONDS = 1.0
_STANDARD_ERROR = 2
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def forwarded_signals() -> list[signal.Signals]:
    """Return the signals to forward: those that our parent process did not set to ignored."""
    return [number for number in _FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]


def find_server(command: Sequence[str], option: str) -> list[str]:
    """Return the server's command with its program resolved.

    Raises `UsageError`, naming `option` (`harness faulty --`), if the program is missing or not
    given.
    """
    if not command:
        example = f"{option.removesuffix(' --')} … -- agent app-server"
        raise UsageError(f"no server; write its command behind --: {example}")
    return find_program(command, option)


@dataclass(frozen=True, slots=True)
class ProxyOptions:
    """Options of the relay and of starting the server.

    `quiet` seconds of silence release held messages. `option` is as in `find_server`. `env` is
    the server's environment, None for ours. `errors` gets the server's standard error, which is
    then copied to ours; with None the server inherits ours. `on_signal` gets forwarded signals.
    `bad_line` makes the client's side bad, None leaves it.
    """

    live: LineFilter
    quiet: float
    option: str
    env: Mapping[str, str] | None = None
    errors: Callable[[bytes], None] | None = None
    on_signal: Callable[[signal.Signals], None] | None = None
    bad_line: Callable[[BreakableSide], Side] | None = None


async def run_proxy(command: Sequence[str], options: ProxyOptions) -> int:
    """Run a server behind the relay on our standard streams and return its exit status.

    A negative status is the signal that ended it. Raises `NotStarted` if it cannot be started.
    """
    with received_signals(forwarded_signals()) as signals:
        process = await start_server(command, options)
        async with process, anyio.create_task_group() as tasks:
            client = OwnStreams()
            side = options.bad_line(client) if options.bad_line else client
            relay = Relay(side, ProcessStreams(process), options.live, quiet_seconds=options.quiet)

            async def pass_signals_on() -> None:
                async for number in signals:
                    relay.note_client_left()
                    if options.on_signal is not None:
                        options.on_signal(number)
                    send_signal(process, number)

            async def from_client() -> None:
                with contextlib.suppress(TargetGone):
                    await relay.from_client()

            async def until_client_is_gone() -> None:
                await client.wait_closed()
                relay.note_client_left()
                await end_server(process)

            tasks.start_soon(pass_signals_on)
            tasks.start_soon(from_client)
            tasks.start_soon(relay.watch_silence)
            tasks.start_soon(until_client_is_gone)
            await _relay_until_end(process, relay, options.errors)
            await end_server(process)
            tasks.cancel_scope.cancel()
    return process.returncode or 0


async def start_server(command: Sequence[str], options: ProxyOptions) -> Process:
    """Start the server's process in a new session. Raises `NotStarted` if that fails."""
    ignore_lost_input()
    try:
        return await anyio.open_process(
            list(command),
            stdin=PIPE,
            stdout=PIPE,
            stderr=None if options.errors is None else PIPE,
            env=options.env,
            start_new_session=True,
        )
    except OSError as error:
        raise NotStarted(describe_start_failure(command, error, options.option)) from error


async def _relay_until_end(
    process: Process, relay: Relay, errors: Callable[[bytes], None] | None
) -> None:
    """Relay the server's output until it has ended and its pipes are drained."""
    async with anyio.create_task_group() as reading:

        async def end() -> None:
            await process.wait()
            with anyio.move_on_after(DRAIN_SECONDS):
                await read.wait()
            reading.cancel_scope.cancel()

        read = anyio.Event()
        reading.start_soon(end)
        async with anyio.create_task_group() as both:
            if errors is not None:
                both.start_soon(_pass_errors_on, process, errors)
            with contextlib.suppress(TargetGone):
                await relay.from_server()
        read.set()
        reading.cancel_scope.cancel()


async def _pass_errors_on(process: Process, errors: Callable[[bytes], None]) -> None:
    """Copy the server's standard error to ours, even if nobody reads it."""
    if process.stderr is None:
        return
    with contextlib.suppress(*GONE):
        while chunk := await process.stderr.receive():
            errors(chunk)
            with contextlib.suppress(TargetGone):
                await write_all(_STANDARD_ERROR, chunk)


async def end_server(process: Process) -> None:
    """End a server: close its input; after each `GRACE_SECONDS`, send TERM, then KILL."""
    if process.stdin is not None:
        with contextlib.suppress(OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            await process.stdin.aclose()
    for number in (signal.SIGTERM, signal.SIGKILL):
        with anyio.move_on_after(GRACE_SECONDS):
            await process.wait()
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def send_signal(process: Process, number: signal.Signals) -> None:
    """Forward a signal to a server; a terminal's signals go to its whole process group."""
    with contextlib.suppress(ProcessLookupError):
        if number in (signal.SIGINT, signal.SIGQUIT):
            os.killpg(process.pid, number)
        elif process.returncode is None:
            # `process.send_signal` would poll a process that has just ended, and take its exit
            # status away from the event loop, which reports 255 then.
            os.kill(process.pid, number)


def end_like(status: int) -> None:
    """End this process as the server ended, by a signal or with a status. Never returns."""
    if status < 0:
        # Do not dump our own core in addition to the server's.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        with contextlib.suppress(OSError):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    raise SystemExit(status if status >= 0 else 128 - status)
