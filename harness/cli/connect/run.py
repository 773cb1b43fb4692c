"""`harness connect` from its beginning to its end, in a terminal or with a pipe."""

import os
import signal
from pathlib import Path

import anyio

from harness.cli.connect.actions import Actions
from harness.cli.connect.display import Display, Write
from harness.cli.connect.holding import hold
from harness.cli.connect.piped import follow
from harness.cli.connect.serving import Serving, Wanted
from harness.cli.connect.talk import Judging

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(wanted: Wanted, judging: Judging, base: Path, write: Write, complain: Write) -> int:
    """Hold the conversation; gives the exit status. Raises `UsageError`."""
    if os.isatty(0) and os.isatty(1):
        from harness.cli.connect.terminal import at_terminal

        return anyio.run(at_terminal, wanted, judging, base)
    return anyio.run(_piped, wanted, judging, base, write, complain)


async def _piped(
    wanted: Wanted, judging: Judging, base: Path, write: Write, complain: Write
) -> int:
    async def lines(_: Serving, actions: Actions) -> bool:
        return await follow(actions, complain)

    display = Display(write, judging.book, colour=False)
    return await hold(wanted, judging, base, display, lines, patient=True, ends=_ENDS)
