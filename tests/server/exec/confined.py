"""A place with files and sockets that a sandboxed command must not touch, and tools to test it."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from commands import PATH, finished, linux

from harness.protocol.wire.settings import FullAccess, ReadOnly, SandboxPolicy, WorkspaceWrite
from reference_server.sandbox.process import Command, Finished
from reference_server.sandbox.sandbox import Confinement, Sandbox
from tests.sampling import one_in

ORDINARY = 65534
SECRET = "the-secret"
KEPT = "as it was\n"
PLACES = "/usr/bin:/usr/local/bin:/bin"
"""Folders in which the server looks for bubblewrap before its PATH."""
READ_ONLY = ReadOnly(access=FullAccess(type="fullAccess"))


def workspace_write(roots: Sequence[str] = (), *, network: bool = False) -> WorkspaceWrite:
    return WorkspaceWrite(writable_roots=list(roots), network_access=network)


@dataclass
class Place:
    """Folders of a test: a user's home with the agent's home, a git workspace, and `outside`."""

    base: Path
    ordinary: bool

    def __post_init__(self) -> None:
        self.home = self.base / "home"
        self.agent = self.home / ".agent"
        self.work = self.base / "work"
        self.extra = self.base / "extra"
        self.outside = self.base / "outside"
        self.git = self.work / ".git"
        self.sandbox = Sandbox(self.agent, self.home, root=False if self.ordinary else None)
        self.confinement: Confinement | None = None

    def furnish(self) -> None:
        for folder in (self.extra, self.agent / "rules", self.agent / "skills", self.git):
            folder.mkdir(parents=True)
        for folder in (".ssh", ".aws", ".gnupg", ".config/gh"):
            (self.home / folder).mkdir(parents=True)
            (self.home / folder / "secret").write_text(SECRET)
        (self.home / ".netrc").write_text(SECRET)
        (self.agent / "auth.json").write_text(SECRET)
        (self.agent / "rules" / "default.rules").write_text(KEPT)
        (self.agent / "skills" / "SKILL.md").write_text("# A skill\n")
        (self.git / "config").write_text(KEPT)
        self.outside.mkdir()
        (self.outside / "kept").write_text(KEPT)
        (self.work / "link").symlink_to(self.outside)
        if self.ordinary:
            for path in (self.base, *self.base.rglob("*")):
                os.chown(path, ORDINARY, ORDINARY, follow_symlinks=False)

    @property
    def variables(self) -> dict[str, str]:
        return {
            "PATH": PATH,
            "LC_ALL": "C",
            "HOME": str(self.home),
            "AGENT": str(self.agent),
            "OUT": str(self.outside),
            "EXTRA": str(self.extra),
        }

    @property
    def become(self) -> tuple[str, ...]:
        """Return the command prefix that runs as the place's owner; () if that is this user."""
        user = f"{ORDINARY}"
        options = ("--reuid", user, "--regid", user, "--clear-groups", "--")
        return ("setpriv", *options) if self.ordinary else ()

    async def command(
        self,
        script: str,
        policy: SandboxPolicy,
        *,
        workspace: Path | None = None,
        cwd: Path | None = None,
        **options,
    ) -> Command:
        where = str(workspace or self.work)
        self.confinement = await self.sandbox.confine(
            policy,
            workspace=where,
            cwd=str(cwd or where),
            env={**self.variables, **options.pop("env", {})},
            tty=options.get("tty", False),
        )
        return Command(
            ("/bin/bash", "-c", script),
            str(cwd or where),
            env=self.confinement.env,
            wrapper=(*self.become, *self.confinement.wrapper),
            inputs=self.confinement.inputs,
            mounts=self.confinement.mounts,
            **options,
        )

    async def run(self, script: str, policy: SandboxPolicy, **options) -> Finished:
        return await finished(await self.command(script, policy, **options))


@cache
def missing() -> str:
    """Return why bubblewrap does not work on this machine, "" if it does; uses no project code."""
    path = f"{PLACES}:{os.environ.get('PATH', '')}"
    program = shutil.which("bwrap", path=path)
    if program is None:
        return "bwrap was not found; install the package bubblewrap"
    options = ("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--unshare-all")
    tried = subprocess.run([program, *options, "true"], capture_output=True, text=True)
    return f"{program} does not work: {tried.stderr.strip()}" if tried.returncode else ""


NO_SANDBOX = f"no sandbox on this machine: {missing()}"
needs_sandbox = pytest.mark.skipif(bool(missing()), reason=NO_SANDBOX)
sandboxed = [linux, pytest.mark.anyio, pytest.mark.slow, pytest.mark.socket, needs_sandbox]
"""Marks of a module whose tests run commands in the real sandbox."""
_USERS = ["this user", "an ordinary user"] if os.geteuid() == 0 else ["this user"]
IDENTITIES = one_in(2, _USERS, pytest.mark.attacks)
"""Users who run the commands: this one and, if it is root, under `make attacks` an ordinary one."""


@contextmanager
def a_place(*, ordinary: bool) -> Generator[Place]:
    # pytest's own folders are closed to other users.
    base = Path(tempfile.mkdtemp(prefix="confined-"))
    base.chmod(0o755)
    place = Place(base, ordinary)
    place.furnish()
    try:
        yield place
    finally:
        shutil.rmtree(base)


@contextmanager
def program_that_listens(folder: Path) -> Generator[Path]:
    """Yield the path of a listening socket in a folder, such as an ssh agent has."""
    path = folder / "agent.1"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        path.chmod(0o777)
        server.listen()
        yield path


@contextmanager
def listener() -> Generator[socket.socket]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        yield server


def was_reached(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def processes_in(folder: Path) -> list[int]:
    """Return the ids of all processes with this working directory."""
    found: list[int] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{name}/cwd") == str(folder):
                found.append(int(name))
        except OSError:
            continue
    return found
