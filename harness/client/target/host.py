"""Needs of a target on this machine, checked before anything is played.

A server can provide some capabilities only with a program on the machine, for example a sandbox
with bubblewrap. A profile names the program under `[host.CAPABILITY]`, with a harmless command that
shows whether it works.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.client.target.confine.command import bubblewrap_words
from harness.client.target.confine.table import Confine
from harness.client.target.profile import Profile, Program

MAX_CHECK_SECONDS = 10.0
"""Seconds that the command of a program may take."""
_MAX_REASON_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Lack:
    """A capability that this machine cannot provide: the missing program, the cause, the advice.

    All are strings, so that the controller can send them to workers.
    """

    capability: str
    program: str
    cause: str
    advice: str

    @property
    def reason(self) -> str:
        """Return why nothing that needs the capability is judged, in one line."""
        return f"this machine cannot do {self.capability}: {self.cause}; {self.advice}"


def lacks_of(profile: Profile) -> tuple[Lack, ...]:
    """Return the capabilities, promised or probed, whose program does not work on this machine."""
    promised = profile.capabilities
    confine = profile.confine if profile.is_confined else None
    return tuple(
        lack
        for capability, program in profile.host.items()
        if promised == "probe" or capability in promised
        for lack in _check_program(capability, program, confine)
    )


def _check_program(capability: str, program: Program, confine: Confine | None) -> Iterator[Lack]:
    name, *arguments = program.command
    path = os.pathsep.join([*program.places, os.environ.get("PATH", os.defpath)])
    executable = shutil.which(name, path=path)
    install = f"install {program.install}"
    if executable is None:
        yield Lack(capability, name, f"{name} was not found", install)
        return
    command = [executable, *arguments]
    if confine is not None:
        wrapped = [*bubblewrap_words(confine, command, cwd=Path("/")), *command]
        if (fault := _check_command(wrapped, path)) and not _check_command(command, path):
            where = "as root, " if os.geteuid() == 0 else ""
            cause = f"{executable} does not work {where}inside --confine ({fault})"
            advice = "run as an ordinary user" if where else "run without --confine"
            yield Lack(capability, name, cause, advice)
            return
    if fault := _check_command(command, path):
        advice = f"{install}, or {program.otherwise}" if program.otherwise else install
        yield Lack(capability, name, f"{executable} does not work here ({fault})", advice)


def _check_command(command: list[str], path: str) -> str:
    """Return why the command failed, "" if it succeeded."""
    status, output = run_briefly(command, {**os.environ, "PATH": path})
    if status == 0:
        return ""
    lines = output.strip().splitlines()
    return lines[0][:_MAX_REASON_CHARACTERS] if lines else f"it ended with status {status}"


def run_briefly(command: list[str], env: Mapping[str, str]) -> tuple[int | None, str]:
    """Run a harmless command; return its exit status and the begin of what it printed.

    The status is None, and the text the reason, if it could not be started or did not end in time.
    """
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env=env,
                start_new_session=True,
            )
        except OSError as error:
            return None, error.strerror or str(error)
        try:
            status = process.wait(MAX_CHECK_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None, f"it did not end within {MAX_CHECK_SECONDS:g} s"
        output.seek(0)
        return status, output.read(4096).decode("utf-8", "replace")
