"""Words of a diagram: labels of messages, of calls of models and tools, and of events."""

from typing import Any, Final

from harness.protocol.escapes import json_text, visible, visible_json
from harness.protocol.values import dig, obj, read_path, text
from harness.report.diagram.model import Folded, Message, MessageKind, Missing, Note, NoteKind, Row
from harness.trace import marks, mcp_marks
from harness.trace.excerpt import Spot
from harness.trace.frame import Frame, Kind
from harness.trace.mark_rows import to_row

MAX_LABEL_CHARACTERS: Final = 90
MAX_NOTE_CHARACTERS: Final = 240
MAX_ID_CHARACTERS: Final = 8
ID_END_CHARACTERS: Final = 4
_NOTE_WORDS: Final = {NoteKind.STEP: "step: ", NoteKind.STDERR: "stderr: "}
# Characters of a longer line that are kept, around the members that findings name.
MAX_DETAIL_CHARACTERS: Final = 20_000

KIND_OF_FRAME: Final = {
    Kind.REQUEST: MessageKind.REQUEST,
    Kind.RESPONSE: MessageKind.RESPONSE,
    Kind.ERROR: MessageKind.ERROR,
    Kind.NOTIFICATION: MessageKind.NOTIFICATION,
    Kind.EVENT: MessageKind.NOTIFICATION,
    Kind.INPUT: MessageKind.REQUEST,
    Kind.MALFORMED: MessageKind.MALFORMED,
}
# Members of `params` or `result` that say most about a message, the first that is a string.
_HINTS: Final = (
    ("item", "type"),
    ("turn", "status"),
    ("status", "type"),
    ("decision",),
    ("error", "message"),
    ("turn", "id"),
    ("thread", "id"),
)


def shorten(words: str, limit: int = MAX_LABEL_CHARACTERS) -> str:
    """Return foreign text as one printable line of at most `limit` characters."""
    line = visible(words[: 4 * limit])
    return line if len(line) <= limit and len(words) <= 4 * limit else f"{line[: limit - 1]}…"


def frame_label(frame: Frame, request: Frame | None, *, names_turns: bool = False) -> str:
    """Return the label of a message; `request` is the one that it answers.

    With `names_turns` a message that a turn's status stands for has the end of the turn's id too.
    """
    if frame.kind in (Kind.RESPONSE, Kind.ERROR):
        asked = request.method if request is not None else f"unknown id {frame.id!r}"
        if frame.kind is Kind.RESPONSE:
            return shorten(f"{asked} result {_hint(frame.result)}".rstrip())
        failure = obj(frame.failure)
        words = (str(failure[name]) for name in ("code", "message") if name in failure)
        return shorten(f"{asked} error {' '.join(words)}".rstrip())
    wrote = obj(obj(frame.json).get("wrote"))  # By an SDK's driver: the line of its agent.
    event = wrote or obj(frame.json)
    name = frame.method or text(event.get("type"))
    if not name:
        return shorten(frame.text(MAX_LABEL_CHARACTERS)) or "(an empty line)"
    words = f"{name} {_hint(frame.params if frame.method else event)}".rstrip()
    return shorten(f"{words}{_turn_suffix(frame)}" if names_turns else words)


def _turn_suffix(frame: Frame) -> str:
    """Return the end of the turn's id, in parentheses."""
    turn, status = (text(dig(frame.params, "turn", name)) for name in ("id", "status"))
    if not (frame.method.startswith("turn/") and turn and status):
        return ""
    return f" ({turn if len(turn) <= MAX_ID_CHARACTERS else f'…{turn[-ID_END_CHARACTERS:]}'})"


def _hint(members: Any) -> str:
    return next((words for path in _HINTS if (words := text(dig(members, *path)))), "")


def frame_detail(frame: Frame, paths: list[str]) -> str:
    """Return the text of a message on the wire, with what is not printable as escapes of JSON.

    It is JSON if the message is, unless it is longer than `MAX_DETAIL_CHARACTERS`: then it has the
    beginning and the members at `paths`, with the numbers of characters left out between.
    """
    if len(frame.raw) > MAX_DETAIL_CHARACTERS:
        return frame.text(MAX_DETAIL_CHARACTERS, [Spot(read_path(path)) for path in paths])
    return visible_json(frame.raw.decode("utf-8", "backslashreplace"))


def mark_detail(body: marks.MarkBody) -> str:
    """Return a mark as JSON, shortened."""
    line = json_text({"mark": body.kind, **to_row(body)})
    return shorten(line, MAX_DETAIL_CHARACTERS)


def call_label(body: marks.ModelCall) -> str:
    """Return the label of a call of the model."""
    words = f"call {body.call}" if body.call else "call"
    last = f": {body.user_texts[-1]}" if body.user_texts else ""
    return shorten(f"{words}{last}")


def call_end_label(body: marks.ModelEnd) -> str:
    """Return the label of the end of the model's answer."""
    words = f"answer {body.call}" if body.call else "answer"
    said = f": {body.texts[-1].text}" if body.texts else ""
    tools = f", {body.tools} tool call(s)" if body.tools else ""
    outcome = "" if body.is_complete else f" {body.outcome_text}"
    return shorten(f"{words}{outcome}{tools}{said}")


def tool_label(body: mcp_marks.McpRequest) -> str:
    """Return the label of a request to an MCP server."""
    return shorten(f"{body.method} {body.tool}".rstrip())


def tool_answer_label(body: mcp_marks.McpAnswer) -> str:
    """Return the label of the answer of an MCP server."""
    if body.refused:
        return "refused: another token is needed"
    words = "failed" if body.failed else "result"
    return shorten(f"{words}: {body.texts[0]}" if body.texts else words)


def note_of(body: marks.MarkBody) -> tuple[NoteKind, str] | None:
    """Return the kind and the text of the note for a mark; None if it is not drawn as a note."""
    found = _note_of(body)
    return None if found is None else (found[0], shorten(found[1], MAX_NOTE_CHARACTERS))


def _note_of(body: marks.MarkBody) -> tuple[NoteKind, str] | None:
    match body:
        case marks.StepBegins(name=name, line=line):
            return NoteKind.STEP, f"{name} (line {line})" if line else name
        case marks.EndingBegins():
            return NoteKind.STEP, "the end of the scenario"
        case marks.GateOpened(gate=gate):
            return NoteKind.GATE, f"gate {gate} opens"
        case marks.RaceActs(action=action):
            return NoteKind.RACE, f"race: {action}"
        case _:
            return _process_note(body) or _event_note(body)


def _process_note(body: marks.MarkBody) -> tuple[NoteKind, str] | None:
    match body:
        case marks.ServerEnded(killed=killed):
            words = "killed" if killed else "ended"
            return NoteKind.PROCESS, f"the server's process is {words}; another one follows"
        case marks.Closed(connection=connection):
            return NoteKind.PROCESS, f"connection {connection} is closed"
        case marks.ClientLeft(connection=connection):
            return NoteKind.PROCESS, f"the client left connection {connection}"
        case marks.ProgramStarted(connection=connection, argv=argv):
            return NoteKind.PROCESS, f"{connection} started: {' '.join(argv)}"
        case marks.ProgramEnded(connection=connection, status=status, push=push):
            how = "" if push in ("", "none") else f" after {push}"
            return NoteKind.PROCESS, f"{connection} ended with status {status}{how}"
        case marks.RecorderNote(note=note, server_ended=True, status=status):
            return NoteKind.PROCESS, f"the server ended with status {status}: {note}"
        case marks.ProgramErrors(text=words) if words.strip():
            return NoteKind.STDERR, " | ".join(words.strip().splitlines()[-3:])
        case mcp_marks.McpStarted(server=server):
            return NoteKind.PROCESS, f"MCP server {server} started"
        case _:
            return None


def _event_note(body: marks.MarkBody) -> tuple[NoteKind, str] | None:
    match body:
        case marks.ModelListens(listening=listening):
            return NoteKind.EVENT, f"the model {'takes' if listening else 'refuses'} connections"
        case marks.Settled(silence=silence, owed=owed) if owed:
            return NoteKind.EVENT, f"silent for {silence:.1f} s; owed: {', '.join(owed)}"
        case marks.PartialLine(head=head, size=size):
            return NoteKind.EVENT, f"a line was begun and not ended ({size} bytes): {head}"
        case marks.RecorderNote(note=note):
            return NoteKind.EVENT, note
        case marks.FileWritten(path=path, exists=exists):
            return NoteKind.EVENT, f"{path} {'written' if exists else 'removed'}"
        case marks.FileSeen(path=path, exists=exists):
            return NoteKind.EVENT, f"{path} {'exists' if exists else 'does not exist'}"
        case _:
            return None


def row_label(row: Row) -> str:
    """Return the text that is drawn for a row."""
    match row:
        case Message():
            return row.label
        case Folded():
            return f"{row.label}, {row.count} times"
        case Missing():
            return f"{row.label} {'never came' if row.marks else 'is owed'}"
        case Note():
            return f"{_NOTE_WORDS.get(row.kind, '')}{row.text}"
        case _:
            waiting = f", waiting for {row.waiting_for}" if row.waiting_for else ""
            return f"{row.seconds:.1f} s of silence{waiting}"
