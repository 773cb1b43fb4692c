"""The story of runs of `agent exec`: each process is a turn, each item a product."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness.client.target.profile import ExecProgram
from harness.protocol.values import arr, dig, obj, text
from harness.scenario.exec_results import STATUS_OF_END
from harness.scenario.from_trace.story import PLAN, Product, Story, Turn
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import ProgramEnded, ProgramStarted, TurnRequested
from harness.trace.trace import Trace

# Fields of a profile with words of the command line.
_OPTIONS: Final = ("model", "sandbox", "cwd", "schema_file", "setting", "resume")
_SESSION_TYPES: Final = {
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
    """One process: its command line, its input, its turn.

    `request` names the turn and its thread if the run recorded them; `first_seq` and `last_seq` are
    frame numbers; `was_ended` is whether the caller ended the process.
    """

    connection: str
    argv: Sequence[str]
    first_seq: int
    request: TurnRequested | None
    options: dict[str, str] = field(default_factory=dict[str, str])
    images: list[str] = field(default_factory=list[str])
    prompt: str = ""
    thread: str = ""
    last_seq: int | None = None
    was_ended: bool = False
    turn: Turn | None = None


class ExecStory(Story):
    """Story of a trace of `agent exec`; `program` describes its command line."""

    has_file_contents = False

    def __init__(self, trace: Trace, program: ExecProgram) -> None:
        super().__init__(trace)
        self._program = program
        self.processes: list[Process] = []
        requests: dict[str, TurnRequested] = {}
        for mark in self.marks:
            body = mark.body
            if isinstance(body, TurnRequested):
                requests[body.connection] = body
            elif isinstance(body, ProgramStarted):
                process = Process(
                    body.connection, body.argv, mark.after, requests.get(body.connection)
                )
                process.options, process.images = options_of(program, body.argv)
                self.processes.append(process)
                self.cwds = self.cwds or [body.cwd]
            elif isinstance(body, ProgramEnded):
                self._on_program_ended(body, mark.after)
        for process in self.processes:
            self._read_process(process)

    def _on_program_ended(self, body: ProgramEnded, after: int) -> None:
        for process in self.processes:
            if process.connection == body.connection:
                process.last_seq = after
                process.was_ended = body.push == "TERM" or body.status in _SIGNAL_STATUSES

    def _read_process(self, process: Process) -> None:
        frames = [
            frame_of_process
            for frame_of_process in self.frames
            if frame_of_process.connection == process.connection
        ]
        inputs = [frame for frame in frames if frame.direction is Direction.TO_TARGET]
        process.prompt = b"".join(one.raw for one in inputs).decode("utf-8", "replace")
        if not process.prompt.strip():
            process.prompt = prompt_argument(self._program, process)
        thread_ids = (text(obj(frame.json).get("thread_id")) for frame in frames)
        process.thread = process.options.get("resume") or next(filter(None, thread_ids), "")
        # Without a reported thread id, each process has its own thread.
        process.thread = process.thread or process.connection
        turn = Turn(process.connection, process.thread, process.first_seq)
        process.turn = self.turns[process.thread, process.connection] = turn
        turn.connection = process.connection
        for frame in frames:
            if frame.kind is Kind.EVENT:
                self._on_event(turn, frame)
        if turn.ends is None:
            turn.ends = process.last_seq

    def _on_event(self, turn: Turn, frame: Frame) -> None:
        event = obj(frame.json)
        kind = text(event.get("type"))
        if kind in STATUS_OF_END and not turn.status:
            turn.ends, turn.status = frame.seq, STATUS_OF_END[kind]
            turn.error = text(dig(event, "error", "message"))
            self._add_usage(turn, frame, obj(event.get("usage")))
        elif kind in ("item.started", "item.updated", "item.completed"):
            self._add_item(turn, frame, obj(event.get("item")), done=kind == "item.completed")

    def _add_item(self, turn: Turn, frame: Frame, item: Mapping[str, Any], *, done: bool) -> None:
        kind = _SESSION_TYPES.get(text(item.get("type")), "")
        if not kind:
            return
        value = _session_item(kind, item)
        if kind == PLAN:
            if not turn.products or turn.products[-1].value != value:
                turn.products.append(Product(PLAN, value, frame.seq, frame.seq))
            return
        product = next(
            (known for known in turn.products if known.value.get("id") == value["id"]), None
        )
        if product is None:
            product = Product(kind, value, frame.seq)
            turn.products.append(product)
        product.value = value
        if done and product.ends is None:
            product.ends = frame.seq

    def _add_usage(self, turn: Turn, frame: Frame, usage: Mapping[str, Any]) -> None:
        """Record the token counts of a turn, which are the sum over its calls."""
        names = {
            "inputTokens": "input_tokens",
            "cachedInputTokens": "cached_input_tokens",
            "outputTokens": "output_tokens",
        }
        counts = {name: usage.get(key) for name, key in names.items()}
        self.usage.append((frame.seq, turn.thread, counts))


# Statuses after HUP, INT, KILL or TERM: negative from the system, 128 + n from a shell.
_SIGNAL_STATUSES: Final = {sign for number in (1, 2, 9, 15) for sign in (-number, 128 + number)}


def options_of(program: ExecProgram, argv: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return a command line's options, keyed by profile field or setting, and its image paths."""
    options: dict[str, str] = {}
    images: list[str] = []
    for name in (*_OPTIONS, "image"):
        words = getattr(program, name)
        for index in range(len(argv)):
            value = _value_in_words(words, argv[index : index + len(words)])
            if value is None:
                continue
            if name == "image":
                images.append(value)
            elif name == "setting":
                key, _, setting = value.partition("=")
                options[key] = setting.strip('"')
            else:
                options[name] = value
    return options, images


def prompt_argument(program: ExecProgram, process: Process) -> str:
    """Return the prompt at the end of a command line, "" if there is none."""
    last_word = process.argv[-1] if process.argv else ""
    other_words = {*program.arguments, *program.resume, *process.options.values(), *process.images}
    return (
        ""
        if last_word in other_words or last_word.startswith("-") or len(process.argv) < 3
        else last_word
    )


def _value_in_words(template: Sequence[str], words: Sequence[str]) -> str | None:
    """Return the text in place of `{value}` if the words fit the template, else None."""
    if not template or len(words) != len(template):
        return None
    value: str | None = None
    for pattern, word in zip(template, words, strict=True):
        before, placeholder, after = pattern.partition("{value}")
        if not placeholder:
            if word != pattern:
                return None
            continue
        if not (word.startswith(before) and word.endswith(after)):
            return None
        value = word[len(before) : len(word) - len(after)]
    return value


def _session_item(kind: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item in the words of the session protocol."""
    plain: dict[str, Any] = {"id": text(item.get("id")), "type": kind}
    match kind:
        case "agentMessage":
            return {**plain, "text": text(item.get("text"))}
        case "reasoning":
            return {**plain, "summary": [text(item.get("text"))]}
        case "commandExecution":
            names = {"aggregated_output": "aggregatedOutput", "exit_code": "exitCode"}
            members = {new: item.get(old) for old, new in names.items()}
            return {
                **plain,
                "command": item.get("command"),
                "status": item.get("status"),
                **members,
            }
        case "fileChange":
            changes = list(_changes(item))
            return {**plain, "status": item.get("status"), "changes": changes}
        case "mcpToolCall":
            result = dict(obj(item.get("result")))
            result["structuredContent"] = result.pop("structured_content", None)
            members = {name: item.get(name) for name in ("server", "tool", "arguments", "error")}
            return {**plain, **members, "status": item.get("status"), "result": result}
        case "webSearch":
            return {**plain, "query": text(item.get("query"))}
        case _:
            steps = [
                {
                    "step": text(obj(entry).get("text")),
                    "status": "completed" if obj(entry).get("completed") is True else "pending",
                }
                for entry in arr(item.get("items"))
            ]
            return {"plan": steps}


def _changes(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield file changes with an empty diff: the events have no contents."""
    for change in map(obj, arr(item.get("changes"))):
        yield {"path": text(change.get("path")), "kind": text(change.get("kind")), "diff": ""}
