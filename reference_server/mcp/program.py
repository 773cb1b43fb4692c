"""Program of an MCP server over stdio: its process and its three streams.

A warden (`sandbox`) holds all its processes, so that none is left when it is closed or this server
is killed. The lines are not interpreted.
"""

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

import anyio

from reference_server.config.mcp import McpServer
from reference_server.mcp.failure import McpFailure
from reference_server.sandbox.environment import CommandVariables, command_environment, path_without
from reference_server.sandbox.launcher import SHARED, Launcher, LaunchFailed
from reference_server.sandbox.process import (
    GRACE_SECONDS,
    KILL_REPORT_SECONDS,
    CannotStart,
    Command,
    WardenReports,
    find_program,
)
from reference_server.transport.base import Incoming
from reference_server.transport.lines import LineSplitter

LEAVING = 1.0
"""Seconds that a program has to end by itself when its input is closed."""
_READ = 64 * 1024


class Program:
    """A program that runs or has ended; `limit`: maximum bytes of a line of its output."""

    def __init__(self, launcher: Launcher, limit: int) -> None:
        self._lines = LineSplitter(limit)
        self._exited = anyio.Event()
        self._gone = anyio.Event()
        self._following = anyio.CancelScope(shield=True)
        pipes = os.pipe(), os.pipe(), os.pipe()
        (self._output, child_output), (child_input, self._input), (self._errors, errors) = pipes
        try:
            self._account = WardenReports(launcher.hand_over(child_output, child_input, errors))
        except BaseException:
            self._close_streams()
            raise
        finally:
            for descriptor in (child_output, child_input, errors):
                os.close(descriptor)
        for descriptor in (self._output, self._input, self._errors):
            os.set_blocking(descriptor, False)

    async def start(self, path: str, command: Command) -> None:
        """Start the program. Raises McpFailure."""
        await self._account.request(path, command)
        if not await self._account.wait_for_start():
            raise McpFailure(self._account.failure or "the helper that starts commands went away")

    async def follow(self) -> None:
        """Watch for the program's end, in a task that runs until `end`, even if cancelled."""
        with self._following:
            await self._account.wait_for_exit()
            self._exited.set()
            await self._account.wait_until_gone()
            self._gone.set()

    @property
    def status(self) -> int | None:
        """The exit status, as in shells; None while it runs."""
        return self._account.exit_code

    async def receive(self) -> list[Incoming]:
        """Return the next lines of the output, at least one; an empty list at its end."""
        while data := await _read(self._output):
            if lines := self._lines.feed(data):
                return lines
        return self._lines.end()

    async def send(self, line: bytes) -> None:
        """Write a line to the input. Raises BrokenPipeError if the program no longer reads."""
        data = memoryview(line + b"\n")
        while data:
            try:
                data = data[os.write(self._input, data) :]
            except BlockingIOError:
                await anyio.wait_writable(self._input)

    async def read_errors(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with each line of standard error, until its end."""
        lines = LineSplitter(_READ)
        while data := await _read(self._errors):
            for line in lines.feed(data):
                tell(
                    line.decode("utf-8", "replace") if isinstance(line, bytes) else "[a long line]"
                )

    async def wait_for_exit(self, seconds: float) -> None:
        """Wait until the program has ended, at most `seconds`."""
        with anyio.move_on_after(seconds):
            await self._exited.wait()

    async def end(self) -> None:
        """Close the input; after LEAVING, end remaining processes by SIGTERM, then SIGKILL."""
        self._input = _close(self._input)
        await self.wait_for_exit(LEAVING)
        self._account.end()
        with anyio.move_on_after(GRACE_SECONDS + KILL_REPORT_SECONDS):
            await self._gone.wait()
        self._following.cancel()

    def close(self) -> None:
        """Close all descriptors."""
        self._account.close()
        self._close_streams()

    def _close_streams(self) -> None:
        self._input = _close(self._input)
        self._output = _close(self._output)
        self._errors = _close(self._errors)


@asynccontextmanager
async def running_program(
    server: McpServer,
    environment: Mapping[str, str],
    limit: int,
    launcher: Launcher = SHARED,
) -> AsyncGenerator[Program]:
    """Run a server's program for the length of the block. Raises McpFailure if it cannot start.

    `environment`: this server's own variables, of which the program gets those that all commands
    get, in addition to `server.env`. `limit`: maximum bytes of a line.
    """
    command = Command(
        (server.command, *server.args),
        _folder(server.cwd),
        _variables(server, environment),
    )
    try:
        path = find_program(command)
        program = Program(launcher, limit)
    except (CannotStart, LaunchFailed) as error:
        raise McpFailure(str(error)) from None
    except OSError as error:
        raise McpFailure(f"no process can be started: {error.strerror}") from error
    try:
        await program.start(path, command)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(program.follow)
            try:
                yield program
            finally:
                with anyio.CancelScope(shield=True):
                    await program.end()
    finally:
        program.close()


def _variables(server: McpServer, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a program, without empty and relative entries of PATH.

    It runs outside the sandbox in a folder that others may write, where such an entry would find
    their programs.
    """
    variables = dict(environment)
    if "PATH" in variables:
        variables["PATH"] = path_without(variables["PATH"], ())
    return command_environment(variables, CommandVariables(set_values=server.env), tty=False)


def _folder(path: str | None) -> str:
    try:
        return os.path.abspath(os.path.expanduser(path or "."))
    except OSError:
        return "/"


def _close(descriptor: int) -> int:
    """Close a descriptor, unless it is -1 for a closed one, and return -1."""
    if descriptor >= 0:
        anyio.notify_closing(descriptor)
        os.close(descriptor)
    return -1


async def _read(descriptor: int) -> bytes:
    """Wait for data and return it; b"" at the end."""
    while True:
        try:
            return os.read(descriptor, _READ)
        except BlockingIOError:
            await anyio.wait_readable(descriptor)
