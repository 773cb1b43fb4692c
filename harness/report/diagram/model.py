"""A conversation as rows of a sequence diagram: time flows down, one participant a column.

All texts may be a server's words. Labels are one line, escaped and shortened; `Message.detail` is
the line as it was on the wire. Whoever draws them escapes them for the form that is drawn.
"""

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, TypeAlias, cast

# The version of `Diagram.as_json`: a change of meaning raises it, a new member does not.
FORMAT_VERSION = 1


class ParticipantKind(StrEnum):
    """The kinds of participants; a TOOL is an MCP server that the harness plays."""

    CLIENT = "client"
    SERVER = "server"
    MODEL = "model"
    TOOL = "tool"


class MessageKind(StrEnum):
    """The forms of messages; MALFORMED is a line that is not a message."""

    REQUEST = "request"
    RESPONSE = "response"
    ERROR = "error"
    NOTIFICATION = "notification"
    MALFORMED = "malformed"


class NoteKind(StrEnum):
    """The kinds of notes.

    STEP: a step of the scenario begins. GATE: a gate opens at which the model's stream may wait.
    RACE: the action of a race. PROCESS: a server, program or connection starts or ends. STDERR:
    lines that a program wrote there. FINDING: a violation without a message. EVENT: any other mark.
    LEFT_OUT: rows that are not drawn. END: how the trace ended.
    """

    STEP = "step"
    GATE = "gate"
    RACE = "race"
    PROCESS = "process"
    STDERR = "stderr"
    FINDING = "finding"
    EVENT = "event"
    LEFT_OUT = "left-out"
    END = "end"


@dataclass(frozen=True, slots=True)
class Participant:
    """A column of the diagram. `id` is ASCII letters and digits, unique in the diagram."""

    id: str
    label: str
    kind: ParticipantKind


@dataclass(frozen=True, slots=True)
class FindingMark:
    """A finding that points at a message.

    `level` is MUST, SHOULD, INFO, KNOWN or ERROR. `path` is the JSON path of the wrong member, such
    as `params.turn.status`, "" if the finding is about the whole message. With `in_proof` the
    message is not wrong itself: the finding follows from it and the wrong one.
    """

    rule: str
    level: str
    path: str = ""
    text: str = ""
    in_proof: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """An arrow: a message of the wire, or a call of a model or tool and its answer.

    `time` is in seconds since the trace began. `frame` is the number of the message in the trace,
    None for a call of a model or tool. `answers` is the number of the request that it answers.
    `detail` is the text on the wire; of a call, the JSON of its mark.
    """

    row: ClassVar[str] = "message"
    time: float
    source: str
    target: str
    label: str
    kind: MessageKind
    detail: str = ""
    marks: tuple[FindingMark, ...] = ()
    frame: int | None = None
    answers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """Several deltas of one item in a row, `count` in number, as one arrow.

    `text` is their joined text, shortened; `first` and `last` are the numbers of their messages.
    """

    row: ClassVar[str] = "folded"
    time: float
    seconds: float
    source: str
    target: str
    label: str
    count: int
    first: int
    last: int
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """A silence of `seconds`, and what was outstanding in it."""

    row: ClassVar[str] = "silence"
    time: float
    seconds: float
    waiting_for: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that happened between messages; `over` are the participants that it is about.

    `detail` is the whole text if `text` stands for several lines.
    """

    row: ClassVar[str] = "note"
    time: float
    kind: NoteKind
    text: str
    over: tuple[str, ...] = ()
    marks: tuple[FindingMark, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A message that is owed and never came: an arrow that does not arrive.

    `because` is the number of the message that makes it owed. Without marks it is owed and no
    finding says so, since the trace ended early.
    """

    row: ClassVar[str] = "missing"
    time: float
    source: str
    target: str
    label: str
    because: int | None = None
    marks: tuple[FindingMark, ...] = ()


Row: TypeAlias = Message | Folded | Silence | Note | Missing


@dataclass(frozen=True, slots=True)
class Diagram:
    """A conversation to draw: participants from left to right, rows from top to bottom."""

    title: str
    participants: tuple[Participant, ...]
    rows: tuple[Row, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the diagram as builtins; members with their default value are left out.

        Each row has `row`: message, folded, silence, note or missing.
        """
        return {
            "version": FORMAT_VERSION,
            "title": self.title,
            "participants": [_members_of(one) for one in self.participants],
            "rows": [{"row": row.row, **_members_of(row)} for row in self.rows],
        }


def _members_of(value: Any) -> dict[str, Any]:
    return {
        field.name: _plain(member)
        for field in dataclasses.fields(value)
        if (member := getattr(value, field.name)) != field.default
    }


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(element) for element in cast("tuple[Any, ...]", value)]
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, StrEnum):
        return value.value
    return _members_of(value) if dataclasses.is_dataclass(value) else value
