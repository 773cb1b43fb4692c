"""`harness connect` from beginning to end.

At a terminal it has a prompt. Otherwise lines come from a file or a pipe, and events are printed as
they happen.
"""

import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import anyio
import anyio.lowlevel

from harness.cli.connect.actions import Actions
from harness.cli.connect.conversation import hold_conversation
from harness.cli.connect.display import Display, Write
from harness.cli.connect.live_server import ConnectOptions, LiveServer
from harness.cli.connect.talk import Judging
from harness.errors import UsageError

_CHUNK = 64 * 1024
# A line longer than this is cut there.
_MAX_LINE_BYTES = 16 * 1024 * 1024

Mistake = Callable[[str], None]


async def do_lines(actions: Actions, mistake: Mistake) -> bool:
    """Execute the lines of standard input; return whether none of them was a mistake.

    It ends early at `:quit`. Once the server is gone only commands are executed.
    """
    right, number, left_out = True, 0, 0
    async for line in _lines():
        number += 1
        if actions.talk.is_closed and not line.lstrip().startswith(":"):
            left_out += 1
            continue
        try:
            await actions.do(line)
        except UsageError as error:
            if not actions.talk.is_closed:
                right = False
                mistake(f"line {number}: {error}")
        if actions.has_ended:
            break
    if left_out:
        mistake(f"{left_out} of {number} lines were not sent: the server was gone")
    return right


async def _lines() -> AsyncGenerator[str]:
    rest = b""
    while chunk := await _read():
        rest += chunk
        *lines, rest = rest.split(b"\n")
        for line in lines:
            yield _text(line)
        if len(rest) > _MAX_LINE_BYTES:
            yield _text(rest)
            rest = b""
    if rest:
        yield _text(rest)


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "surrogateescape")


async def _read() -> bytes:
    await _wait_ready(anyio.wait_readable, 0)
    try:
        return os.read(0, _CHUNK)
    except OSError:
        return b""


async def _wait_ready(wait: Callable[[int], Awaitable[None]], descriptor: int) -> None:
    try:
        await wait(descriptor)
    except (PermissionError, ValueError):
        # A regular file can always be read.
        await anyio.lowlevel.checkpoint()


_END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(
    options: ConnectOptions, judging: Judging, base: Path, write: Write, complain: Write
) -> int:
    """Hold the conversation and return the exit status.

    `complain` gets the mistakes in piped lines. Raises `UsageError` if the server cannot be started
    or reached, or its model cannot listen.
    """
    if os.isatty(0) and os.isatty(1):
        from harness.cli.connect.terminal import at_terminal

        return anyio.run(at_terminal, options, judging, base)
    return anyio.run(_run_piped, options, judging, base, write, complain)


async def _run_piped(
    options: ConnectOptions, judging: Judging, base: Path, write: Write, complain: Write
) -> int:
    async def lines(_: LiveServer, actions: Actions) -> bool:
        return await do_lines(actions, complain)

    known = judging.profile.deviations
    display = Display(write, judging.book, colour=False, deviations=known)
    return await hold_conversation(
        options, judging, base, display, lines, patient=True, ends=_END_SIGNALS
    )
