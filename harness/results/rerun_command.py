"""The commands that a report shows: to play something again, with the harness or without it.

Here: command lines, quoted so that they can be pasted into a shell, and paths as a user would type
them. Not here: stories (report.story), and what the options mean (cli).
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

from harness.scenario.race_id import RaceId


def play_again(
    target: str,
    command: str,
    paths: Sequence[str],
    *,
    rule: str = "",
    race: str = "",
    agent: str = "",
) -> str:
    """The one command that plays scenario files again; `command` is the server's, as one text.

    With `agent`, the command of an agent, they are played on its `exec` instead.
    """
    words = ["harness", "run", *_target(target, command, agent)]
    words += ["--race", race] if race else []
    words += ["--rule", rule] if rule else []
    return shlex.join([*words, *map(near_path, paths)])


def examine_again(target: str, command: str, agent: str = "") -> str:
    """The `harness doctor` command, for a server, or an agent, that cannot be judged."""
    return shlex.join(["harness", "doctor", *_target(target, command, agent)])


def reproduction(trace: str, target: str, *, program: bool = False) -> list[str]:
    """How to judge a trace again, and how to repeat it without the harness.

    The trace of a `program` shows how each process was started, and what it read.
    """
    path = shlex.quote(near_path(trace))
    # A trace holds its renames; known deviations are only in the profile.
    known = "" if target == "spec" else f"--target {shlex.quote(target)} "
    judge = f"judge     harness check {known}{path}"
    if program:
        return [judge, f"without us  harness show {path} has the words of each process"]
    return [
        judge,
        f"without us  harness show --stdin {path} > in.jsonl; {{ cat in.jsonl; cat; }} | SERVER",
        "            (keep stdin open; ids that the server makes anew and the model's side "
        "are not in it)",
    ]


def near_path(path: str) -> str:
    """A path as the user would type it: relative where it lies below the current folder."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def named(path: str, scenario: str) -> str:
    """What names a scenario on a command line: its file, or its id where the file holds several."""
    return RaceId.parse(scenario).scenario if path.endswith(".family.yaml") else path


def _target(target: str, command: str, agent: str) -> list[str]:
    words = ["--agent-cmd", agent] if agent else ["--server-cmd", command] if command else []
    return ["--target", target, *words]
