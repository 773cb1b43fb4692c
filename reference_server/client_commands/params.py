"""Params and results of `command/exec` and of what steers its process.

Source: the schemas of release 0.169 (`app-server generate-json-schema`).
"""

from typing import Annotated, Literal

from pydantic import Field

from harness.protocol.wire.base import WireModel
from harness.protocol.wire.settings import SandboxPolicy

Length = Annotated[int, Field(ge=0, lt=1 << 16)]


class TerminalSize(WireModel):
    """Size of a terminal in characters."""

    rows: Length
    cols: Length


class ExecParams(WireModel):
    """A command and how it runs.

    `env` changes the server's own variables for commands, null removes one. `output_bytes_cap`:
    maximum bytes of each stream that the client gets. `process_id`: the client's name for the
    process, needed to steer it or to get its output as it comes.
    """

    command: list[str]
    cwd: str | None = None
    env: dict[str, str | None] | None = None
    timeout_ms: int | None = None
    disable_timeout: bool = False
    output_bytes_cap: int | None = None
    disable_output_cap: bool = False
    process_id: str | None = None
    sandbox_policy: SandboxPolicy | None = None
    tty: bool = False
    size: TerminalSize | None = None
    stream_stdin: bool = False
    stream_stdout_stderr: bool = False


class ExecResult(WireModel):
    """The end of a command: exit status, and the output that was not sent as it came."""

    exit_code: int
    stdout: str
    stderr: str


class OutputDelta(WireModel):
    """A piece of output; with `cap_reached` it is the last of its stream that the client gets."""

    process_id: str
    stream: Literal["stdout", "stderr"]
    delta_base64: str
    cap_reached: bool


class WriteParams(WireModel):
    """Bytes for the input of a process; with `close_stdin` they are the last."""

    process_id: str
    delta_base64: str | None = None
    close_stdin: bool = False


class ResizeParams(WireModel):
    """A new size for the terminal of a process."""

    process_id: str
    size: TerminalSize


class TerminateParams(WireModel):
    """The process to end."""

    process_id: str
