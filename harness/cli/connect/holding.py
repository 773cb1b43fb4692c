"""The course of one conversation by hand: its server, signals, the exit status."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from signal import Signals

import anyio

from harness.cli.connect.actions import Actions
from harness.cli.connect.display import Display
from harness.cli.connect.serving import ConnectOptions, LiveServer, open_live_server
from harness.cli.connect.summary import finish
from harness.cli.connect.talk import Judging
from harness.errors import TargetError, UsageError

MISTAKE_STATUS = 2
"""The exit status if a line could not be executed."""
# Executes the user's lines until the last; returns whether none of them was a mistake.
Lines = Callable[[LiveServer, Actions], Awaitable[bool]]


async def hold_conversation(
    options: ConnectOptions,
    judging: Judging,
    base: Path,
    display: Display,
    lines: Lines,
    *,
    patient: bool,
    ends: tuple[Signals, ...],
) -> int:
    """Hold the conversation until its lines or one of these signals end it.

    Return the exit status. With `patient` requests are awaited. Raises `UsageError`.
    """
    status = stopped = 0
    problem: UsageError | None = None
    with anyio.open_signal_receiver(*ends) as signals:
        async with open_live_server(options, judging, display, base) as serves:
            actions = Actions(serves, patient=patient)
            async with anyio.create_task_group() as tasks:

                async def until_signalled() -> None:
                    nonlocal stopped
                    async for number in signals:
                        stopped = number
                        tasks.cancel_scope.cancel()

                tasks.start_soon(until_signalled)
                try:
                    await serves.start()
                    right = await lines(serves, actions)
                    status = await finish(serves, actions, patient=patient, stopped=False)
                    status = status if right else MISTAKE_STATUS
                except (TargetError, UsageError) as error:
                    problem = UsageError(str(error))
                tasks.cancel_scope.cancel()
            if stopped and problem is None:
                await finish(serves, actions, patient=patient, stopped=True)
                status = 128 + stopped
    # Raised within the blocks, it would come out as an exception group.
    if problem is not None:
        raise problem
    return status
