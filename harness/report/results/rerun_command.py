"""The commands that a report shows: to play something again, with or without the harness."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.scenario.race_id import RaceId
from harness.trace.surfaces import COMMAND, EXEC, SDK, SESSION

# Surface of a play -> surfaces whose programs it needs, if there are several.
_RELATED_SURFACES = {EXEC: (SESSION, EXEC), SDK: (SESSION, EXEC, SDK)}


@dataclass(frozen=True, slots=True)
class Programs:
    """The judged target, and the commands of server, agent and SDK, each as one text.

    "" is a command that the run does not have. `required` is the value of `--require`.
    """

    target: str
    server: str = ""
    agent: str = ""
    sdk: str = ""
    confined: bool = False
    required: str = ""

    def options(self, *surfaces: str) -> list[str]:
        """Return the options that name the programs again, for plays on these surfaces.

        The reports of an agent or an SDK are compared with those of the session, and an SDK is
        played on an agent: so those are named too.
        """
        needed = {
            related
            for surface in surfaces
            for related in _RELATED_SURFACES.get(surface, (surface,))
        }
        named = {
            "--server-cmd": self.server if SESSION in needed else "",
            "--agent-cmd": self.agent if {EXEC, COMMAND} & needed else "",
            "--sdk-cmd": self.sdk if SDK in needed else "",
        }
        words = [word for option, text in named.items() if text for word in (option, text)]
        return ["--target", self.target, *words, *["--confine"] * self.confined]


def replay_command(
    programs: Programs,
    surfaces: Sequence[str],
    paths: Sequence[str],
    *,
    rule: str = "",
    race: str = "",
) -> str:
    """Return the one command that plays scenario files again, on these surfaces."""
    words = ["harness", "run", *programs.options(*surfaces)]
    words += ["--require", programs.required] if programs.required else []
    words += ["--race", race] if race else []
    words += ["--rule", rule] if rule else []
    return shlex.join([*words, *map(near_path, paths)])


def doctor_command(programs: Programs, surface: str) -> str:
    """Return the `harness doctor` command, for a server or an agent that cannot be judged."""
    return shlex.join(["harness", "doctor", *programs.options(surface)])


def reproduction(trace: str, target: str, surface: str = SESSION) -> list[str]:
    """Return commands that judge a trace again, and that repeat it without the harness.

    The trace of another surface than the session's shows how each process was started, and its
    input.
    """
    path = shlex.quote(near_path(trace))
    # A trace holds its renames; known deviations are only in the profile.
    target_option = "" if target == "spec" else f"--target {shlex.quote(target)} "
    judge = f"judge     harness check {target_option}{path}"
    if surface != SESSION:
        return [judge, f"by hand   harness show {path} has the words of each process"]
    return [
        judge,
        f"by hand   harness show --stdin {path} > in.jsonl; {{ cat in.jsonl; cat; }} | SERVER",
        "          (keep stdin open; ids that the server makes anew and the model's side "
        "are not in it)",
    ]


def near_path(path: str) -> str:
    """Return a path as the user would type it: relative if it lies below the current folder."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def scenario_argument(path: str, scenario: str) -> str:
    """Return a scenario's argument for a command: its file, or its id if the file holds several."""
    return RaceId.parse(scenario).scenario if path.endswith(".family.yaml") else path
