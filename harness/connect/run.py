"""`harness connect` from its beginning to its end, in a terminal or with a pipe.

Here: the choice of the form, signals, the exit status. Not here: options (commands).
"""

import os
import signal
from pathlib import Path

import anyio

from harness.connect.actions import Actions
from harness.connect.display import Display, Write
from harness.connect.piped import follow
from harness.connect.serving import Wanted, serving
from harness.connect.summary import finish
from harness.connect.talk import Judging
from harness.errors import TargetError, UsageError

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MISTAKE = 2
"""The exit status where a line could not be done."""


def run(wanted: Wanted, judging: Judging, base: Path, write: Write, complain: Write) -> int:
    """Hold the conversation; gives the exit status. Raises `UsageError`."""
    if os.isatty(0) and os.isatty(1):
        from harness.connect.terminal import at_terminal

        return anyio.run(at_terminal, wanted, judging, base)
    return anyio.run(_piped, wanted, judging, base, write, complain)


async def _piped(
    wanted: Wanted, judging: Judging, base: Path, write: Write, complain: Write
) -> int:
    display = Display(write, judging.book, colour=False)
    status = 0
    problem: UsageError | None = None
    with anyio.open_signal_receiver(*_ENDS) as signals:
        async with serving(wanted, judging, display, base) as serves:
            stopped = 0
            actions = Actions(serves, patient=True)
            async with anyio.create_task_group() as tasks:

                async def until_signalled() -> None:
                    nonlocal stopped
                    async for number in signals:
                        stopped = number
                        tasks.cancel_scope.cancel()

                tasks.start_soon(until_signalled)
                try:
                    await serves.start()
                    right = await follow(actions, complain)
                    status = await finish(serves, actions, patient=True, stopped=False)
                    status = status if right else MISTAKE
                except (TargetError, UsageError) as error:
                    problem = UsageError(str(error))
                tasks.cancel_scope.cancel()
            if stopped and problem is None:
                await finish(serves, actions, patient=True, stopped=True)
                status = 128 + stopped
    if problem is not None:
        raise problem
    return status
