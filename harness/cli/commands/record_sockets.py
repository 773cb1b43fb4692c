"""`harness record` with sockets: clients that connect, or a server to connect to."""

import contextlib
import functools
from collections.abc import Sequence

import anyio

from harness.cli.commands.proxy import find_server, forwarded_signals
from harness.cli.commands.proxy_sockets import (
    RelayOptions,
    check_listen,
    hold_conversation,
    serve_clients,
)
from harness.cli.commands.record import NEVER_QUIET, OPTION, Recording, note_start, with_model
from harness.cli.commands.socket_sides import connect_to
from harness.cli.commands.standard_streams import OwnStreams
from harness.cli.end_signals import received_signals
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
    """Record clients that connect to `listen`, or one on our standard streams.

    The server is started, or runs at `to`. Return the exit status. Raises `UsageError` if the
    options contradict each other, or if an address, the command or the file is not usable.
    """
    if recording.surface != SESSION:
        raise UsageError(f"--surface {recording.surface} has no sockets; leave --listen out")
    if to and command:
        raise UsageError("--connect names a server that runs; leave out the command behind --")
    if to:
        check_address(to)
    else:
        find_server(command, OPTION)
    if listen:
        check_listen(listen)
    file = recording.open(masker)
    run = functools.partial(_record, command, recording, file, masker, listen, to)
    return anyio.run(run)


async def _record(
    command: Sequence[str],
    recording: Recording,
    file: RecordingFile,
    masker: Masker,
    listen: str,
    to: str,
) -> int:
    with file.close_with(lambda: End.CLOSED):
        async with with_model(command, recording, file) as (words, env):
            note_start(file, masker, words or [to])
            if not listen:
                return await _record_own_streams(to, Tap(file, masker))
            taps: dict[int, Tap] = {}

            def tap(number: int) -> Tap:
                taps[number] = Tap(file, masker, f"c{number}")
                return taps[number]

            def close_tap(number: int) -> None:
                taps[number].mark_closed()

            between = RelayOptions(tap, NEVER_QUIET, recording.say, OPTION, close_tap, env, to)
            status = await serve_clients(listen, words, between)
            for client_tap in taps.values():
                client_tap.mark_closed()
            file.write_mark(RecorderNote("nobody is listened to any more"))
            return status


async def _record_own_streams(to: str, tap: Tap) -> int:
    """Record a client on our standard streams with a server at an address."""
    try:
        server = await connect_to(to)
    except OSError as error:
        raise UsageError(f"--connect {to}: nobody can be reached there: {error}") from error
    status = 0
    relay = Relay(OwnStreams(), server, tap, quiet_seconds=NEVER_QUIET)
    with received_signals(forwarded_signals()) as signals:
        async with server, anyio.create_task_group() as tasks:

            async def stop() -> None:
                nonlocal status
                async for number in signals:
                    status = -number
                    relay.note_client_left()
                    tasks.cancel_scope.cancel()

            tasks.start_soon(stop)
            with contextlib.suppress(TimeoutError):
                await hold_conversation(relay)
            tasks.cancel_scope.cancel()
    return status
