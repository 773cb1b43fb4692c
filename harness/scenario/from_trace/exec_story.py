"""The story of runs of `agent exec`: each process is a turn, each event of an item what it made."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness.client.target.profile import ExecProgram
from harness.protocol.values import arr, dig, obj, text
from harness.scenario.exec_told import ENDS
from harness.scenario.from_trace.story import PLAN, Made, Story, Turn
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import ProgramEnded, ProgramStarted, TurnAsked
from harness.trace.trace import Trace

# Words of the command line, by the fields of a profile that have them.
_SAID: Final = ("model", "sandbox", "cwd", "schema_file", "setting", "resume")
_TYPES: Final = {
    "agent_message": "agentMessage",
    "command_execution": "commandExecution",
    "file_change": "fileChange",
    "mcp_tool_call": "mcpToolCall",
    "web_search": "webSearch",
    "todo_list": PLAN,
    "reasoning": "reasoning",
}


@dataclass(slots=True)
class Process:
    """One process: what it was started with, what was written to it, its turn.

    `asked` names the turn and its thread where a run noted that; `begins` and `ends` are numbers of
    frames; `cut` says that whoever started it ended it.
    """

    connection: str
    argv: Sequence[str]
    begins: int
    asked: TurnAsked | None
    said: dict[str, str] = field(default_factory=dict[str, str])
    images: list[str] = field(default_factory=list[str])
    prompt: str = ""
    thread: str = ""
    ends: int | None = None
    cut: bool = False
    turn: Turn | None = None


class ExecStory(Story):
    """A trace of `agent exec` as turns; `program` has the words of its command line."""

    tells_files = False

    def __init__(self, trace: Trace, program: ExecProgram) -> None:
        super().__init__(trace)
        self._program = program
        self.processes: list[Process] = []
        asked: dict[str, TurnAsked] = {}
        for mark in self.marks:
            body = mark.body
            if isinstance(body, TurnAsked):
                asked[body.connection] = body
            elif isinstance(body, ProgramStarted):
                process = Process(
                    body.connection, body.argv, mark.after, asked.get(body.connection)
                )
                process.said, process.images = said_by(program, body.argv)
                self.processes.append(process)
                self.cwds = self.cwds or [body.cwd]
            elif isinstance(body, ProgramEnded):
                self._ended(body, mark.after)
        for process in self.processes:
            self._read(process)

    def _ended(self, body: ProgramEnded, after: int) -> None:
        for process in self.processes:
            if process.connection == body.connection:
                process.ends = after
                process.cut = body.push == "TERM" or body.status in _BY_SIGNAL

    def _read(self, process: Process) -> None:
        frames = [one for one in self.frames if one.connection == process.connection]
        written = [one for one in frames if one.direction is Direction.TO_TARGET]
        process.prompt = b"".join(one.raw for one in written).decode("utf-8", "replace")
        if not process.prompt.strip():
            process.prompt = argument(self._program, process)
        told = (text(obj(one.json).get("thread_id")) for one in frames)
        process.thread = process.said.get("resume") or next(filter(None, told), "")
        # A thread that was never told is one of its own.
        process.thread = process.thread or process.connection
        turn = Turn(process.connection, process.thread, process.begins)
        process.turn = self.turns[process.thread, process.connection] = turn
        turn.told_on = process.connection
        for frame in frames:
            if frame.kind is Kind.EVENT:
                self._event(turn, frame)
        if turn.ends is None:
            turn.ends = process.ends

    def _event(self, turn: Turn, frame: Frame) -> None:
        event = obj(frame.json)
        kind = text(event.get("type"))
        if kind in ENDS and not turn.status:
            turn.ends, turn.status = frame.seq, ENDS[kind]
            turn.error = text(dig(event, "error", "message"))
            self._used(turn, frame, obj(event.get("usage")))
        elif kind in ("item.started", "item.updated", "item.completed"):
            self._item_of(turn, frame, obj(event.get("item")), done=kind == "item.completed")

    def _item_of(self, turn: Turn, frame: Frame, item: Mapping[str, Any], *, done: bool) -> None:
        kind = _TYPES.get(text(item.get("type")), "")
        if not kind:
            return
        value = _of_session(kind, item)
        if kind == PLAN:
            if not turn.made or turn.made[-1].value != value:
                turn.made.append(Made(PLAN, value, frame.seq, frame.seq))
            return
        found = next((one for one in turn.made if one.value.get("id") == value["id"]), None)
        if found is None:
            found = Made(kind, value, frame.seq)
            turn.made.append(found)
        found.value = value
        if done and found.ends is None:
            found.ends = frame.seq

    def _used(self, turn: Turn, frame: Frame, usage: Mapping[str, Any]) -> None:
        """The tokens of a turn are those of all its calls: of one call alone they can be told."""
        names = {
            "inputTokens": "input_tokens",
            "cachedInputTokens": "cached_input_tokens",
            "outputTokens": "output_tokens",
        }
        counts = {name: usage.get(key) for name, key in names.items()}
        self.usage.append((frame.seq, turn.thread, counts))


# By a signal, or as programs say it that saw one: HUP, INT, KILL, TERM.
_BY_SIGNAL: Final = {sign for number in (1, 2, 9, 15) for sign in (-number, 128 + number)}


def said_by(program: ExecProgram, argv: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the words of a command line by the fields of a profile, and the images it names."""
    said: dict[str, str] = {}
    images: list[str] = []
    for name in (*_SAID, "image"):
        words = getattr(program, name)
        for at in range(len(argv)):
            value = _value(words, argv[at : at + len(words)])
            if value is None:
                continue
            if name == "image":
                images.append(value)
            elif name == "setting":
                key, _, told = value.partition("=")
                said[key] = told.strip('"')
            else:
                said[name] = value
    return said, images


def argument(program: ExecProgram, process: Process) -> str:
    """The prompt that stands at the end of a command line, "" for none."""
    last = process.argv[-1] if process.argv else ""
    known = {*program.arguments, *program.resume, *process.said.values(), *process.images}
    return "" if last in known or last.startswith("-") or len(process.argv) < 3 else last


def _value(template: Sequence[str], words: Sequence[str]) -> str | None:
    """Return the words in the place of `{value}` if words are those of a template."""
    if not template or len(words) != len(template):
        return None
    found: str | None = None
    for wanted, word in zip(template, words, strict=True):
        before, placeholder, after = wanted.partition("{value}")
        if not placeholder:
            if word != wanted:
                return None
            continue
        if not (word.startswith(before) and word.endswith(after)):
            return None
        found = word[len(before) : len(word) - len(after)]
    return found


def _of_session(kind: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """An item in the words of the session protocol."""
    plain: dict[str, Any] = {"id": text(item.get("id")), "type": kind}
    match kind:
        case "agentMessage":
            return {**plain, "text": text(item.get("text"))}
        case "reasoning":
            return {**plain, "summary": [text(item.get("text"))]}
        case "commandExecution":
            names = {"aggregated_output": "aggregatedOutput", "exit_code": "exitCode"}
            told = {new: item.get(old) for old, new in names.items()}
            return {**plain, "command": item.get("command"), "status": item.get("status"), **told}
        case "fileChange":
            changes = list(_changes(item))
            return {**plain, "status": item.get("status"), "changes": changes}
        case "mcpToolCall":
            result = dict(obj(item.get("result")))
            result["structuredContent"] = result.pop("structured_content", None)
            told = {name: item.get(name) for name in ("server", "tool", "arguments", "error")}
            return {**plain, **told, "status": item.get("status"), "result": result}
        case "webSearch":
            return {**plain, "query": text(item.get("query"))}
        case _:
            steps = [
                {
                    "step": text(obj(one).get("text")),
                    "status": "completed" if obj(one).get("completed") is True else "pending",
                }
                for one in arr(item.get("items"))
            ]
            return {"plan": steps}


def _changes(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The changes of files: the events say which, and not what was in them."""
    for change in map(obj, arr(item.get("changes"))):
        yield {"path": text(change.get("path")), "kind": text(change.get("kind")), "diff": ""}
