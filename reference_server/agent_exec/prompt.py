"""Reading of the prompt, from the argument or standard input.

Input that is not needed is read too, within limits, so that its writer gets no broken pipe.
"""

import os
import select
import stat
import time

from reference_server.agent_exec.ending import NotBegun

PROMPT_LIMIT = 8 << 20
"""Maximum bytes of a prompt; a line of the app server has at most 10 MiB."""
_SILENCE_SECONDS = 0.5
"""Seconds without a byte after which draining ends."""
_DRAIN_SECONDS = 5.0
"""Maximum seconds of draining."""
_PIECE = 1 << 16


def prompt_of(argument: str | None) -> str:
    """Return the prompt, "" for none. Blocks until standard input ends, if that is the source.

    Raises NotBegun if the prompt is unreadable, too long or not UTF-8.
    """
    if argument is None or argument == "-":
        return _decode(_read_input(), "standard input")
    try:
        argument.encode()
    except UnicodeEncodeError:
        raise NotBegun("agent exec: the prompt is not valid UTF-8") from None
    if len(argument.encode()) > PROMPT_LIMIT:
        raise _too_long("the argument")
    return argument


def _read_input() -> bytes:
    pieces: list[bytes] = []
    size = 0
    try:
        while piece := os.read(0, _PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > PROMPT_LIMIT:
                raise _too_long("standard input")
    except OSError as error:
        raise NotBegun(f"agent exec: standard input cannot be read: {error.strerror}") from None
    return b"".join(pieces)


def _decode(data: bytes, source: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotBegun(
            f"agent exec: the prompt on {source} is not valid UTF-8 (byte {error.start + 1})"
        ) from None


def _too_long(source: str) -> NotBegun:
    return NotBegun(
        f"agent exec: the prompt on {source} is longer than {PROMPT_LIMIT >> 20} MiB; put it into "
        "a file and ask for that"
    )


def drain_input() -> None:
    """Read the rest of standard input, a pipe or socket, so that its writer gets no broken pipe."""
    try:
        mode = os.fstat(0).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            return
        end = time.monotonic() + _DRAIN_SECONDS
        while (remaining := end - time.monotonic()) > 0:
            ready, _, _ = select.select([0], [], [], min(remaining, _SILENCE_SECONDS))
            if not ready or not os.read(0, _PIECE):
                return
    except OSError:
        return
