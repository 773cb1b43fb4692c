"""Events between the frames of a trace: a class for each kind of mark.

Marks are written by the harness, or by the recorder of another program; they are read by rules, by
the code that ends a trace, and by reports.

Adding a field with a default keeps old files readable. Any other change needs a new
`MARKS_VERSION` and a way to read the former one (mark_rows).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

# The version of the classes below. Version 1 was unchecked dictionaries.
MARKS_VERSION: Final = 2


class MarkBody:
    """The content of a mark. `kind` names the class in files and in reports."""

    __slots__ = ()
    kind: ClassVar[str]

    @property
    def connection_id(self) -> str | None:
        """The connection that the mark is about, None if about no particular one."""
        return None


class CallEnd(StrEnum):
    """Ways in which the answer to a model call ends.

    COMPLETED: all of it was streamed. DISCONNECTED: the scripted model cut the stream. DROPPED: the
    server stopped reading. STATUS: an HTTP status and a body instead of a stream. FAILED: the
    stream ended with an error event. UNKNOWN: the recorder did not say.
    """

    COMPLETED = "completed"
    DISCONNECTED = "disconnected"
    DROPPED = "dropped"
    STATUS = "status"
    FAILED = "failed"
    UNKNOWN = "unknown"


# The code of an error event if the script names none.
DEFAULT_CODE: Final = "server_error"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall(MarkBody):
    """A call of the model by the server.

    `call` is the number of the call, from 1; 0 if a recorder gave none. `thread` is the alias of
    the thread whose script answers, "" if there is only one script. `step` is the index of the
    answering step in that script, -1 for none. `model` is the requested model and `user_texts` are
    the beginnings of the last texts of the user; None if a recorder did not read the call. `effort`
    and `summary` are "" for none; `schema` says whether the answer must fit a JSON Schema.
    `outputs` are the outputs, as sent in this call, of the tool calls in the thread's last answer;
    very long ones are left out. `held` are the paths and the longer lines of files that the harness
    wrote (`FileWritten`) and that the call contains. `wire` is the API of the call, "" for the
    Responses API. `offered` are the tools of MCP servers of the
    play that the model could call now. `images` are short digests of the last images in the call.
    `recalled` are the beginnings of the messages of earlier calls and answers, of any thread, that
    the call contains and that `user_texts` lacks; None if they were not compared.
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
    offered: tuple["McpToolCall", ...] = ()
    images: tuple[str, ...] = ()
    wire: str = ""
    recalled: tuple[str, ...] | None = None

    @property
    def is_scripted(self) -> bool:
        """Return whether a step of the script answers the call."""
        return self.step >= 0


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """A message of the model: its text, possibly cut, and its phase, "" for none."""

    text: str
    phase: str = ""


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A step of the model's plan."""

    step: str
    status: str


@dataclass(frozen=True, slots=True)
class McpToolCall:
    """A call of a tool of an MCP server by the model.

    `arguments` is JSON text, "" if it was not recorded.
    """

    server: str
    tool: str
    arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEnd(MarkBody):
    """The end of the answer to a model call.

    `call` is the number of the call as in `ModelCall`. `status` is the HTTP status of an answer by
    status, else 0. `code` and `said` are the code and the message of a failure that the server
    could read, "" for none. `usage` is the reported number of tokens, 0 for none; `plans` are the
    model's plans; `answers` is the model that the answer names, "" if it is the requested one.
    `texts` are the messages, `tools` is the number of tool calls and `mcp` are the calls of MCP
    tools among them; they are empty for an answer that halts or holds bytes that no model sends,
    since the specification leaves the handling of such an answer open.
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
    texts: tuple[ModelMessage, ...] = ()
    tools: int = 0
    mcp: tuple[McpToolCall, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Return whether the whole answer was sent."""
        return self.outcome is CallEnd.COMPLETED

    @property
    def rejects_content(self) -> bool:
        """Return whether the call was answered by a status that objects to its content."""
        return self.status in (400, 413, 415, 422)

    @property
    def outcome_text(self) -> str:
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
    """The beginning (`active`) or end of a set-up, in which no rule counts as exercised."""

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
class Leaving(MarkBody):
    """Base of the marks of a client that leaves a connection."""

    connection: str

    @property
    def connection_id(self) -> str:
        """The connection that the client leaves."""
        return self.connection


@dataclass(frozen=True, slots=True)
class Closed(Leaving):
    """The end of a connection by the harness, or by a server that the harness made end it.

    Nothing is owed on it any more. A server may end a connection whose client does not read.
    """

    kind: ClassVar[str] = "closed"


@dataclass(frozen=True, slots=True)
class ClientLeft(Leaving):
    """A client that is not the harness ended a connection, before the server did.

    It closed its side, died, or had the server stopped, and answers nothing from here on. Later
    messages of the server are its clean-up; whatever the server owed before is still owed.
    """

    kind: ClassVar[str] = "client-left"


@dataclass(frozen=True, slots=True)
class ServerEnded(MarkBody):
    """The harness ended the server's process, with SIGKILL if `killed`.

    Another process over the same home answers afterwards.
    """

    kind: ClassVar[str] = "server-ended"
    killed: bool


@dataclass(frozen=True, slots=True)
class EndingBegins(MarkBody):
    """The end of the scenario's steps; the ending of the trace follows."""

    kind: ClassVar[str] = "ending"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled(MarkBody):
    """Obligations that were still open when nothing else was outstanding.

    `silence` is the time in seconds without a message; `owed` names the obligations. The other
    fields count activities that could still have met one.
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
    """The absolute paths of the run: the server's home, the working folders of threads and server.

    `agent` is the name of the folder in a project that the server reads by itself, "" if it was not
    recorded.
    """

    kind: ClassVar[str] = "place"
    home: str = ""
    cwd: str = ""
    server_cwd: str = ""
    agent: str = ""

    def folders_by_name(self) -> dict[str, str]:
        """Return the folders by their placeholder names in normalised text."""
        return {"home": self.home, "cwd": self.cwd, "server-cwd": self.server_cwd}


@dataclass(frozen=True, slots=True)
class PartialLine(MarkBody):
    """The trace ended within a line: the beginning of the line, and its length in bytes so far."""

    kind: ClassVar[str] = "partial-line"
    head: str
    size: int


@dataclass(frozen=True, slots=True)
class RecorderNote(MarkBody):
    """A note in the recording of another program.

    `server_ended` says that the server's process had ended, `status` is its exit status, None if
    the note does not say.
    """

    kind: ClassVar[str] = "recorder"
    note: str = ""
    server_ended: bool = False
    status: int | None = None


@dataclass(frozen=True, slots=True)
class ProgramStarted(MarkBody):
    """A program was started, without a shell, in the folder `cwd`, an absolute path.

    A program's process is a connection of its own. `variables` are the names of the environment
    variables that the harness set; their values may be secrets.
    """

    kind: ClassVar[str] = "program-started"
    connection: str
    argv: tuple[str, ...]
    cwd: str
    variables: tuple[str, ...] = ()

    @property
    def connection_id(self) -> str:
        """The connection that is the program's process."""
        return self.connection


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequested(MarkBody):
    """A request for one turn, to the program that is started next.

    `turn` and `of` are the scenario's names of the turn and the thread; `thread` is the id of the
    thread to resume, "" for a new one, and `earlier` the prompts of its earlier turns, without
    the interrupted ones. `model` is the requested model and `schema` the JSON Schema of its answer
    as JSON text, "" for none.
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
    def connection_id(self) -> str:
        """The connection that is the program's process."""
        return self.connection


@dataclass(frozen=True, slots=True)
class SessionItem:
    """An item in the session's notifications: its type, and its text if it is a message."""

    type: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class SessionReport(MarkBody):
    """The turn of the same scenario as the session reported it.

    `status` is the end of the turn; `items` are the completed items, in order, with the names that
    events of `agent exec` have for their types.
    """

    kind: ClassVar[str] = "told-by-session"
    turn: str
    status: str
    items: tuple[SessionItem, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgramErrors(MarkBody):
    """The standard error of a program, only the end if it is long.

    It is recorded when the program has ended: its order relative to the lines is unknown.
    """

    kind: ClassVar[str] = "program-errors"
    connection: str
    text: str

    @property
    def connection_id(self) -> str:
        """The connection that is the program's process."""
        return self.connection


@dataclass(frozen=True, slots=True)
class ProgramEnded(MarkBody):
    """A program has ended; all of its lines come before.

    `status` is its exit status, the negative number of the signal that ended it, or None if that is
    not known. `push` is the signal that the harness sent to end it, "none" if it ended by itself.
    """

    kind: ClassVar[str] = "program-ended"
    connection: str
    status: int | None
    push: str

    @property
    def connection_id(self) -> str:
        """The connection that is the program's process."""
        return self.connection


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSeen(MarkBody):
    """A look at a file of the server, without waiting.

    `path` is absolute. `size` in bytes is 0 and `sha256` in hex is "" if the file does not exist.
    `folder` says whether its folder exists. `elsewhere` are the files below the server's home with
    the bytes that `path` had when it was last seen; they are searched only if it is missing now.
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

    `path` is absolute. `text` is the whole file, None if its bytes are not UTF-8.
    """

    kind: ClassVar[str] = "file-written"
    path: str
    exists: bool = True
    text: str | None = None


@dataclass(frozen=True, slots=True)
class FileMatch:
    """A file with some of the searched texts: `named` in its path, `held` in its bytes."""

    path: str
    named: tuple[str, ...] = ()
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeSearched(MarkBody):
    """A search of the server's home for texts, in the paths and bytes of its files.

    `files` is the number of files searched; `whole` is False if some were too many or too large.
    """

    kind: ClassVar[str] = "home-searched"
    texts: tuple[str, ...]
    found: tuple[FileMatch, ...] = ()
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
    ClientLeft,
    ServerEnded,
    EndingBegins,
    Settled,
    Place,
    PartialLine,
    RecorderNote,
    ProgramStarted,
    TurnRequested,
    SessionReport,
    ProgramErrors,
    ProgramEnded,
    FileSeen,
    FileWritten,
    HomeSearched,
)
