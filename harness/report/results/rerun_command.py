"""The commands that a report shows: to play something again, with the harness or without it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.scenario.race_id import RaceId
from harness.trace.surfaces import COMMAND, EXEC, SDK, SESSION

# The surfaces whose programs a play on one of them has to do with, beside its own.
_NEEDED = {EXEC: (SESSION, EXEC), SDK: (SESSION, EXEC, SDK)}


@dataclass(frozen=True, slots=True)
class Programs:
    """The judged target, and the commands of server, agent and SDK, each one text.

    "" is one that the run does not have.
    """

    target: str
    server: str = ""
    agent: str = ""
    sdk: str = ""

    def options(self, *surfaces: str) -> list[str]:
        """The options that name them again, for plays on these surfaces.

        What an agent or an SDK told is compared with what the session told, and an SDK is played on
        an agent: so those are named too.
        """
        wanted = {one for surface in surfaces for one in _NEEDED.get(surface, (surface,))}
        named = {
            "--server-cmd": self.server if SESSION in wanted else "",
            "--agent-cmd": self.agent if {EXEC, COMMAND} & wanted else "",
            "--sdk-cmd": self.sdk if SDK in wanted else "",
        }
        given = [word for option, text in named.items() if text for word in (option, text)]
        return ["--target", self.target, *given]


def play_again(
    programs: Programs,
    surfaces: Sequence[str],
    paths: Sequence[str],
    *,
    rule: str = "",
    race: str = "",
) -> str:
    """The one command that plays scenario files again, on these surfaces."""
    words = ["harness", "run", *programs.options(*surfaces)]
    words += ["--race", race] if race else []
    words += ["--rule", rule] if rule else []
    return shlex.join([*words, *map(near_path, paths)])


def examine_again(programs: Programs, surface: str) -> str:
    """The `harness doctor` command, for a server, or an agent, that cannot be judged."""
    return shlex.join(["harness", "doctor", *programs.options(surface)])


def reproduction(trace: str, target: str, surface: str = SESSION) -> list[str]:
    """Return commands that judge a trace again, and that repeat it without the harness.

    The trace of another surface than the session's shows how each process was started, and what it
    read.
    """
    path = shlex.quote(near_path(trace))
    # A trace holds its renames; known deviations are only in the profile.
    known = "" if target == "spec" else f"--target {shlex.quote(target)} "
    judge = f"judge     harness check {known}{path}"
    if surface != SESSION:
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
    """Name a scenario for a command line: its file, or its id if the file holds several."""
    return RaceId.parse(scenario).scenario if path.endswith(".family.yaml") else path
