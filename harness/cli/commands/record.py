"""`harness record`: record a session between any client and server."""

import functools
import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from harness.cli.commands.proxy import ProxyOptions, find_server, run_proxy
from harness.client.target.profile import fill, load_profile
from harness.errors import UsageError
from harness.trace.foreign import TARGET
from harness.trace.marks import Place, ProgramEnded, ProgramErrors, ProgramStarted, RecorderNote
from harness.trace.record.file import RecordingFile, next_numbered_path
from harness.trace.record.masks import Masker
from harness.trace.record.tap import ProgramTap, Tap
from harness.trace.surfaces import SESSION
from harness.trace.trace import End, Header

# The command line before the server's command, as error messages show it.
OPTION: Final = "harness record --"
EXEC: Final = "exec"
SURFACES: Final = (SESSION, EXEC)
# The last bytes of a program's standard error are kept, as in a trace of a run.
MAX_STDERR_BYTES: Final = 64 * 1024
# A recorder never holds messages back, so silence does not matter.
NEVER_QUIET: Final = float("inf")
# The variables that give a server the model's address, as in a run of the harness.
MODEL_VARIABLES: Final = ("PROVIDER_BASE_URL", "OPENAI_BASE_URL")
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Recording:
    """Options of a recording.

    `output` is the file, or a folder in which the recording gets a number. `target` is the server's
    profile, "" for none. `environ` is our environment. `model_url` is the model's real address if
    its side is recorded too, else "".
    """

    output: str
    environ: Mapping[str, str]
    say: Say
    target: str = ""
    surface: str = SESSION
    force: bool = False
    model_url: str = ""

    def open(self, masker: Masker) -> RecordingFile:
        """Open the file and write its header.

        Raises `UsageError` for an unknown surface or profile, or a file that cannot be written.
        """
        if self.surface not in SURFACES:
            raise UsageError(
                f"--surface {self.surface}: expected one of {', '.join(SURFACES)}; nothing else is "
                "recorded"
            )
        profile = load_profile(self.target) if self.target else None
        path = Path(self.output)
        if self.output.endswith("/") or path.is_dir():
            path = next_numbered_path(path)
        header = Header(
            target=TARGET,
            profile=self.target,
            scenario=path.stem,
            surface=self.surface,
            names=dict(profile.names) if profile else {},
            capabilities=list(profile.capabilities)
            if profile and profile.capabilities != "probe"
            else [],
        )
        return RecordingFile(path, header, masker, force=self.force, say=self.say)


def record(command: Sequence[str], recording: Recording, masker: Masker) -> int:
    """Record a server, or an agent, on our standard streams and return its exit status.

    A negative status is the signal that ended it. Raises `UsageError` if it cannot be started or
    the file cannot be written.
    """
    words = find_server(command, OPTION)
    file = recording.open(masker)
    return anyio.run(functools.partial(_record, words, recording, file, masker))


async def _record(
    command: list[str], recording: Recording, file: RecordingFile, masker: Masker
) -> int:
    run = (_Program if recording.surface == EXEC else _Session)(file, masker)
    with file.close_with(lambda: run.end):
        async with with_model(command, recording, file) as (words, env):
            run.write_start(words)
            status = await run_proxy(words, run.proxy_options(env))
        run.write_end(status)
    return status


@asynccontextmanager
async def with_model(
    command: Sequence[str], recording: Recording, file: RecordingFile
) -> AsyncGenerator[tuple[list[str], dict[str, str] | None]]:
    """Yield the command and its environment (None for ours), with a model proxy if requested.

    The server gets the proxy's address in the `MODEL_VARIABLES` and as `{model_url}` in its
    command. Raises `UsageError` if the model's address is not a URL.
    """
    if not recording.model_url:
        yield list(command), None
        return
    from harness.model.recording import model_proxy  # Imports httpx: slow.

    async with model_proxy(recording.model_url, file) as address:
        model_variables = dict.fromkeys(MODEL_VARIABLES, address)
        words = [str(fill(word, {"model_url": address})) for word in command]
        yield words, {**recording.environ, **model_variables}


def real_model_url(option_url: str, environ: Mapping[str, str]) -> str:
    """Return the model's real address from the option, or else from the environment.

    Raises `UsageError` if neither has it.
    """
    url = option_url or next(filter(None, map(environ.get, MODEL_VARIABLES)), "")
    if not url:
        raise UsageError(
            f"--record-model: neither --model-url nor {' or '.join(MODEL_VARIABLES)} says where "
            "the model is"
        )
    return url


class _Session:
    """Recording of a server on standard streams."""

    end = End.CLOSED

    def __init__(self, file: RecordingFile, masker: Masker) -> None:
        self._file, self._masker = file, masker
        self._tap = Tap(file, masker)

    def write_start(self, command: Sequence[str]) -> None:
        """Write the folder and the command."""
        note_start(self._file, self._masker, command)

    def proxy_options(self, env: Mapping[str, str] | None) -> ProxyOptions:
        """Return the options of the proxy."""
        return ProxyOptions(self._tap, NEVER_QUIET, OPTION, env)

    def write_end(self, status: int) -> None:
        """Write the server's exit status."""
        self._file.write_mark(RecorderNote("the server ended", server_ended=True, status=status))


class _Program:
    """Recording of a program that reads its whole input first, such as `agent exec`."""

    end = End.QUIESCENT
    _connection = "p1"

    def __init__(self, file: RecordingFile, masker: Masker) -> None:
        self._file, self._masker = file, masker
        self._tap = ProgramTap(file, masker, self._connection)
        self._errors = bytearray()
        self._push = "none"

    def write_start(self, command: Sequence[str]) -> None:
        """Write the command and the folder."""
        words = self._masker.mask_words(command)
        self._file.write_mark(ProgramStarted(self._connection, words, str(Path.cwd())))

    def proxy_options(self, env: Mapping[str, str] | None) -> ProxyOptions:
        """Return the options of the proxy."""
        return ProxyOptions(
            self._tap,
            NEVER_QUIET,
            OPTION,
            env,
            errors=self._add_errors,
            on_signal=self._note_signal,
        )

    def _add_errors(self, chunk: bytes) -> None:
        self._errors += chunk
        del self._errors[:-MAX_STDERR_BYTES]

    def _note_signal(self, number: signal.Signals) -> None:
        self._push, self.end = number.name, End.CLOSED

    def write_end(self, status: int) -> None:
        """Write the program's standard error and exit status."""
        self._tap.flush(always=not self._tap.input_written)
        errors = self._errors.decode("utf-8", "backslashreplace")
        self._file.write_mark(ProgramErrors(self._connection, errors))
        self._file.write_mark(ProgramEnded(self._connection, status, self._push))


def note_start(file: RecordingFile, masker: Masker, command: Sequence[str]) -> None:
    """Write the folder and the command with which a server is started."""
    file.write_mark(Place(server_cwd=str(Path.cwd())))
    file.write_mark(RecorderNote("started: " + " ".join(masker.mask_words(command))))
