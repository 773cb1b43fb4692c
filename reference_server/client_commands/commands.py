"""The commands that clients run: their checks, their processes, and who gets their output."""

import base64
import binascii
from dataclasses import dataclass, field

import anyio

from harness.protocol.wire.rpc import ErrorCode
from reference_server.client_commands.params import (
    ExecParams,
    ExecResult,
    OutputDelta,
    ResizeParams,
    TerminalSize,
    TerminateParams,
    WriteParams,
)
from reference_server.client_commands.process import SteeredProcess, Stream
from reference_server.config.model import Config
from reference_server.connection import REQUESTS_AT_ONCE, Connection
from reference_server.engine.tool_provider import ToolProvider
from reference_server.envelope import encode_notification
from reference_server.refusal import Refusal, invalid_params, invalid_request
from reference_server.sandbox.environment import command_environment
from reference_server.sandbox.launcher import LaunchFailed
from reference_server.sandbox.process import CannotStart, Command
from reference_server.sandbox.sandbox import SandboxUnavailable
from reference_server.settings import absolute_folder, sandbox_policy

DEFAULT_SECONDS = 10.0
"""Bound of a command that names none, as in release 0.169."""
DEFAULT_BYTES = 1 << 20
"""Bytes of each stream that a client gets if it names no number, as in release 0.169."""
MAX_RUNNING = REQUESTS_AT_ONCE // 2
"""Maximum commands of one connection at once: it must still be read, to steer them."""
_MAX_SIZE = 0xFFFF
_MAX_MS = 1 << 53
"""Bound of a time in milliseconds, which a float still holds; a longer one is as good as none."""


@dataclass(eq=False)
class Run:
    """A running command of one connection, and the output that its client has got or will get."""

    params: ExecParams
    connection: Connection
    limit: int | None
    process: SteeredProcess | None = None
    kept: dict[Stream, bytearray] = field(
        default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()}
    )
    amounts: dict[Stream, int] = field(default_factory=lambda: {"stdout": 0, "stderr": 0})

    @property
    def is_streamed(self) -> bool:
        """True if output is sent as it comes."""
        return self.params.tty or self.params.stream_stdout_stderr

    @property
    def takes_input(self) -> bool:
        """True if the client may write to the process."""
        return self.params.tty or self.params.stream_stdin

    async def take(self, stream: Stream, data: bytes) -> None:
        """Send or keep a piece of output, as far as the limit allows."""
        begun = self.amounts[stream]
        if self.limit is not None:
            data = data[: self.limit - begun]
        self.amounts[stream] = begun + len(data)
        if not data:
            return
        if not self.is_streamed:
            self.kept[stream] += data
            return
        delta = OutputDelta(
            process_id=self.params.process_id or "",
            stream=stream,
            delta_base64=base64.b64encode(data).decode(),
            cap_reached=self.limit is not None and begun + len(data) >= self.limit,
        )
        self.connection.outbox.put(encode_notification("command/exec/outputDelta", delta))
        # A client that reads slowly makes the command wait.
        await self.connection.outbox.wait_for_room()


@dataclass(frozen=True)
class Write:
    """Bytes for the input of a process; the last ones close it."""

    process: SteeredProcess
    data: bytes
    is_last: bool

    async def write(self) -> None:
        """Write them, as far as the process reads."""
        await self.process.write(self.data, is_last=self.is_last)


class ClientCommands:
    """The commands of a server's clients that run, by connection."""

    def __init__(self, config: Config, tools: ToolProvider) -> None:
        self._config = config
        self._tools = tools
        self._runs: dict[Connection, list[Run]] = {}

    async def execute(self, connection: Connection, params: ExecParams) -> ExecResult:
        """Run a command to its end. Raises Refusal."""
        run = Run(params, connection, _byte_limit(params))
        command = await self._prepare(params)
        runs = self._runs.setdefault(connection, [])
        if params.process_id is not None and self._find(connection, params.process_id):
            name = f'"{params.process_id}"'
            raise invalid_request(f"duplicate active command/exec process id: {name}")
        if len(runs) >= MAX_RUNNING:
            raise invalid_request(f"{MAX_RUNNING} commands run already; wait for one to end")
        runs.append(run)
        try:
            status = await self._run(run, command)
        finally:
            runs.remove(run)
            if not runs:
                self._runs.pop(connection, None)
        return ExecResult(
            exit_code=status,
            stdout=_text(run.kept["stdout"]),
            stderr=_text(run.kept["stderr"]),
        )

    async def _prepare(self, params: ExecParams) -> Command:
        """Return the command in its sandbox. Raises Refusal if the params are wrong."""
        _check(params)
        config = self._config
        cwd = absolute_folder(params.cwd, config.folder)
        variables: dict[str, str | None] = {
            **command_environment(config.environment, config.command_variables, tty=params.tty),
            **(params.env or {}),
        }
        try:
            confinement = await self._tools.sandbox.confine(
                params.sandbox_policy or sandbox_policy(config.sandbox_mode, config),
                workspace=cwd,
                cwd=cwd,
                env={name: value for name, value in variables.items() if value is not None},
                tty=params.tty,
            )
        except SandboxUnavailable as error:
            raise _not_started(error) from None
        return confinement.command(
            tuple(params.command), cwd, tty=params.tty, timeout=_seconds(params)
        )

    async def _run(self, run: Run, command: Command) -> int:
        size = run.params.size
        try:
            process = SteeredProcess(command, size=(size.rows, size.cols) if size else None)
        except (CannotStart, LaunchFailed, OSError) as error:
            raise _not_started(error) from error
        run.process = process
        if not run.takes_input:
            await process.write(b"", is_last=True)
        ends: list[int | str] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_end_with_client, run, process)
            ends.append(await process.run(run.take))
            tasks.cancel_scope.cancel()
        [status] = ends
        if isinstance(status, str):
            raise _not_started(status)
        return status

    def prepare_write(self, connection: Connection, params: WriteParams) -> "Write":
        """Return what is to be written to a process. Raises Refusal."""
        if params.delta_base64 is None and not params.close_stdin:
            raise invalid_params("command/exec/write requires deltaBase64 or closeStdin")
        try:
            data = base64.b64decode(params.delta_base64 or "", validate=True)
        except (binascii.Error, ValueError) as error:
            raise invalid_params(f"invalid deltaBase64: {error}") from None
        run, process = self._active(connection, params.process_id)
        if not run.takes_input:
            raise invalid_request("stdin streaming is not enabled for this command/exec")
        if not process.takes_input:
            raise invalid_request("stdin is already closed")
        return Write(process, data, is_last=params.close_stdin)

    def resize(self, connection: Connection, params: ResizeParams) -> None:
        """Give the terminal of a process another size. Raises Refusal."""
        _check_size(params.size)
        _, process = self._active(connection, params.process_id)
        if not process.resize(params.size.rows, params.size.cols):
            raise invalid_request("failed to resize PTY: process is not attached to a PTY")

    def terminate(self, connection: Connection, params: TerminateParams) -> None:
        """End a process; its own request is answered as it ends. Raises Refusal."""
        _, process = self._active(connection, params.process_id)
        process.terminate()

    def _find(self, connection: Connection, process_id: str) -> Run | None:
        for run in self._runs.get(connection, ()):
            if run.params.process_id == process_id:
                return run
        return None

    def _active(self, connection: Connection, process_id: str) -> tuple[Run, SteeredProcess]:
        run = self._find(connection, process_id)
        if run is None or run.process is None:
            raise invalid_request(f'no active command/exec for process id "{process_id}"')
        return run, run.process


async def _end_with_client(run: Run, process: SteeredProcess) -> None:
    """End a process's input with the client's own, and the process with the connection.

    A process without a bound ends with the client's input, since nobody can end it then.
    """
    await run.connection.input_read.wait()
    await process.write(b"", is_last=True)
    if not run.params.disable_timeout:
        await run.connection.ended.wait()
    process.terminate()


def _not_started(why: object) -> Refusal:
    return Refusal(ErrorCode.INTERNAL_ERROR, f"failed to spawn command: {why}")


def _check(params: ExecParams) -> None:
    """Refuse params that no command can have, in the order and words of release 0.169."""
    if not params.command:
        raise invalid_request("command must not be empty")
    if params.size is not None and not params.tty:
        raise invalid_params("command/exec size requires tty: true")
    if params.size is not None:
        _check_size(params.size)
    if params.process_id is None and (
        params.tty or params.stream_stdin or params.stream_stdout_stderr
    ):
        raise invalid_request("command/exec tty or streaming requires a client-supplied processId")
    if params.disable_output_cap and params.output_bytes_cap is not None:
        raise invalid_params("command/exec cannot set both outputBytesCap and disableOutputCap")
    if params.disable_timeout and params.timeout_ms is not None:
        raise invalid_params("command/exec cannot set both timeoutMs and disableTimeout")
    if params.timeout_ms is not None and params.timeout_ms < 0:
        raise invalid_params(
            f"command/exec timeoutMs must be non-negative, got {params.timeout_ms}"
        )
    if params.output_bytes_cap is not None and params.output_bytes_cap < 0:
        raise invalid_params("command/exec outputBytesCap must be non-negative")


def _check_size(size: TerminalSize) -> None:
    if not (0 < size.rows <= _MAX_SIZE and 0 < size.cols <= _MAX_SIZE):
        raise invalid_params("command/exec size rows and cols must be greater than 0")


def _seconds(params: ExecParams) -> float | None:
    if params.disable_timeout:
        return None
    return DEFAULT_SECONDS if params.timeout_ms is None else min(params.timeout_ms, _MAX_MS) / 1000


def _byte_limit(params: ExecParams) -> int | None:
    if params.disable_output_cap:
        return None
    return DEFAULT_BYTES if params.output_bytes_cap is None else params.output_bytes_cap


def _text(data: bytearray) -> str:
    """Return the output as text: UTF-8, or else each byte as a character of Latin-1."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
