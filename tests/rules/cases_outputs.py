"""Cases of the rules on the output of commands whose output is certain."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.case import Case, Found, running
from tests.rules.traces import Talk, command

CALL = "item c-1 of turn turn_1"
OUTPUT = "item/commandExecution/outputDelta"
BOTH = "/bin/bash -lc 'echo to one; sleep 0.5; echo to  the other >&2'"


def ran(said: str, *deltas: str, **more: Any) -> Talk:
    """A command from its start, seq 9, to its end, with its deltas in between."""
    return ended(running(), "c-1", said, *deltas, **more)


def ended(talk: Talk, item: str, said: str, *deltas: str, **more: Any) -> Talk:
    shows = {"exitCode": 0, **more}
    talk.started(command(item, command=said))
    for delta in deltas:
        talk.delta(item, delta, method=OUTPUT)
    return talk.completed(command(item, "completed", **{"command": said, **shows}))


CASES = [
    Case(
        rule="item.command-output",
        good=ran(BOTH, aggregatedOutput="to the other\r\nto one\r\n"),
        witnesses=(CALL,),
        bad=ended(
            ran("echo out1 && echo err1 >&2; echo late", aggregatedOutput="late\n"),
            "c-2",
            "echo twice; echo twice",
            aggregatedOutput="twice\n",
        ),
        found=(Found(CALL, (10,)), Found("item c-2 of turn turn_1", (12,))),
        # What it prints is not certain; it failed; no output is kept; another type of item.
        not_exercised=ended(
            ended(
                ended(
                    ended(
                        ran("echo $HOME", aggregatedOutput=""), "c-2", "cat x", aggregatedOutput=""
                    ),
                    "c-3",
                    "echo a",
                    aggregatedOutput="",
                    exitCode=1,
                ),
                "c-4",
                "echo a",
            ),
            "c-5",
            "echo 'a",
            aggregatedOutput="",
        ),
    ),
    Case(
        rule="delta.both-streams",
        good=ran(BOTH, "to one\n", "to the ", "other\n"),
        witnesses=(CALL,),
        bad=ended(ran(BOTH, "to one\n"), "c-2", BOTH, "to the other\n"),
        found=(
            Found(CALL, (10, 10, 11), Level.SHOULD),
            Found("item c-2 of turn turn_1", (13, 13, 14), Level.SHOULD),
        ),
        # No deltas; one stream only.
        not_exercised=ended(ran(BOTH), "c-2", "echo a", "a\n"),
    ),
]
