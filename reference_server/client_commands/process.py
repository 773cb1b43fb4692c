"""A process with input and two outputs of its own, or with a terminal, that a client steers.

A warden (`sandbox`) holds all its processes, so that none is left when it has ended.
"""

import errno
import fcntl
import os
import struct
import termios
from collections.abc import Awaitable, Callable
from typing import Literal

import anyio

from reference_server.sandbox.launcher import SHARED, Launcher
from reference_server.sandbox.process import (
    DRAIN_SECONDS,
    KILL_REPORT_SECONDS,
    Command,
    WardenReports,
    find_program,
)

Stream = Literal["stdout", "stderr"]
OnOutput = Callable[[Stream, bytes], Awaitable[None]]

TIMED_OUT = 124
"""Exit status of a command that ran out of time."""
KILLED = 137
"""Exit status of a command that the client ended."""
_READ = 64 * 1024


class SteeredProcess:
    """One run of a command. Call `run` once; other tasks may call the other methods meanwhile.

    `size`: rows and columns of its terminal, None for pipes. Raises LaunchFailed, CannotStart,
    OSError if the command cannot be started.
    """

    def __init__(
        self, command: Command, *, size: tuple[int, int] | None, launcher: Launcher = SHARED
    ) -> None:
        self._command = command
        self._program = find_program(command)
        self._has_terminal = command.tty
        self._outputs: dict[Stream, int] = {}
        self._input = -1
        self._writing = anyio.Lock()
        self._ended_by: int | None = None
        if command.tty:
            terminal, inner = os.openpty()
            self._outputs["stdout"] = self._input = terminal
            self.resize(*(size or (24, 80)))
            handed = (inner,)
        else:
            (output, inner_output), (errors, inner_errors) = os.pipe(), os.pipe()
            inner_input, self._input = os.pipe()
            self._outputs |= {"stdout": output, "stderr": errors}
            handed = (inner_output, inner_input, inner_errors)
        try:
            self._account = WardenReports(launcher.hand_over(*handed))
        except BaseException:
            self._close_streams()
            raise
        finally:
            for descriptor in handed:
                os.close(descriptor)
        for descriptor in {*self._outputs.values(), self._input}:
            os.set_blocking(descriptor, False)

    async def run(self, on_output: OnOutput) -> int | str:
        """Run to the end; return the exit status, or why it did not start. Cancelling ends it."""
        try:
            await self._account.request(self._program, self._command)
            if not await self._account.wait_for_start():
                return self._account.failure or "the helper that starts commands went away"
            return await self._follow(on_output)
        finally:
            self._account.end()
            with anyio.move_on_after(KILL_REPORT_SECONDS, shield=True):
                await self._account.wait_until_gone()
            self._account.close()
            self._close_streams()

    async def _follow(self, on_output: OnOutput) -> int:
        account = self._account
        silent = {stream: anyio.Event() for stream in self._outputs}

        async def pump(stream: Stream) -> None:
            while data := await _read(self._outputs[stream]):
                await on_output(stream, data)
            silent[stream].set()

        async with anyio.create_task_group() as tasks:
            for stream in self._outputs:
                tasks.start_soon(pump, stream)
            with anyio.move_on_after(self._command.timeout):
                await account.wait_for_exit()
            if account.exit_code is None and not account.finished.is_set():
                self._ended_by = self._ended_by or TIMED_OUT
                account.end()
                await account.wait_for_exit()
            with anyio.move_on_after(DRAIN_SECONDS):
                # What it left behind may still print.
                for event in silent.values():
                    await event.wait()
            account.end()
            with anyio.move_on_after(KILL_REPORT_SECONDS):
                await account.wait_until_gone()
                # Whatever was printed is in the pipes by now.
                for event in silent.values():
                    await event.wait()
            tasks.cancel_scope.cancel()
        if self._ended_by is not None:
            return self._ended_by
        return KILLED if account.exit_code is None else account.exit_code

    def terminate(self) -> None:
        """End the process and all that it started; `run` returns soon."""
        self._ended_by = self._ended_by or KILLED
        self._account.end()

    @property
    def takes_input(self) -> bool:
        """True while its input is open."""
        return self._input >= 0

    async def write(self, data: bytes, *, is_last: bool = False) -> None:
        """Write to its input, after earlier writes; what it no longer reads is lost.

        With `is_last` the input then ends: of a terminal by the character for that, of a pipe by
        closing it.
        """
        async with self._writing:
            rest = memoryview(data + b"\x04" if is_last and self._has_terminal else data)
            try:
                while rest and self.takes_input:
                    try:
                        rest = rest[os.write(self._input, rest) :]
                    except BlockingIOError:
                        await anyio.wait_writable(self._input)
            except (OSError, anyio.ClosedResourceError):
                # The process reads no more.
                pass
            if is_last:
                self._close_input()

    def resize(self, rows: int, cols: int) -> bool:
        """Give its terminal another size; return False if it has none."""
        if not self._has_terminal or "stdout" not in self._outputs:
            return False
        fcntl.ioctl(
            self._outputs["stdout"], termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0)
        )
        return True

    def _close_input(self) -> None:
        descriptor, self._input = self._input, -1
        if descriptor >= 0 and descriptor not in self._outputs.values():
            anyio.notify_closing(descriptor)
            os.close(descriptor)

    def _close_streams(self) -> None:
        self._close_input()
        outputs, self._outputs = self._outputs, {}
        for descriptor in outputs.values():
            anyio.notify_closing(descriptor)
            os.close(descriptor)


async def _read(source: int) -> bytes:
    """Return the next bytes, none at the end."""
    while True:
        try:
            return os.read(source, _READ)
        except BlockingIOError:
            await anyio.wait_readable(source)
        except OSError as error:
            # A terminal that its last process has closed gives an error, not an end of file.
            if error.errno == errno.EIO:
                return b""
            raise
