"""One server process: started without a shell, and verified to have ended."""

import contextlib
import errno
import os
import signal
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE

import anyio
import anyio.to_thread
import psutil
from anyio.abc import Process

from harness.client.target.confine.command import PASSED_VARIABLES, Confinement
from harness.client.target.confine.end import ConfinedEnd
from harness.client.target.connecting import connect_when_ready
from harness.client.target.lost_input import ignore_lost_input
from harness.client.target.process_tree import (
    MARK,
    NO_ANSWER,
    Descendants,
    describe_process,
    is_alive,
    kill_survivors,
    marked_processes,
    wait,
)
from harness.client.target.program import NotStarted, describe_start_failure
from harness.client.transport.base import Transport
from harness.client.transport.connect import Connection
from harness.client.transport.resets import reset_pipes
from harness.client.transport.streams import LineTransport

_INHERITED_SECRETS = ("_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
# pytest's variable may name another scenario if several are played at once.
_CURRENT_TEST = "pytest_current_test"
_DROPPED = (*_PROXIES, "tmpdir", "temp", "tmp", _CURRENT_TEST)


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """The end of a process: exit status, the signal that it needed, and its leftovers.

    `survivors` are processes, `files` the contents of its temporary folder.
    """

    returncode: int | None
    push: str
    survivors: tuple[str, ...]
    files: tuple[str, ...] = ()

    @property
    def is_graceful(self) -> bool:
        """Return whether the process could clean up: it ended with status 0, or by TERM."""
        return self.push == "TERM" or (self.push == "none" and self.returncode == 0)

    @property
    def was_killed_before(self) -> bool:
        """Return whether SIGKILL had ended it before, so that it could not end its children."""
        return self.push == "none" and self.returncode == -signal.SIGKILL


# Errors at the start of a program that come from limits of this process, not from the program.
_OWN_LIMITS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)


class ServerProcess:
    """A running server. Make it with `start`, end it with `stop`.

    `home` is its home and `temporary` its temporary folder; `address` is where it listens, "" if it
    uses its standard streams. `confined_end` is the report of its end if it is confined.
    """

    def __init__(
        self,
        process: Process,
        command: list[str],
        stderr: Path,
        mark: str,
        *,
        home: Path,
        temporary: Path,
        address: str = "",
        confined_end: ConfinedEnd | None = None,
    ) -> None:
        self.command = command
        self.stderr_path = stderr
        self.home = home
        self.temporary = temporary
        self.address = address
        self._stdio: LineTransport | None = None
        if not address:
            if process.stdin is None or process.stdout is None:
                raise RuntimeError("the process was started without pipes")
            self._stdio = LineTransport(process.stdout, process.stdin)
        self._sockets: list[Connection] = []
        self._process = process
        self._mark = mark
        self._confined_end = confined_end
        self._descendants: Descendants | None = None
        self._known: dict[int, psutil.Process] = {}

    @property
    def pid(self) -> int:
        """Return the process id; a confined server's, not that of bubblewrap around it."""
        if self._confined_end is not None:
            return self._confined_end.find_server(self._process.pid)
        return self._process.pid

    @property
    def transport(self) -> Transport:
        """Return the standard streams, or the first connection."""
        return self._stdio or self._sockets[0]

    async def connect(self, bound: float) -> Transport:
        """Open a connection to its address; `TargetError` if none is made in `bound` seconds."""
        self._sockets.append(
            await connect_when_ready(self.address, wait_for_end=self.wait, bound=bound)
        )
        return self._sockets[-1]

    async def reset(self, transport: Transport) -> None:
        """Break a connection off, or both standard streams, without a word."""
        if self._stdio is not None:
            await reset_pipes(self._process)
        for connection in self._sockets:
            if connection is transport:
                await connection.reset()

    @property
    def returncode(self) -> int | None:
        """Return the exit status, None while it runs."""
        status = self._process.returncode
        if status is None or self._confined_end is None:
            return status
        return self._confined_end.status(status)

    async def wait(self) -> int:
        """Wait until the process has ended, and return its exit status."""
        status = await self._process.wait()
        return status if self._confined_end is None else self._confined_end.status(status)

    def children(self) -> set[int]:
        """Return the process ids of its living descendants."""
        pid = self.pid
        if self._descendants is None or self._descendants.pid != pid:
            self._descendants = Descendants(pid)
        living = self._descendants.find_living()
        self._known.update(living)
        return set(living)

    def listening_addresses(self) -> list[str]:
        """Return the addresses on which it, or a descendant, waits for connections by TCP."""
        addresses: set[str] = set()
        for pid in (self.pid, *self.children()):
            with contextlib.suppress(*NO_ANSWER):
                for connection in psutil.Process(pid).net_connections("tcp"):
                    if connection.status == psutil.CONN_LISTEN:
                        addresses.add(f"{connection.laddr.ip}:{connection.laddr.port}")
        return sorted(addresses)

    async def lingering_children(self, before: set[int], grace: float) -> tuple[str, ...]:
        """Return the names of descendants not in `before` that run on after `grace` seconds."""
        new = [self._known[pid] for pid in sorted(self.children() - before)]
        if new:
            await anyio.to_thread.run_sync(wait, new, grace)
        return tuple(describe_process(process) for process in new if is_alive(process))

    def stderr_tail(self, limit: int = 4000) -> str:
        """Return the last `limit` bytes of its standard error as text, "" if it cannot be read."""
        try:
            with self.stderr_path.open("rb") as source:
                source.seek(0, os.SEEK_END)
                source.seek(max(0, source.tell() - limit))
                return source.read().decode("utf-8", "backslashreplace")
        except OSError:
            return ""

    def stderr_since(self, start: int, limit: int) -> tuple[bytes, int]:
        """Return standard error from byte `start` on, at most its last `limit` bytes.

        The second value is the position to continue from.
        """
        try:
            with self.stderr_path.open("rb") as source:
                end = source.seek(0, os.SEEK_END)
                source.seek(max(start, end - limit))
                return source.read(max(0, end - source.tell())), end
        except OSError:
            return b"", start

    def terminate(self) -> None:
        """Send TERM to the process alone, not to its children, as a caller that aborts it would."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    async def stop(self, grace: float) -> ProcessExit:
        """End the server: close its input, then TERM, then KILL; `grace` seconds for each.

        Descendants that still run afterwards are killed and named.
        """
        self.children()  # Its children can only be found by parent while it runs.
        scope = anyio.CancelScope(shield=True)
        with scope:
            push = await self._make_end(grace)
            marked = await anyio.to_thread.run_sync(marked_processes, self._mark)
            survivors = await kill_survivors({**marked, **self._known}.values(), grace)
            for socket in self._sockets:
                await socket.release()
            await self._process.aclose()
            if self._confined_end is not None:
                survivors += self._confined_end.survivors(self._process.returncode)
            files = tuple(sorted(_paths_below(self.temporary)))
            return ProcessExit(self.returncode, push, survivors, files)
        raise RuntimeError("a shielded scope was cancelled")

    async def _make_end(self, grace: float) -> str:
        if self._stdio is not None:
            await self._stdio.aclose()
        # A server that listens does not end because one connection ended.
        if (self._stdio is not None or self.returncode is not None) and await self._wait_until_gone(
            grace
        ):
            return "none"
        self._signal(signal.SIGTERM)
        if await self._wait_until_gone(grace):
            return "TERM"
        self._signal(signal.SIGKILL)
        if not await self._wait_until_gone(grace) and self._confined_end is not None:
            self._process.kill()  # With it everything confined ends.
        return "KILL"

    async def _wait_until_gone(self, bound: float) -> bool:
        with anyio.move_on_after(bound):
            await self._process.wait()
        return self._process.returncode is not None

    def _signal(self, number: signal.Signals) -> None:
        self.children()
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return


async def start(
    command: list[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stderr: Path,
    owner: str,
    home: Path,
    temporary: Path,
    address: str = "",
    option: str = "--server-cmd",
    confinement: Confinement | None = None,
) -> ServerProcess:
    """Start a server in a session of its own.

    Raises `NotStarted` if that fails, or `OSError` if a limit of this process is the cause.

    `option` is the option that takes its command; errors name it.

    `owner` names the run, for `kill_processes_of`. `temporary` is a folder for its temporary files
    alone. With a `confinement` it runs in that. With an `address` its standard output goes to its
    standard error, and the caller connects to the address.
    """
    ignore_lost_input()
    mark = f"{owner}:{uuid.uuid4().hex}"
    variables = {"TMPDIR": str(temporary), **env, MARK: mark}
    words, confined_end, descriptors = command, None, ()
    if confinement is not None:
        confined_end = ConfinedEnd()
        descriptors = (confined_end.writer,)
        words = confinement.command(command, cwd=cwd, env=variables, report=confined_end.writer)
    with stderr.open("ab") as sink:
        try:
            process = await anyio.open_process(
                words,
                cwd=cwd,
                env=variables,
                pass_fds=descriptors,
                stdout=sink.fileno() if address else PIPE,
                stderr=sink.fileno(),
                start_new_session=True,
            )
        except OSError as error:
            if error.errno in _OWN_LIMITS:
                raise
            raise NotStarted(describe_start_failure(command, error, option)) from error
        finally:
            if confined_end is not None:
                confined_end.close_writer()
    return ServerProcess(
        process,
        command,
        stderr,
        mark,
        home=home,
        temporary=temporary,
        address=address,
        confined_end=confined_end,
    )


def environment(
    profile_env: Mapping[str, str], home: Path, home_env: str, *, confined: bool = False
) -> dict[str, str]:
    """Return the server's environment: ours without secrets and proxies, and the profile's.

    If it is `confined`, ours is reduced to `PASSED_VARIABLES` and the locale.

    Git does not search above the home and the workspaces beside it, so that `git status` there does
    not reach the user's repository. `start` adds the folder for temporary files.
    """
    env = {
        name: value
        # pytest changes a variable for each test while lanes start servers in threads of theirs.
        for name in list(os.environ)
        if (value := os.environ.get(name)) is not None
        and not name.upper().endswith(_INHERITED_SECRETS)
        and name.lower() not in _DROPPED
        and (not confined or name in PASSED_VARIABLES or name.startswith("LC_"))
    }
    env.update({"HOME": str(home), home_env: str(home), "NO_PROXY": "127.0.0.1,localhost"})
    env["GIT_CEILING_DIRECTORIES"] = str(home.parent)
    env.update(profile_env)
    return env


def describe_environment(
    profile_env: Mapping[str, str], home_env: str, *, confined: bool = False
) -> str:
    """Return words on variables of ours that a server gets changed or not at all, "" if none."""
    # Only names of variables are shown.
    env = environment(profile_env, Path("private"), home_env, confined=confined)
    values = {name: value for name, value in os.environ.items() if name.lower() != _CURRENT_TEST}
    changed = [name for name in sorted(env) if env[name] != values.get(name)]
    missing = [name for name in sorted(values) if name not in env]
    words = [f"set for the run: {', '.join(changed)}"] * bool(changed)
    words += [f"left out: {', '.join(missing)}"] * bool(missing)
    if not words:
        return ""
    return f"of its environment variables, {'; '.join(words)} ([env] of a profile sets others)"


def _paths_below(folder: Path) -> list[str]:
    """Return the files below a folder, and the empty folders, as paths within it."""
    paths: list[str] = []
    for path, folders, files in os.walk(folder):
        relative = Path(path).relative_to(folder)
        paths += [str(relative / name) for name in files]
        if not folders and not files and relative != Path():
            paths.append(f"{relative}{os.sep}")
    return paths
