"""Events between the frames of a trace: a class for each kind of mark.

A mark is written by the harness (by a recorder, for what another program recorded) and read by
rules, by what judges the end of a trace, and by reports.

Adding a field with a default keeps old files readable. Any other change needs a new
`MARKS_VERSION` and a way to read the former one (mark_rows).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

# The version of the classes below. Version 1 were dictionaries that nothing checked.
MARKS_VERSION: Final = 2


class MarkBody:
    """The content of a mark. `kind` names the class in files and in what people read."""

    __slots__ = ()
    kind: ClassVar[str]

    @property
    def about(self) -> str | None:
        """The connection that it is about, None where it is about none in particular."""
        return None


class CallEnd(StrEnum):
    """Ends of the answer to a model call.

    COMPLETED: all of it was streamed. DISCONNECTED: the scripted model cut the stream. DROPPED: the
    server stopped reading. STATUS: it was no stream, but an HTTP status and a body. FAILED: the
    stream ended with an error event. UNKNOWN: whoever recorded the trace did not say.
    """

    COMPLETED = "completed"
    DISCONNECTED = "disconnected"
    DROPPED = "dropped"
    STATUS = "status"
    FAILED = "failed"
    UNKNOWN = "unknown"


# The code of an error event for which the script names none.
DEFAULT_CODE: Final = "server_error"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall(MarkBody):
    """The server called its model.

    `call` is the number of the call, from 1; 0 where a recorder gave none. `thread` is the alias of
    the thread whose script answers, "" where there is one script only. `step` is the index of the
    answering step in that script, -1 for none. `model` is the name that was asked for and
    `user_texts` are the beginnings of the last texts of the user; None where a recorder did not
    read the call. `effort` and `summary` are "" for none; `schema` says whether the answer must fit
    a JSON Schema. `outputs` are what the tool calls of the thread's last answer printed, as this
    call says; very long outputs are left out. `held` are the paths, and the longer lines, of
    files that the harness wrote (`FileWritten`) which stand anywhere in the call. `offered` are the
    tools of MCP servers of the play that the model could call now.
    """

    kind: ClassVar[str] = "model-call"
    call: int = 0
    thread: str = ""
    step: int = -1
    model: str | None = None
    user_texts: tuple[str, ...] | None = None
    effort: str = ""
    summary: str = ""
    schema: bool = False
    outputs: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    offered: tuple["McpAsked", ...] = ()

    @property
    def scripted(self) -> bool:
        """Return whether a step of the script answers it."""
        return self.step >= 0


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the model: its text, possibly cut, and its phase, "" for none."""

    text: str
    phase: str = ""


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A step of a plan that the model gave."""

    step: str
    status: str


@dataclass(frozen=True, slots=True)
class McpAsked:
    """A tool of an MCP server that the model called, and that server, by their names.

    `arguments` is what it gave, as JSON text; "" where nobody noted it.
    """

    server: str
    tool: str
    arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEnd(MarkBody):
    """The answer to a model call has ended.

    `call` is the number of the call as in `ModelCall`. `status` is the HTTP status of an answer by
    status, else 0. `code` and `said` are the code and the words of a failure that the server could
    read, "" for none. `usage` is the number of tokens that was reported, 0 for none; `plans` are
    the plans that were given; `answers` is the model that said it answers, "" where it is the one
    that was asked. `texts` are the messages, `tools` is the number of tools that were called and
    `mcp` those of MCP servers among them; they are empty for an answer that halts or holds bytes
    that no model sends, since what a server makes of such an answer is open.
    """

    kind: ClassVar[str] = "model-end"
    call: int = 0
    outcome: CallEnd = CallEnd.UNKNOWN
    status: int = 0
    code: str = ""
    said: str = ""
    usage: int = 0
    plans: tuple[tuple[PlanStep, ...], ...] = ()
    answers: str = ""
    texts: tuple[Said, ...] = ()
    tools: int = 0
    mcp: tuple[McpAsked, ...] = ()

    @property
    def completed(self) -> bool:
        """Return whether the whole answer was sent."""
        return self.outcome is CallEnd.COMPLETED

    @property
    def told(self) -> str:
        """The outcome in words, for findings."""
        match self.outcome:
            case CallEnd.STATUS:
                return f"status {self.status}"
            case CallEnd.FAILED:
                return f"failed {self.code or DEFAULT_CODE}"
            case CallEnd.DROPPED:
                return "dropped by the caller"
            case _:
                return str(self.outcome)


@dataclass(frozen=True, slots=True)
class ModelListens(MarkBody):
    """The model's address began to take connections, or to refuse them."""

    kind: ClassVar[str] = "model-listens"
    listening: bool


@dataclass(frozen=True, slots=True)
class GateOpened(MarkBody):
    """A step of the scenario opened a gate at which the model's stream may have waited."""

    kind: ClassVar[str] = "gate"
    gate: str


@dataclass(frozen=True, slots=True)
class Setup(MarkBody):
    """A set-up began, or ended: what is judged within one counts for no rule as exercised."""

    kind: ClassVar[str] = "setup"
    active: bool


@dataclass(frozen=True, slots=True)
class StepBegins(MarkBody):
    """The player begins a step: its name and its line in the scenario's file."""

    kind: ClassVar[str] = "step"
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class RaceActs(MarkBody):
    """The action of a race is performed now."""

    kind: ClassVar[str] = "race"
    action: str


@dataclass(frozen=True, slots=True)
class Closed(MarkBody):
    """The harness ended a connection, or made the server do so: nothing is owed on it any more.

    A server may end a connection whose client does not read.
    """

    kind: ClassVar[str] = "closed"
    connection: str

    @property
    def about(self) -> str:
        """The connection that was ended."""
        return self.connection


@dataclass(frozen=True, slots=True)
class ServerEnded(MarkBody):
    """The harness ended the server's process, without notice where it `killed` it.

    What answers afterwards is another process over the same home.
    """

    kind: ClassVar[str] = "server-ended"
    killed: bool


@dataclass(frozen=True, slots=True)
class EndingBegins(MarkBody):
    """The scenario's steps are over; what follows brings the trace to its end."""

    kind: ClassVar[str] = "ending"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled(MarkBody):
    """Something was owed in the end, and it did not come though nothing else was outstanding.

    `silence` is the time in seconds without a message; `owed` names what was owed. The others are
    the numbers of what could still have brought it.
    """

    kind: ClassVar[str] = "settled"
    silence: float
    owed: tuple[str, ...]
    model_streams: int = 0
    server_requests: int = 0
    child_processes: int = 0
    retries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place(MarkBody):
    """The folders of the run, absolute paths: the server's home, its threads' working folder, and
    the working folder of the server's process. `agent` is the name of a project's own folder, which
    the server reads by itself; "" where nobody noted it.
    """

    kind: ClassVar[str] = "place"
    home: str = ""
    cwd: str = ""
    server_cwd: str = ""
    agent: str = ""

    def named(self) -> dict[str, str]:
        """The folders by the names that stand for them in normalised text."""
        return {"home": self.home, "cwd": self.cwd, "server-cwd": self.server_cwd}


@dataclass(frozen=True, slots=True)
class PartialLine(MarkBody):
    """The trace ended within a line: the beginning of the line, and its length in bytes so far."""

    kind: ClassVar[str] = "partial-line"
    head: str
    size: int


@dataclass(frozen=True, slots=True)
class RecorderNote(MarkBody):
    """A note in somebody else's recording.

    `server_ended` says that the server's process was over, `status` with which exit status; None
    where the note does not tell.
    """

    kind: ClassVar[str] = "recorder"
    note: str = ""
    server_ended: bool = False
    status: int | None = None


@dataclass(frozen=True, slots=True)
class ProgramStarted(MarkBody):
    """A program was started, without a shell, in the folder `cwd`, an absolute path.

    A program's process is a connection of its own. `variables` are the names of those of its
    environment that the harness set; a value may be a secret.
    """

    kind: ClassVar[str] = "program-started"
    connection: str
    argv: tuple[str, ...]
    cwd: str
    variables: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        """The connection that is its process."""
        return self.connection


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAsked(MarkBody):
    """A program that is started next is asked for one turn, by its arguments and its input.

    `turn` is what the scenario calls it, and `of` the thread; `thread` is the id of the thread with
    which it is to go on, "" for a new one, and `earlier` the prompts of that thread's turns before,
    but for those that were told to end.
    `model` is the name that was asked for, "" for none, `schema` the JSON Schema of its answer, as
    JSON text.
    """

    kind: ClassVar[str] = "turn-asked"
    connection: str
    turn: str
    of: str
    thread: str = ""
    earlier: tuple[str, ...] = ()
    model: str = ""
    schema: str = ""

    @property
    def about(self) -> str:
        """The connection that is the program's process."""
        return self.connection


@dataclass(frozen=True, slots=True)
class Told:
    """An item that was told: its type, and the text of a message, "" for any other."""

    type: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class ToldBySession(MarkBody):
    """The session's news of a turn of the same scenario, which was played there too.

    `status` is the end of the turn; `items` are those that were completed, in order, with their
    types in the words of the events of `agent exec`.
    """

    kind: ClassVar[str] = "told-by-session"
    turn: str
    status: str
    items: tuple[Told, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgramErrors(MarkBody):
    """The standard error of a program, the end of it if it is long.

    It is written when the program has ended: nobody knows its order to the lines.
    """

    kind: ClassVar[str] = "program-errors"
    connection: str
    text: str

    @property
    def about(self) -> str:
        """The connection that is its process."""
        return self.connection


@dataclass(frozen=True, slots=True)
class ProgramEnded(MarkBody):
    """A program has ended; all of its lines come before.

    `status` is its exit status, the negative number of the signal that ended it, or None where that
    is not known. `push` is the signal that we sent to end it, "none" where it ended by itself.
    """

    kind: ClassVar[str] = "program-ended"
    connection: str
    status: int | None
    push: str

    @property
    def about(self) -> str:
        """The connection that is its process."""
        return self.connection


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSeen(MarkBody):
    """Somebody looked at a file of the server, without waiting.

    `path` is absolute. `size` in bytes and `sha256` in hex are those of a file that is there, 0 and
    "" of one that is not. `folder` says whether the folder is there in which it lies, or would.
    `elsewhere` are the paths of files below the server's home that have the bytes that were at
    `path` when somebody last saw a file there; it is only asked where there is none now.
    """

    kind: ClassVar[str] = "file-seen"
    path: str
    exists: bool
    size: int = 0
    sha256: str = ""
    folder: bool = False
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWritten(MarkBody):
    """The harness wrote a file, or removed it (`exists` False), before whatever comes next.

    `path` is absolute. `text` is the whole file, None where it is none: bytes that are not UTF-8.
    """

    kind: ClassVar[str] = "file-written"
    path: str
    exists: bool = True
    text: str | None = None


@dataclass(frozen=True, slots=True)
class TextsFound:
    """A file that has some of the texts that were searched for, in its path or in its bytes."""

    path: str
    named: tuple[str, ...] = ()
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeSearched(MarkBody):
    """Somebody searched the server's home for texts, in the paths and the bytes of its files.

    `files` were looked at; `whole` is False where there were too many, or too large ones.
    """

    kind: ClassVar[str] = "home-searched"
    texts: tuple[str, ...]
    found: tuple[TextsFound, ...] = ()
    files: int = 0
    whole: bool = True


BODIES: Final[tuple[type[MarkBody], ...]] = (
    ModelCall,
    ModelEnd,
    ModelListens,
    GateOpened,
    Setup,
    StepBegins,
    RaceActs,
    Closed,
    ServerEnded,
    EndingBegins,
    Settled,
    Place,
    PartialLine,
    RecorderNote,
    ProgramStarted,
    TurnAsked,
    ToldBySession,
    ProgramErrors,
    ProgramEnded,
    FileSeen,
    FileWritten,
    HomeSearched,
)
