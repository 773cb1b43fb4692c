"""A process that stands between a client and a server's process, on our own standard streams.

The server gets our environment, our folder and our standard error. It ends as it would without us:
its exit status is ours, and a signal that ended it ends us.
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

from harness.cli.commands.standard_streams import GONE, OwnStreams, ProcessStreams, written_to
from harness.client.target.lost_input import ignore_lost_input
from harness.client.target.program import NotStarted, describe_start_failure, find_program
from harness.errors import TargetGone, UsageError
from harness.faults.live.chain import AtWork
from harness.faults.live.relay import Relay

# Seconds that a server has to end when its client is gone, and again after TERM.
GRACE = 2.0
# What is read of a server's output after its end: a child of it may hold the pipe open.
DRAIN = 1.0
_STANDARD_ERROR = 2
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def passed_on() -> list[signal.Signals]:
    """The signals that are passed on: those that whoever started us has not had ignored."""
    return [number for number in _PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]


def found(command: Sequence[str], option: str) -> list[str]:
    """The words of the server's command, its program found. Raises `UsageError`.

    `option` is what takes the command, as messages name it: `harness faulty --`.
    """
    if not command:
        example = f"{option.removesuffix(' --')} … -- agent app-server"
        raise UsageError(f"no server; write its command behind --: {example}")
    return find_program(command, option)


@dataclass(frozen=True, slots=True)
class Proxied:
    """The relay between the two, and the start of the server.

    `quiet` are the seconds of silence after which what is held goes on. `option` is as in `found`.
    `env` is the server's environment, None for ours. `errors` gets what the server writes to its
    standard error, which is then written to ours; with None the server has ours itself. `signalled`
    is told each signal that is passed on.
    """

    live: AtWork
    quiet: float
    option: str
    env: Mapping[str, str] | None = None
    errors: Callable[[bytes], None] | None = None
    signalled: Callable[[signal.Signals], None] | None = None


async def proxied(command: Sequence[str], how: Proxied) -> int:
    """Run a server on our standard streams with something in between; gives its exit status.

    Below 0 is the signal that ended it. Raises `NotStarted`.
    """
    with anyio.open_signal_receiver(*passed_on()) as signals:
        process = await started(command, how)
        async with process, anyio.create_task_group() as tasks:
            client = OwnStreams()
            relay = Relay(client, ProcessStreams(process), how.live, quiet=how.quiet)

            async def pass_signals_on() -> None:
                async for number in signals:
                    if how.signalled is not None:
                        how.signalled(number)
                    send_signal(process, number)

            async def from_client() -> None:
                with contextlib.suppress(TargetGone):
                    await relay.from_client()

            async def until_client_is_gone() -> None:
                await client.gone()
                await push_out(process)

            tasks.start_soon(pass_signals_on)
            tasks.start_soon(from_client)
            tasks.start_soon(relay.mind_silence)
            tasks.start_soon(until_client_is_gone)
            await _to_the_end(process, relay, how.errors)
            await push_out(process)
            tasks.cancel_scope.cancel()
    return process.returncode or 0


async def started(command: Sequence[str], how: Proxied) -> Process:
    """The server's process, in a session of its own. Raises `NotStarted`."""
    ignore_lost_input()
    try:
        return await anyio.open_process(
            list(command),
            stdin=PIPE,
            stdout=PIPE,
            stderr=None if how.errors is None else PIPE,
            env=how.env,
            start_new_session=True,
        )
    except OSError as error:
        raise NotStarted(describe_start_failure(command, error, how.option)) from error


async def _to_the_end(
    process: Process, relay: Relay, errors: Callable[[bytes], None] | None
) -> None:
    """Pass on what the server says until it has ended, and what it left in its pipes."""
    async with anyio.create_task_group() as reading:

        async def end() -> None:
            await process.wait()
            with anyio.move_on_after(DRAIN):
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
    """Write what the server writes to its standard error to ours; nobody may read it."""
    if process.stderr is None:
        return
    with contextlib.suppress(*GONE):
        while chunk := await process.stderr.receive():
            errors(chunk)
            with contextlib.suppress(TargetGone):
                await written_to(_STANDARD_ERROR, chunk)


async def push_out(process: Process) -> None:
    """End a server to whom or from whom nothing passes any more: end of input, TERM, KILL."""
    if process.stdin is not None:
        with contextlib.suppress(OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            await process.stdin.aclose()
    for number in (signal.SIGTERM, signal.SIGKILL):
        with anyio.move_on_after(GRACE):
            await process.wait()
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def send_signal(process: Process, number: signal.Signals) -> None:
    """Pass a signal on to a server: what a terminal sends, to all of its process group."""
    with contextlib.suppress(ProcessLookupError):
        if number in (signal.SIGINT, signal.SIGQUIT):
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)


def end_like(status: int) -> None:
    """End this process as the server ended, by a signal or with a status; does not come back."""
    if status < 0:
        # The core of the server was dumped if at all; ours would be of no use.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        with contextlib.suppress(OSError):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    raise SystemExit(status if status >= 0 else 128 - status)
