"""What a target needs of this machine, asked before anything is played.

A server can keep some promises only with a program of the machine, as a sandbox is made with
bubblewrap. A profile names it under `[host.CAPABILITY]`, with a harmless command that shows whether
it is there and works.

Here: running that command, bounded, and saying in one line what lacks and what to do about it. Not
here: what becomes of scenarios and rules that need it (suite.withheld).
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from harness.target.profile import Profile, Program

BOUND = 10.0
"""Seconds that the command of a program may take."""
_LONGEST = 120


@dataclass(frozen=True, slots=True)
class Lack:
    """A capability that cannot be had on this machine, the program that it wants, why, what to do.

    All are texts, so that a worker can be told what the controller found.
    """

    capability: str
    program: str
    why: str
    advice: str

    @property
    def reason(self) -> str:
        """Why what needs the capability is not judged, in one line."""
        return f"this machine cannot do {self.capability}: {self.why}; {self.advice}"


def lacks_of(profile: Profile) -> tuple[Lack, ...]:
    """What this machine lacks of what the profile promises, or would be probed for."""
    promised = profile.capabilities
    return tuple(
        lack
        for capability, program in profile.host.items()
        if promised == "probe" or capability in promised
        for lack in _asked(capability, program)
    )


def _asked(capability: str, program: Program) -> Iterator[Lack]:
    name, *arguments = program.command
    path = os.pathsep.join([*program.places, os.environ.get("PATH", os.defpath)])
    found = shutil.which(name, path=path)
    install = f"install {program.install}"
    if found is None:
        yield Lack(capability, name, f"{name} was not found", install)
    elif fault := _fault([found, *arguments], path):
        advice = f"{install}, or {program.otherwise}" if program.otherwise else install
        yield Lack(capability, name, f"{found} does not work here ({fault})", advice)


def _fault(command: list[str], path: str) -> str:
    """Why the command did not end well, "" where it did."""
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env={**os.environ, "PATH": path},
                start_new_session=True,
            )
        except OSError as error:
            return error.strerror or str(error)
        try:
            status = process.wait(BOUND)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"it did not end within {BOUND:g} s"
        output.seek(0)
        said = output.read(4096).decode("utf-8", "replace").strip().splitlines()
    if status == 0:
        return ""
    return said[0][:_LONGEST] if said else f"it ended with status {status}"
