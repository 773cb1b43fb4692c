"""`harness record` with sockets: clients that connect to us, or a server that we connect to."""

import contextlib
import functools
from collections.abc import Sequence

import anyio

from harness.cli.commands.proxy import found, passed_on
from harness.cli.commands.proxy_sockets import Between, check_listen, hold, taking_clients
from harness.cli.commands.record import NEVER, OPTION, Recording, note_start, with_model
from harness.cli.commands.socket_sides import connected
from harness.cli.commands.standard_streams import OwnStreams
from harness.client.transport.connect import check_address
from harness.errors import UsageError
from harness.faults.live.relay import Relay
from harness.trace.marks import RecorderNote
from harness.trace.record.file import RecordingFile
from harness.trace.record.masks import Masker
from harness.trace.record.tap import Tap
from harness.trace.surfaces import SESSION
from harness.trace.trace import End


def record_sockets(
    command: Sequence[str], recording: Recording, masker: Masker, *, listen: str, to: str
) -> int:
    """Record clients that connect to `listen`, or a client on our standard streams, with a server
    that is started, or one that runs at the address `to`; gives the exit status.

    Raises `UsageError`.
    """
    if recording.surface != SESSION:
        raise UsageError(f"--surface {recording.surface} has no sockets; leave --listen out")
    if to and command:
        raise UsageError("--connect names a server that runs; leave out the command behind --")
    if to:
        check_address(to)
    else:
        found(command, OPTION)
    if listen:
        check_listen(listen)
    file = recording.open(masker)
    run = functools.partial(_recorded, command, recording, file, masker, listen, to)
    return anyio.run(run)


async def _recorded(
    command: Sequence[str],
    recording: Recording,
    file: RecordingFile,
    masker: Masker,
    listen: str,
    to: str,
) -> int:
    with file.kept(lambda: End.CLOSED):
        async with with_model(command, recording, file) as (words, env):
            note_start(file, masker, words or [to])
            if not listen:
                return await _on_our_streams(to, Tap(file, masker))
            taps: dict[int, Tap] = {}

            def tap(number: int) -> Tap:
                taps[number] = Tap(file, masker, f"c{number}")
                return taps[number]

            def left(number: int) -> None:
                taps[number].closed()

            between = Between(tap, NEVER, recording.say, OPTION, left, env, to)
            status = await taking_clients(listen, words, between)
            for client_tap in taps.values():
                client_tap.closed()
            file.mark(RecorderNote("nobody is listened to any more"))
            return status


async def _on_our_streams(to: str, tap: Tap) -> int:
    """A client on our standard streams, and a server at an address."""
    try:
        server = await connected(to)
    except OSError as error:
        raise UsageError(f"--connect {to}: nobody can be reached there: {error}") from error
    status = 0
    with anyio.open_signal_receiver(*passed_on()) as signals:
        async with server, anyio.create_task_group() as tasks:

            async def stop() -> None:
                nonlocal status
                async for number in signals:
                    status = -number
                    tasks.cancel_scope.cancel()

            tasks.start_soon(stop)
            with contextlib.suppress(TimeoutError):
                await hold(Relay(OwnStreams(), server, tap, quiet=NEVER))
            tasks.cancel_scope.cancel()
    return status
