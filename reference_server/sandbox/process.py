"""Run of one command: its output is streamed, and all its processes are gone afterwards.

The command's warden (`warden.py`) holds the process tree; `output.py` limits the output. A command
has ended when its main process has. Background processes that it leaves have `DRAIN_SECONDS` to
print, and are then ended too.
"""

import contextlib
import errno
import fcntl
import marshal
import os
import shutil
import socket
import stat
import struct
import termios
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import anyio
from anyio.lowlevel import checkpoint

from reference_server.sandbox.launcher import SHARED, Launcher, LaunchFailed
from reference_server.sandbox.output import Output

GRACE_SECONDS = 1.0
"""Seconds between SIGTERM and SIGKILL."""
DRAIN_SECONDS = 0.25
"""Seconds in which background processes may still print after the main process has ended."""
KILL_REPORT_SECONDS = 10.0
"""Seconds to wait for the warden's report after SIGKILL; only a stuck kernel call takes longer."""
_READ = 256 * 1024
_PIPE_SIZE = 1024 * 1024
_END = b"T"

OnOutput = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Command:
    """A command to run. `argv` is not a shell's line; `cwd` is absolute.

    `env`: all of its variables; None means the server's own environment.
    `wrapper`: words in front of `argv` (a sandbox); the program of `argv` is looked up too, and
    named in failures. Without `tty` standard input is empty; with it, standard input, output and
    error are one terminal, and `Running.write` types into it. `timeout` and `grace` are in seconds.
    `inputs`: bytes that the first process can read, by the number of the descriptor. `mounts`: the
    wrapper's expected mounts, as pairs of a path and its source; the wrapper waits until the warden
    has checked them (`sandbox.MOUNT_CHECK`).
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] | None = None
    tty: bool = False
    timeout: float | None = None
    wrapper: tuple[str, ...] = ()
    grace: float = GRACE_SECONDS
    inputs: Mapping[int, bytes] = field(default_factory=dict[int, bytes])
    mounts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """Result of a command.

    `exit_code`: its own, or 128 + the number of the signal that ended it, as in shells; None if it
    never started or was lost, and then `failure` is one sentence. `output`: the joined pieces that
    `on_output` got; `cut_bytes`: the number of bytes left out. `timed_out`, `was_stopped`: the
    server ended it. `surviving_pids`: processes that SIGKILL did not end in time, usually none.
    """

    exit_code: int | None
    output: str
    duration_ms: int
    timed_out: bool = False
    was_stopped: bool = False
    cut_bytes: int = 0
    failure: str | None = None
    surviving_pids: tuple[int, ...] = ()


class CannotStart(Exception):
    """The command cannot be started; str() is one sentence."""


def find_program(command: Command) -> str:
    """Return the path of the program to execute: the wrapper's, or the command's own.

    Raises CannotStart if the command is malformed, or its folder or a program is unusable.
    """
    env = os.environ if command.env is None else command.env
    texts = (*command.argv, *command.wrapper, command.cwd, *env, *env.values())
    if not command.argv or not command.argv[0]:
        raise CannotStart("the command is empty")
    if any("\0" in text for text in texts):
        raise CannotStart("the command, its folder or its environment holds a NUL character")
    if any("=" in name or not name for name in env):
        raise CannotStart("the name of an environment variable is empty or holds an equals sign")
    try:
        for text in texts:
            os.fsencode(text)
        if not os.path.isabs(command.cwd):
            raise CannotStart(f"the working directory {command.cwd} is not an absolute path")
        if not stat.S_ISDIR(os.stat(command.cwd).st_mode):
            raise CannotStart(f"the working directory {command.cwd} is not a folder")
    except UnicodeEncodeError:
        raise CannotStart("the command holds half a surrogate pair") from None
    except OSError as error:
        raise CannotStart(
            f"the working directory {command.cwd} cannot be used: {error.strerror}"
        ) from error
    path = env.get("PATH", os.defpath)
    program_path = _locate(command.argv[0], command.cwd, path)
    return _locate(command.wrapper[0], command.cwd, path) if command.wrapper else program_path


def _locate(program: str, cwd: str, path: str) -> str:
    path_of_program = os.path.abspath(os.path.join(cwd, program))
    if "/" not in program:
        folders = os.pathsep.join(os.path.join(cwd, one) for one in path.split(os.pathsep))
        location = shutil.which(program, path=folders)
        if location is None:
            raise CannotStart(f"{program}: command not found on PATH")
        return os.path.abspath(location)
    if os.path.isdir(path_of_program):
        raise CannotStart(f"{program}: is a folder, not a program")
    if not os.path.exists(path_of_program):
        raise CannotStart(f"{program}: no such file")
    if not os.access(path_of_program, os.X_OK):
        raise CannotStart(f"{program}: not executable")
    return path_of_program


async def run(command: Command, on_output: OnOutput, *, launcher: Launcher = SHARED) -> Finished:
    """Run a command to its end; never raises, whatever the command is or does.

    If cancelled, it ends the whole process tree first.
    """
    return await Running(command, launcher).run(on_output)


class Running:
    """Run of one command. Call `run` once; other tasks may call the other methods meanwhile.

    `finished` is set when `run` ends, even if cancelled. `pid` is the main process's, once it has
    started. An exception from `on_output` ends the command and is raised in an exception group.
    """

    def __init__(self, command: Command, launcher: Launcher = SHARED) -> None:
        self.command = command
        self.finished: Finished | None = None
        self.pid: int | None = None
        self.started = anyio.Event()
        self._launcher = launcher
        self._output = Output()
        self._source = -1
        self._account: WardenReports | None = None
        self._reading: anyio.CancelScope | None = None
        self._last_call = False
        self._silent = anyio.Event()
        self._timed_out = False
        self._stopped = False
        self._began = 0.0

    @property
    def output(self) -> str:
        """Return the output passed on so far."""
        return self._output.text

    def stop(self) -> None:
        """End the command by SIGTERM, after the grace by SIGKILL; `run` returns when it is gone."""
        self._stopped = True
        if self._account is not None:
            self._account.end()

    async def write(self, text: str) -> bool:
        """Type into the terminal; return False if the command has none or has ended."""
        data = text.encode("utf-8", "replace")
        while data:
            if not self.command.tty or self._source < 0:
                return False
            try:
                data = data[os.write(self._source, data) :]
            except BlockingIOError:
                try:
                    await anyio.wait_writable(self._source)
                except anyio.ClosedResourceError:
                    return False
            except OSError:
                return False
        return True

    async def run(self, on_output: OnOutput) -> Finished:
        """Run the command to its end and return its result, also if it cannot be started."""
        self._began = time.monotonic()
        try:
            program = find_program(self.command)
            self._open()
        except (CannotStart, LaunchFailed) as error:
            return self._finish(str(error))
        except OSError as error:
            return self._finish(f"no process can be started: {error.strerror}")
        try:
            return await self._follow(program, on_output)
        finally:
            with anyio.CancelScope(shield=True):
                await self._clean_up()

    def _open(self) -> None:
        """Open the output and pass the command's end to a warden. Raises LaunchFailed, OSError."""
        if self.command.tty:
            source, sink = os.openpty()
            fcntl.ioctl(sink, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        else:
            source, sink = os.pipe()
            if hasattr(fcntl, "F_SETPIPE_SZ"):
                # The pipes of one user share a limit; a pipe of the default size works too.
                with contextlib.suppress(OSError):
                    fcntl.fcntl(source, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        try:
            control = self._launcher.hand_over(sink)
        except BaseException:
            os.close(source)
            raise
        finally:
            os.close(sink)
        os.set_blocking(source, False)
        self._source = source
        self._account = WardenReports(control)

    async def _follow(self, program: str, on_output: OnOutput) -> Finished:
        account = self._account
        assert account is not None
        await account.request(program, self.command)
        if self._stopped:
            account.end()
        if not await account.wait_for_start():
            return self._finish(account.failure or "the helper that starts commands went away")
        self.pid = account.pid
        self.started.set()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._pump, on_output)
            tasks.start_soon(self._watch_time, account)
            await account.wait_for_exit()
            await self._drain_background(account)
            account.end()
            with anyio.move_on_after(self.command.grace + KILL_REPORT_SECONDS):
                await account.wait_until_gone()
            # All output is in the pipe by now: read it without waiting for more.
            self._last_call = True
            if self._reading is not None:
                self._reading.cancel()
        return self._finish()

    async def _drain_background(self, account: "WardenReports") -> None:
        """Let background processes print until they close the output or end, or time is up."""
        with anyio.move_on_after(DRAIN_SECONDS):
            async with anyio.create_task_group() as tasks:

                async def until_silent() -> None:
                    await self._silent.wait()
                    tasks.cancel_scope.cancel()

                tasks.start_soon(until_silent)
                await account.wait_until_gone()
                tasks.cancel_scope.cancel()

    async def _watch_time(self, account: "WardenReports") -> None:
        if self.command.timeout is None:
            return
        with anyio.move_on_after(self.command.timeout):
            await account.finished.wait()
            return
        if account.exit_code is None:
            self._timed_out = True
            account.end()

    async def _pump(self, on_output: OnOutput) -> None:
        """Pass on the output until its end; a slow `on_output` makes the command wait."""
        unyielding = 0
        while data := await self._read():
            unyielding += len(data)
            if piece := self._output.feed(data):
                await on_output(piece)
            if unyielding >= _PIPE_SIZE:
                unyielding = 0
                await checkpoint()
        self._silent.set()
        if piece := self._output.finish():
            await on_output(piece)

    async def _read(self) -> bytes:
        while True:
            try:
                return os.read(self._source, _READ)
            except BlockingIOError:
                if self._last_call:
                    return b""
            except OSError as error:
                # A terminal that its last process has closed gives an error, not an end of file.
                if error.errno == errno.EIO:
                    return b""
                raise
            with anyio.CancelScope() as self._reading:
                await anyio.wait_readable(self._source)
            self._reading = None

    async def _clean_up(self) -> None:
        account = self._account
        assert account is not None
        if not account.finished.is_set():
            account.end()
            with anyio.move_on_after(self.command.grace + KILL_REPORT_SECONDS):
                await account.wait_until_gone()
        if self.finished is None:
            self._stopped = True
            self._finish()
        account.close()
        source, self._source = self._source, -1
        anyio.notify_closing(source)
        os.close(source)

    def _finish(self, failure: str | None = None) -> Finished:
        account = self._account
        if self.pid is not None and account is not None and account.exit_code is None:
            failure = "the process that held the command was killed, and the command with it"
        self.finished = Finished(
            exit_code=None if account is None else account.exit_code,
            output=self._output.text,
            duration_ms=round((time.monotonic() - self._began) * 1000),
            timed_out=self._timed_out,
            was_stopped=self._stopped,
            cut_bytes=self._output.cut_bytes,
            failure=failure,
            surviving_pids=() if account is None else account.surviving_pids,
        )
        return self.finished


class WardenReports:
    """A warden's reports on its command; each wait may be cancelled and repeated."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._buffer = b""
        self.failure: str | None = None
        self.pid: int | None = None
        self.exit_code: int | None = None
        self.surviving_pids: tuple[int, ...] = ()
        self.finished = anyio.Event()

    async def request(self, program: str, command: Command) -> None:
        """Send the warden the command to start; a warden that has gone is ignored."""
        env = os.environ if command.env is None else command.env
        request = {
            "program": os.fsencode(program),
            "argv": [os.fsencode(one) for one in (*command.wrapper, *command.argv)],
            "cwd": os.fsencode(command.cwd),
            "env": {os.fsencode(name): os.fsencode(value) for name, value in env.items()},
            "tty": command.tty,
            "wrapped": bool(command.wrapper),
            "grace": command.grace,
            "inputs": dict(command.inputs),
            "mounts": [tuple(map(os.fsencode, mount)) for mount in command.mounts],
        }
        data = marshal.dumps(request)
        data = len(data).to_bytes(4, "big") + data
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while data:
                try:
                    data = data[self._control.send(data) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._control)

    async def wait_for_start(self) -> bool:
        """Wait for the command's start; return False, with `failure` set, if it did not start."""
        await self._read_until(lambda: self.pid is not None)
        return self.pid is not None

    async def wait_for_exit(self) -> None:
        """Wait until the main process has ended."""
        await self._read_until(lambda: self.exit_code is not None)

    async def wait_until_gone(self) -> None:
        """Wait until no process of the command is left, or the warden has gone."""
        await self._read_until(lambda: False)

    def end(self) -> None:
        """Have the warden end the command: SIGTERM, the grace, SIGKILL."""
        with contextlib.suppress(OSError):
            self._control.send(_END)

    def close(self) -> None:
        """Close the warden's socket; it ends everything that still runs."""
        self._control.close()

    async def _read_until(self, reached: Callable[[], bool]) -> None:
        """Read the warden's lines until `reached` is true or there are no more."""
        while not self.finished.is_set() and not reached():
            line, newline, rest = self._buffer.partition(b"\n")
            if newline:
                self._buffer = rest
                self._take(line.decode())
                continue
            try:
                data = self._control.recv(4096)
            except BlockingIOError:
                await anyio.wait_readable(self._control)
                continue
            except ConnectionResetError:
                data = b""
            if not data:
                self.finished.set()
            self._buffer += data

    def _take(self, line: str) -> None:
        match line.split():
            case ["started", pid]:
                self.pid = int(pid)
            case ["exited", status]:
                code = int(status)
                self.exit_code = code if code >= 0 else 128 - code
            case ["failed", step, number]:
                problem = (
                    "its folder cannot be entered" if step == "cwd" else "it cannot be started"
                )
                self.failure = f"the command did not run, {problem}: {os.strerror(int(number))}"
                self.finished.set()
            case ["gone", *left]:
                self.surviving_pids = tuple(int(pid) for pid in left)
                self.finished.set()
            case _:
                raise RuntimeError(f"the warden said {line!r}")
