"""`harness faulty`: a server with faults in it, for who tests a client.

Here: the faults of a command line, the server's process between its start and its end, and what is
told of both. Not here: the list of faults (fault_list), the conversation (faults.live.relay).

The server gets our environment, our folder and our standard error. It ends as it would without us:
its exit status is ours, and a signal that ended it ends us.
"""

import contextlib
import os
import resource
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import PIPE

import anyio
from anyio.abc import Process

from harness.commands.fault_list import live_fault
from harness.commands.standard_streams import OwnStreams, ProcessStreams
from harness.errors import TargetGone, UsageError
from harness.faults.live.chain import FaultChain
from harness.faults.live.fault import Acted, LetGo, LiveFault, Told
from harness.faults.live.relay import Relay
from harness.rules.discovery import all_rules
from harness.runner.lexicon import protocol_lexicon
from harness.runner.written_faults import live_faults
from harness.scenario.loader import load
from harness.scenario.named import named_files
from harness.surface.known import classify_of
from harness.target.program import NotStarted, find_program, why_not_started
from harness.trace.surfaces import SESSION

# What takes the server's command, as messages about it name it.
OPTION = "harness faulty --"
Say = Callable[[str], None]

# Seconds that a server has to end when its client is gone, and again after TERM.
GRACE = 2.0
# What is read of a server's output after its end: a child of it may hold the pipe open.
DRAIN = 1.0
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def passed_on() -> list[signal.Signals]:
    """The signals that are passed on: those that whoever started us has not had ignored."""
    return [one for one in _PASSED_ON if signal.getsignal(one) is not signal.SIG_IGN]


def teller(say: Say) -> Told:
    """Says on a line each what a fault did."""

    def tell(one: Acted | LetGo) -> None:
        name = one.fault.id
        if isinstance(one, Acted):
            for words in one.words:
                say(f"faulty: {name}: {words}")
        elif one.missing:
            held = len(one.frames)
            lines = "1 line goes" if held == 1 else f"{held} lines go"
            say(f"faulty: {name}: {one.missing}, and {one.why}: {lines} on")

    return tell


def chain(
    names: Sequence[str], *, scenario: str = "", after: int = 0, once: bool = False, say: Say
) -> FaultChain:
    """The faults that a scenario writes down, then those of these names. Raises `UsageError`."""
    tell = teller(say)
    written = _written(scenario, tell) if scenario else []
    if not names and not written:
        raise UsageError("no fault; give --fault ID, or see them all: harness faulty --list")
    faults = [live_fault(name) for name in names]
    surfaces = {SESSION: "the scenario"} if written else {}
    surfaces |= {all_rules()[fault.rule].surface: fault.id for fault in faults}
    if len(surfaces) > 1:
        sides = " and ".join(surfaces.values())
        raise UsageError(f"{sides} are of different surfaces: {' and '.join(surfaces)}; give one")
    classify = classify_of(next(iter(surfaces)))
    named = [
        LiveFault(fault, after=after, once=once, classify=classify, tell=tell) for fault in faults
    ]
    return FaultChain([*written, *named])


def _written(name: str, tell: Told) -> list[LiveFault]:
    """The faults of a scenario, by its file or id. Raises `UsageError`."""
    files = [Path(name)] if Path(name).is_file() else named_files([name])
    if len(files) != 1:
        raise UsageError(f"{name}: {len(files)} scenarios; name one")
    entries = load(files[0], lexicon=protocol_lexicon()).scenario.faults
    if not entries:
        raise UsageError(f"{name}: it has no faults; harness docs scenarios says how to write them")
    return live_faults(entries, tell)


def serve(command: Sequence[str], live: FaultChain, *, quiet: float, say: Say) -> int:
    """Run a server on our standard streams with faults at work; gives its exit status.

    Below 0 is the signal that ended it. Raises `UsageError` where it cannot be started.
    """
    return anyio.run(_serve, found(command), live, quiet, say)


def found(command: Sequence[str]) -> list[str]:
    """The words of the server's command, its program found. Raises `UsageError`."""
    if not command:
        example = "harness faulty … -- agent app-server"
        raise UsageError(f"no server; write its command behind --: {example}")
    return find_program(command, OPTION)


async def _serve(command: list[str], live: FaultChain, quiet: float, say: Say) -> int:
    with anyio.open_signal_receiver(*passed_on()) as signals:
        try:
            process = await anyio.open_process(
                command, stdin=PIPE, stdout=PIPE, stderr=None, start_new_session=True
            )
        except OSError as error:
            raise NotStarted(why_not_started(command, error, OPTION)) from error
        async with process, anyio.create_task_group() as tasks:
            client = OwnStreams()
            relay = Relay(client, ProcessStreams(process), live, quiet=quiet)

            async def pass_signals_on() -> None:
                async for number in signals:
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
            await _to_the_end(process, relay)
            await push_out(process)
            tasks.cancel_scope.cancel()
    _tell_the_end(live, say)
    return process.returncode or 0


async def _to_the_end(process: Process, relay: Relay) -> None:
    """Pass on what the server says until it has ended, and what it left in its pipe."""
    async with anyio.create_task_group() as reading:

        async def end() -> None:
            await process.wait()
            with anyio.move_on_after(DRAIN):
                await read.wait()
            reading.cancel_scope.cancel()

        read = anyio.Event()
        reading.start_soon(end)
        with contextlib.suppress(TargetGone):
            await relay.from_server()
        read.set()
        reading.cancel_scope.cancel()


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


def _tell_the_end(live: FaultChain, say: Say) -> None:
    for one in live.faults:
        if not one.acted:
            why = f": {one.missing}" if one.missing else ""
            say(f"faulty: {one.fault.id}: it never acted{why}")


def end_like(status: int) -> None:
    """End this process as the server ended, by a signal or with a status; does not come back."""
    if status < 0:
        # The core of the server was dumped if at all; ours would be of no use.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        with contextlib.suppress(OSError):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    raise SystemExit(status if status >= 0 else 128 - status)
