"""The course of one conversation by hand: server, signals, open duties, findings, exit status."""

from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from signal import Signals

import anyio

from harness.cli.connect.actions import Actions
from harness.cli.connect.display import Display
from harness.cli.connect.live_server import ConnectOptions, LiveServer, open_live_server
from harness.cli.connect.talk import Judging, Rest
from harness.errors import TargetError, UsageError
from harness.judge.verdict import Verdict
from harness.trace.trace import End

_WHY = {
    Rest.ASKS: "the server waits for an answer",
    Rest.HELD: "an answer of the model was held",
    Rest.BUSY: "messages still come",
    Rest.GONE: "the connection is gone",
    Rest.SILENT: "something is still under way",
}


async def finish(server: LiveServer, actions: Actions, *, patient: bool, stopped: bool) -> int:
    """Judge the end, print the number of findings, and return the exit status.

    1 if a MUST was broken, the server ended by itself, or a wait was given up, else 0. With
    `patient`, wait for the bound of a step; with `stopped`, a signal came: do not wait at all.
    """
    talk = server.talk
    rest = Rest.BUSY
    if not stopped:
        settle = server.options.bounds.settle
        rest = await (actions.wait() if patient else talk.wait_rest(settle, settle))
    # A silent server without running children that waits for nothing has ended its work.
    waited = rest is Rest.SILENT and patient and not server.has_new_children
    end = End.QUIESCENT if rest is Rest.AT_REST or waited else End.CLOSED
    if talk.ended_unasked:
        end = End.EXITED
    passed = talk.finish(end)
    say = server.display.note
    server.display.user_spoke()
    if end is not End.QUIESCENT and talk.open_duties:
        say(f"what never came is not judged, since {_WHY.get(rest, 'it was ended')}:", "")
        for duty in talk.open_duties[:5]:
            say(f"  {duty}", "")
    counts = Counter(
        _word(row.level, row.verdict, known_reason) for row, known_reason in talk.findings
    )
    count_words = ", ".join(f"{word} {counts[word]}" for word in _ORDER if counts[word]) or "none"
    messages = len(talk.recorder.trace.frames)
    say(f"{messages} messages; {len(passed)} rules passed; findings: {count_words}", "bold")
    return 1 if talk.red or talk.ended_unasked or actions.timeouts else 0


_ORDER = ("ERROR", "MUST", "SHOULD", "INFO", "KNOWN")


def _word(level: str, verdict: Verdict, known_reason: str) -> str:
    return "ERROR" if verdict is Verdict.ERROR else "KNOWN" if known_reason else str(level)


MISTAKE_STATUS = 2
"""The exit status if a line could not be executed."""
# Function that executes the user's lines; it returns whether none of them was a mistake.
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
    """Execute `lines` on a server until they end or a signal of `ends` comes.

    Return the exit status. With `patient` requests are awaited. Raises `UsageError` if the server
    cannot be started or reached, or its model cannot listen.
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
