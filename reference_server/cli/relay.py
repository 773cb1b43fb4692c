"""`app-server` of a program that a stage has written: a relay between a client and that stage.

It only passes bytes on, so a client that kills it ends its connection and loses no verdict. The
first line to the stage is a JSON object with the settings of the command line.
"""

import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Sequence

from reference_server.cli.one_message import OneMessageParser, add_options_without_effect
from reference_server.cli.surroundings import UsageError, check_streams, complain
from reference_server.program_start import first_line

STANDARD_STREAMS = ("stdio", "stdio://")
_CHUNK = 1 << 16


def run(socket_path: str, arguments: Sequence[str]) -> int:
    """Pass messages between the standard streams and the stage until either ends.

    Return 0; 1 if the stage has ended; 2 for wrong usage, with a line on standard error.
    """
    try:
        settings = _parse(arguments)
        check_streams()
    except UsageError as error:
        complain(str(error))
        return 2
    # The end of a client's process group must not print a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with socket.socket(socket.AF_UNIX) as stage:
        try:
            stage.connect(socket_path)
            stage.sendall(first_line(settings))
        except OSError as error:
            complain(
                f"agent app-server: the server of this program has ended ({error.strerror}): "
                "it lives as long as the `agent app-server --program` that wrote it"
            )
            return 1
        _relay(stage)
    return 0


def _parse(arguments: Sequence[str]) -> list[str]:
    """Return the settings as `key=value`. Raises UsageError for wrong usage."""
    from reference_server.config.arguments import add_settings_options

    parser = OneMessageParser(
        prog="agent app-server",
        description="Play a scenario to this client: the server that wrote this program has it.",
    )
    parser.add_argument(
        "--listen",
        choices=STANDARD_STREAMS,
        help="standard input and output, the only address of this program",
    )
    add_options_without_effect(parser)
    add_settings_options(parser)
    return parser.parse_args(arguments).config


def _relay(stage: socket.socket) -> None:
    """Copy both ways until the stage closes the connection, or the client no longer reads."""

    def from_client() -> None:
        try:
            _copy(lambda: _read(0), stage.sendall)
            stage.shutdown(socket.SHUT_WR)
        except OSError:
            return  # The stage has closed the connection, which the other direction notices.

    # A daemon: it may wait for a client that has more to say when the stage has ended.
    threading.Thread(target=from_client, daemon=True).start()
    try:
        _copy(lambda: stage.recv(_CHUNK), lambda data: _write(1, data))
    except OSError:
        return  # The client no longer reads, or the stage was killed.


def _copy(read: Callable[[], bytes], write: Callable[[bytes], object]) -> None:
    while data := read():
        write(data)


def _read(descriptor: int) -> bytes:
    while True:
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:  # The client shares its own end, which does not block.
            select.select([descriptor], [], [])


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
