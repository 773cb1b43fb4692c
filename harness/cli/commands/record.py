"""`harness record`: writes down a session between a client and a server that are not ours."""

import functools
import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from harness.cli.commands.proxy import Proxied, found, proxied
from harness.client.target.profile import fill, load_profile
from harness.errors import UsageError
from harness.model.recording import MODEL_VARIABLES, model_proxy
from harness.trace.foreign import TARGET
from harness.trace.marks import Place, ProgramEnded, ProgramErrors, ProgramStarted, RecorderNote
from harness.trace.record.file import RecordingFile, numbered
from harness.trace.record.masks import Masker
from harness.trace.record.tap import ProgramTap, Tap
from harness.trace.surfaces import SESSION
from harness.trace.trace import End, Header

# What takes the server's command, as messages about it name it.
OPTION: Final = "harness record --"
EXEC: Final = "exec"
SURFACES: Final = (SESSION, EXEC)
# So much of a program's standard error is kept, its end, as in a trace of a run.
MAX_STDERR_BYTES: Final = 64 * 1024
# A recorder never holds anything back, so it minds no silence.
NEVER: Final = float("inf")
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Recording:
    """The subject of a recording, and its file.

    `output` is the file, or a folder in which the recording gets a number. `target` is the profile
    of the server, "" where it has none. `environ` is our environment, and `model_url` the model's
    real address where its side is recorded too, "" where it is not.
    """

    output: str
    environ: Mapping[str, str]
    say: Say
    target: str = ""
    surface: str = SESSION
    force: bool = False
    model_url: str = ""

    def open(self, masker: Masker) -> RecordingFile:
        """The file, with its header. Raises `UsageError`."""
        if self.surface not in SURFACES:
            raise UsageError(
                f"--surface {self.surface}: expected one of {', '.join(SURFACES)}; nothing else is "
                "recorded"
            )
        profile = load_profile(self.target) if self.target else None
        path = Path(self.output)
        if self.output.endswith("/") or path.is_dir():
            path = numbered(path)
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
    """Run a server, or an agent, on our standard streams; gives its exit status.

    Below 0 is the signal that ended it. Raises `UsageError` where it cannot be started, or nothing
    can be written.
    """
    words = found(command, OPTION)
    file = recording.open(masker)
    return anyio.run(functools.partial(_recorded, words, recording, file, masker))


async def _recorded(
    command: list[str], recording: Recording, file: RecordingFile, masker: Masker
) -> int:
    run = (_Program if recording.surface == EXEC else _Session)(file, masker)
    with file.kept(lambda: run.end):
        async with with_model(command, recording, file) as (words, env):
            run.begins(words)
            status = await proxied(words, run.how(env))
        run.ended(status)
    return status


@asynccontextmanager
async def with_model(
    command: Sequence[str], recording: Recording, file: RecordingFile
) -> AsyncGenerator[tuple[list[str], dict[str, str] | None]]:
    """The command and its environment (None for ours), with the model's proxy where it is wanted.

    The server is told of it by the variables of `MODEL_VARIABLES` and by `{model_url}` in its
    command. Raises `UsageError` where nothing says where the model is.
    """
    if not recording.model_url:
        yield list(command), None
        return
    async with model_proxy(recording.model_url, file) as address:
        model_variables = dict.fromkeys(MODEL_VARIABLES, address)
        words = [str(fill(word, {"model_url": address})) for word in command]
        yield words, {**recording.environ, **model_variables}


def real_model(given: str, environ: Mapping[str, str]) -> str:
    """The model's real address: the one that is given, or else that of the environment.

    Raises `UsageError` where there is none.
    """
    url = given or next(filter(None, map(environ.get, MODEL_VARIABLES)), "")
    if not url:
        raise UsageError(
            f"--record-model: neither --model-url nor {' or '.join(MODEL_VARIABLES)} says where "
            "the model is"
        )
    return url


class _Session:
    """A server on standard streams."""

    end = End.CLOSED

    def __init__(self, file: RecordingFile, masker: Masker) -> None:
        self._file, self._masker = file, masker
        self._tap = Tap(file, masker)

    def begins(self, command: Sequence[str]) -> None:
        """Say what is started."""
        note_start(self._file, self._masker, command)

    def how(self, env: Mapping[str, str] | None) -> Proxied:
        """Return the way in which it is started."""
        return Proxied(self._tap, NEVER, OPTION, env)

    def ended(self, status: int) -> None:
        """Say how it ended."""
        self._file.mark(RecorderNote("the server ended", server_ended=True, status=status))


class _Program:
    """A program that is given its input whole, such as `agent exec`."""

    end = End.QUIESCENT
    _connection = "p1"

    def __init__(self, file: RecordingFile, masker: Masker) -> None:
        self._file, self._masker = file, masker
        self._tap = ProgramTap(file, masker, self._connection)
        self._errors = bytearray()
        self._push = "none"

    def begins(self, command: Sequence[str]) -> None:
        """Say what is started."""
        words = self._masker.words(command)
        self._file.mark(ProgramStarted(self._connection, words, str(Path.cwd())))

    def how(self, env: Mapping[str, str] | None) -> Proxied:
        """Return the way in which it is started."""
        return Proxied(self._tap, NEVER, OPTION, env, errors=self._told, signalled=self._signalled)

    def _told(self, chunk: bytes) -> None:
        self._errors += chunk
        del self._errors[:-MAX_STDERR_BYTES]

    def _signalled(self, number: signal.Signals) -> None:
        self._push, self.end = number.name, End.CLOSED

    def ended(self, status: int) -> None:
        """Say what it wrote to its standard error, and how it ended."""
        self._tap.flush(always=not self._tap.given)
        errors = self._errors.decode("utf-8", "backslashreplace")
        self._file.mark(ProgramErrors(self._connection, errors))
        self._file.mark(ProgramEnded(self._connection, status, self._push))


def note_start(file: RecordingFile, masker: Masker, command: Sequence[str]) -> None:
    """Say where a server is started, and how."""
    file.mark(Place(server_cwd=str(Path.cwd())))
    file.mark(RecorderNote("started: " + " ".join(masker.words(command))))
