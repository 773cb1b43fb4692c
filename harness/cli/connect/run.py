"""`harness connect` from beginning to end, in a terminal or with a pipe."""

import os
import signal
from pathlib import Path

import anyio

from harness.cli.connect.actions import Actions
from harness.cli.connect.display import Display, Write
from harness.cli.connect.holding import hold_conversation
from harness.cli.connect.piped import do_lines
from harness.cli.connect.serving import ConnectOptions, LiveServer
from harness.cli.connect.talk import Judging

_END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(
    options: ConnectOptions, judging: Judging, base: Path, write: Write, complain: Write
) -> int:
    """Hold the conversation and return the exit status. Raises `UsageError`."""
    if os.isatty(0) and os.isatty(1):
        from harness.cli.connect.terminal import at_terminal

        return anyio.run(at_terminal, options, judging, base)
    return anyio.run(_run_piped, options, judging, base, write, complain)


async def _run_piped(
    options: ConnectOptions, judging: Judging, base: Path, write: Write, complain: Write
) -> int:
    async def lines(_: LiveServer, actions: Actions) -> bool:
        return await do_lines(actions, complain)

    display = Display(write, judging.book, colour=False)
    return await hold_conversation(
        options, judging, base, display, lines, patient=True, ends=_END_SIGNALS
    )
