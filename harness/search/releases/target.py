"""Targets with a `{version}` in their commands, and the identity of one version.

A word of a command may hold `*`: it names the one file that matches, as the path of a program can
change from release to release.
"""

import hashlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path

from harness.client.target.profile import load_profile, read_chain, read_profile
from harness.client.target.shell_syntax import split_command
from harness.errors import UsageError
from harness.report.results.rerun_command import Programs

VERSION_PLACEHOLDER = "{version}"
# The commands of a target: of a server, an agent and the driver of an SDK.
_KINDS = ("server", "agent", "sdk")


class MissingProgram(UsageError):
    """The program of a command is not there, so that its version may have to be installed."""


@dataclass(frozen=True, slots=True)
class Release:
    """One version of a target, with the commands that run it; `version` is "" for none."""

    name: str
    version: str
    programs: Programs

    @property
    def label(self) -> str:
        """The name of a column: `codex@0.107.0`, or the name alone."""
        return _label(self.name, self.version)

    def identity(self) -> str:
        """Return a hash of name, version, commands, the files that they name, and the profile."""
        digest = hashlib.sha256(f"{self.label}\n{self.programs}\n".encode())
        # The files of the profile for all releases: a run asks the server for its own.
        load_profile(self.programs.target)  # Says what is wrong with it.
        sources = read_chain(read_profile(self.programs.target, Path()))
        digest.update(repr([source.toml.value for source in sources]).encode())
        for kind in _KINDS:
            command: str = getattr(self.programs, kind)
            words = split_command(command) if command else []
            for word in [shutil.which(words[0]) or words[0], *words[1:]] if words else []:
                if Path(word).is_file():
                    with Path(word).open("rb") as file:
                        digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Target:
    """A profile and commands for several versions, which `{version}` stands for in them."""

    name: str
    programs: Programs

    def label(self, version: str) -> str:
        """Return the name of the column of a version."""
        return _label(self.name, version)

    def release(self, version: str = "") -> Release:
        """Return one version with its commands.

        Raises `MissingProgram` if a program is not there, `UsageError` if a command is not valid.
        """
        commands = {
            kind: resolve_command(getattr(self.programs, kind), version)
            for kind in _KINDS
            if getattr(self.programs, kind)
        }
        profile = self.programs.target.replace(VERSION_PLACEHOLDER, version)
        return Release(self.name, version, replace(self.programs, target=profile, **commands))


def _label(name: str, version: str) -> str:
    return f"{name}@{version}" if version else name


def ensure_installed(
    target: Target, version: str, install: str, say: Callable[[str], None]
) -> Release:
    """Return a release, installed first by a command if its program is missing.

    Raises `MissingProgram` if it still is, `UsageError` if a command is not valid.
    """
    try:
        return target.release(version)
    except MissingProgram as problem:
        if not install:
            advice = "an installation, such as 'npm install … {version}', can be given"
            raise MissingProgram(f"{problem}; {advice}") from problem
    say(f"{target.label(version)}: installing")
    words = split_command(install.replace(VERSION_PLACEHOLDER, version))
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, errors="replace")
    except OSError as error:
        raise MissingProgram(f"the installation failed: {words[0]}: {error.strerror}") from error
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        reason = lines[0] if lines else "it printed nothing"
        raise MissingProgram(f"the installation failed with status {done.returncode}: {reason}")
    return target.release(version)


def resolve_command(command: str, version: str) -> str:
    """Return a command with the version and the matching files filled in, quoted for a shell.

    Raises `MissingProgram` if its program is not there.
    """
    words = [
        _only_match(word, command) if os.sep in word and "*" in word else word
        for word in split_command(command.replace(VERSION_PLACEHOLDER, version))
    ]
    if shutil.which(words[0]) is None:
        raise MissingProgram(f"the program {words[0]!r} was not found")
    return shlex.join(words)


def _only_match(pattern: str, command: str) -> str:
    """Return the one file that matches; executable ones win."""
    files = sorted(file for file in glob(pattern, recursive=True) if Path(file).is_file())
    found = _executable(files) or files
    if not found:
        raise MissingProgram(f"no file matches {pattern!r}")
    if len(found) > 1:
        raise UsageError(
            f"{pattern!r} matches {len(found)} files ({found[0]}, {found[1]}, …); "
            f"name one in the command {command!r}"
        )
    return found[0]


def _executable(files: Iterable[str]) -> list[str]:
    return [file for file in files if os.access(file, os.X_OK)]
