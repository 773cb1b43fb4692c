"""One conversation by hand from its start to its end: its server, signals, the exit status."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from signal import Signals

import anyio

from harness.cli.connect.actions import Actions
from harness.cli.connect.display import Display
from harness.cli.connect.serving import Serving, Wanted, serving
from harness.cli.connect.summary import finish
from harness.cli.connect.talk import Judging
from harness.errors import TargetError, UsageError

MISTAKE = 2
"""The exit status where a line could not be done."""
# Does the user's lines until there are no more; gives whether none of them was a mistake.
Lines = Callable[[Serving, Actions], Awaitable[bool]]


async def hold(
    wanted: Wanted,
    judging: Judging,
    base: Path,
    display: Display,
    lines: Lines,
    *,
    patient: bool,
    ends: tuple[Signals, ...],
) -> int:
    """Hold the conversation until its lines or one of these signals end it.

    Gives the exit status. `patient` is for who does not look on. Raises `UsageError`.
    """
    status = stopped = 0
    problem: UsageError | None = None
    with anyio.open_signal_receiver(*ends) as signals:
        async with serving(wanted, judging, display, base) as serves:
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
                    status = status if right else MISTAKE
                except (TargetError, UsageError) as error:
                    problem = UsageError(str(error))
                tasks.cancel_scope.cancel()
            if stopped and problem is None:
                await finish(serves, actions, patient=patient, stopped=True)
                status = 128 + stopped
    # Raised within the blocks, it would come out as a group of errors.
    if problem is not None:
        raise problem
    return status
