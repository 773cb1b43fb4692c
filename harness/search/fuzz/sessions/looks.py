"""Checks beyond the rules, by what a generated session knows.

Such are turns that were shown before, outputs with the nonce of their command, a turn that nothing
speaks against.

Each problem has a cause (`fuzz.…`), words, the step whose answer shows it, and the values that this
answer should have had. Only what follows from the text is a problem: a turn that was shown
completed is still shown later unless a rollback can have dropped it, and what a command printed is
told of that command. Where requests overlapped nothing is known.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.model.wire.responses import ResponsesEncoder
from harness.play.run import Run
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import ModelCall, ServerEnded, StepBegins

LOST, MIXED, REFUSED = "fuzz.turn-lost", "fuzz.output-mixed", "fuzz.must-succeed"
COUNTED, NAMED = "fuzz.rollback-counts", "fuzz.name-found"
NAME = "thread/name/set"
_MOVING = (NAME, "thread/archive", "thread/unarchive")
ROLLBACK, COMPACT = "thread/rollback", "thread/compact/start"
_DROPPING = (ROLLBACK, COMPACT)
_SHOWING = ("thread/read", "thread/resume", "thread/fork", ROLLBACK)
# They leave a thread as one that certainly takes a turn.
_HARMLESS = ("thread/start", "turn/start", "turn/steer", "turn/interrupt", "thread/read")
# Where a turn that is shown has what the user said.
_SAID = "thread.turns.*.items.*.content.*.text"
_NONCE = re.compile(r"q\d\dn\d\d\d")


@dataclass(frozen=True, slots=True)
class Output:
    """An output that is missing: of an item, or of a model call, by the step that answered it."""

    nonce: str
    thread: str | None = None
    index: int = -1


@dataclass(frozen=True, slots=True)
class Seen:
    """A problem: its cause, words, the number of the step (0 for none), what the step wants.

    With `habit` it is none by itself: it is what the server did where the text leaves it open, and
    a problem only if the same server did otherwise before, and a step can demand that (`where`).
    """

    cause: str
    text: str
    step: int = 0
    where: Mapping[str, Any] = field(default_factory=dict[str, Any])
    habit: str = ""
    output: Output | None = None


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A turn as an answer shows it: what the user said first ("" for unknown), whether he said
    anything, whether it is completed.
    """

    said: str
    user: bool
    completed: bool


@dataclass(slots=True)
class _Thread:
    """The turns with which a thread was last shown, None for unknown.

    `ours` are the connections on which it was started. `stored`: a turn of it has ended, before
    which a server need not have anything to list. `open` are the requests under way, and
    `across` those that overlapped with one that drops turns: which was done first is open.
    """

    shown: list[ShownTurn] | None = None
    open: dict[tuple[str, Any], Frame] = field(default_factory=dict[tuple[str, Any], Frame])
    across: set[tuple[str, Any]] = field(default_factory=set[tuple[str, Any]])
    running: set[str] = field(default_factory=set[str])
    ours: set[str] = field(default_factory=set[str])
    disturbed: bool = False
    stored: bool = False
    name: str = ""
    archived: bool | None = False


def looked_at(run: Run) -> Iterator[Seen]:
    """Every problem of a run."""
    yield from _Walk(run).problems()
    yield from mixed_outputs(run)


def step_at(run: Run, seq: int) -> int:
    """The number of the step that was being played when a message was recorded, 0 for none."""
    begun = [mark.body.line for mark in run.trace.marks_of(StepBegins) if mark.after < seq]
    return begun[-1] if begun else 0


class _Walk:
    """Goes through the messages once, in the order in which they were recorded."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._threads: dict[str, _Thread] = {}
        self._requests: dict[tuple[str, Any], Frame] = {}
        trace = run.trace
        self._ends = [mark.after for mark in trace.marks_of(ServerEnded)]

    def problems(self) -> Iterator[Seen]:
        ends = list(self._ends)
        for frame in self._run.trace.frames:
            while ends and ends[0] < frame.seq:
                # Ids may begin anew with the next process.
                ends.pop(0)
                self._threads.clear()
                self._requests.clear()
            if frame.from_target:
                yield from self._received(frame)
            elif frame.kind is Kind.REQUEST:
                self._sent(frame)

    def _thread(self, thread_id: str) -> _Thread:
        return self._threads.setdefault(thread_id, _Thread())

    def _sent(self, frame: Frame) -> None:
        key = (frame.connection, frame.id)
        self._requests[key] = frame
        thread_id = text(dig(frame.params, "threadId"))
        if not thread_id:
            return
        thread = self._thread(thread_id)
        if thread.open:
            thread.shown, thread.disturbed = None, True
        thread.open[key] = frame
        if len(thread.open) > 1 and any(
            request.method in _DROPPING for request in thread.open.values()
        ):
            thread.across |= thread.open.keys()

    def _received(self, frame: Frame) -> Iterator[Seen]:
        if frame.kind in (Kind.RESPONSE, Kind.ERROR):
            request = self._requests.pop((frame.connection, frame.id), None)
            if request is not None:
                yield from self._answered(request, frame)
            return
        thread_id, turn_id = text(dig(frame.params, "threadId")), dig(frame.params, "turn", "id")
        if frame.method == "turn/started" and isinstance(turn_id, str):
            self._thread(thread_id).running.add(turn_id)
        elif frame.method == "turn/completed" and isinstance(turn_id, str):
            thread = self._thread(thread_id)
            thread.running.discard(turn_id)
            thread.stored = True
            failed = dig(frame.params, "turn", "status") == "failed"
            thread.disturbed = thread.disturbed or failed

    def _answered(self, request: Frame, answer: Frame) -> Iterator[Seen]:
        method, granted = request.method or "", answer.kind is Kind.RESPONSE
        thread_id = text(dig(request.params, "threadId"))
        if method == "thread/start" and granted:
            # Nothing says that what one connection began is known on another one.
            self._thread(text(dig(answer.result, "thread", "id"))).ours.add(request.connection)
        if method == "thread/list" and granted:
            yield from self._searched(request, answer)
        if not thread_id:
            return
        thread = self._thread(thread_id)
        if granted and method in _MOVING:
            self._moved(thread, thread_id, request)
        alone = not (thread.open.keys() - {(request.connection, request.id)})
        thread.open.pop((request.connection, request.id), None)
        if method == "turn/start":
            if granted:
                thread.running.add(text(dig(answer.result, "turn", "id")))
            elif (
                request.connection in thread.ours
                and alone
                and not (thread.disturbed or thread.running)
            ):
                message = text(dig(answer.failure, "message"))
                words = f"turn/start on the idle thread {thread_id} was refused: {message}"
                yield Seen(REFUSED, words, self._step(request), {})
        elif method not in _HARMLESS:
            thread.disturbed = True
        if method == COMPACT:
            thread.shown = None
        if granted and method in _SHOWING:
            yield from self._shown(thread, request, answer)
        thread.across.discard((request.connection, request.id))

    def _moved(self, thread: _Thread, thread_id: str, request: Frame) -> None:
        """Note a new name, or that a thread went to the archive or came back."""
        method = request.method
        alike = [
            request
            for request in self._requests.values()
            if request.method in _MOVING
            and (request.method == NAME) is (method == NAME)
            and dig(request.params, "threadId") == thread_id
        ]
        if method == NAME:
            thread.name = "" if alike else text(dig(request.params, "name"))
        else:
            thread.archived = None if alike else method == "thread/archive"

    def _searched(self, request: Frame, answer: Frame) -> Iterator[Seen]:
        """Return whether a thread is found by the name that it has.

        What a title is, is not said.
        """
        term, archived = dig(request.params, "searchTerm"), dig(request.params, "archived") is True
        listed_ids = [text(obj(listed).get("id")) for listed in arr(dig(answer.result, "data"))]
        moving = {dig(request.params, "threadId") for request in self._requests.values()}
        for thread_id, thread in self._threads.items():
            listed = bool(thread.stored and thread.name)
            if not listed or thread.name != term or thread_id in moving:
                continue
            is_listed = thread_id in listed_ids
            is_last_page = dig(answer.result, "nextCursor") is None
            if thread.archived is archived and (is_listed or is_last_page):
                words = (
                    f"a search for the name {term!r} of thread {thread_id} finds it: {is_listed}"
                )
                aliases = [
                    alias
                    for alias, known_id in self._run.cast.threads.items()
                    if known_id == thread_id
                ]
                demanded = bool(aliases) and not is_listed
                expected = {"data.*.id": f"${aliases[0]}.thread.id"} if demanded else {}
                yield Seen(NAMED, words, self._step(request), expected, habit=str(is_listed))

    def _shown(self, thread: _Thread, request: Frame, answer: Frame) -> Iterator[Seen]:
        """Compare the turns of an answer with those that were shown before."""
        turns = dig(answer.result, "thread", "turns")
        if not isinstance(turns, list) or (
            request.method == "thread/read" and dig(request.params, "includeTurns") is not True
        ):
            return
        now, before = shown_turns(arr(turns)), thread.shown  # pyright: ignore[reportUnknownArgumentType]
        across = (request.connection, request.id) in thread.across
        certain = not (thread.running or thread.open or across)
        if before is not None and certain:
            number = _number(request) if request.method == ROLLBACK else 0
            counted = counts_own_turns(before, now, number) if number else None
            if counted is not None:
                words = f"{request.method} of {number} counts turns that no user began: {counted}"
                kept_turns = before[: len(before) - number] if number else before
                user_text = next((turn.said for turn in reversed(kept_turns) if turn.user), "")
                expected = {} if counted or not user_text else {_SAID: user_text}
                yield Seen(COUNTED, words, self._step(request), expected, str(counted))
            left_turns = _left(before, len(before) if number is None else number)
            yield from self._lost(request, left_turns, now)
        thread.shown = now if certain else None
        if request.method == "thread/fork" and certain:
            self._thread(text(dig(answer.result, "thread", "id"))).shown = list(now)

    def _lost(self, request: Frame, left: list[ShownTurn], now: list[ShownTurn]) -> Iterator[Seen]:
        index = lost_turn(left, now)
        if index is None:
            return
        user_text = left[index].said
        expected = {_SAID: user_text}
        if not user_text:
            expected = {f"thread.turns.{len(left) - 1}.status": "completed"}
        words = (
            f"{request.method} shows {len(now)} turn(s), and not turn {index + 1} of the {len(left)} "
            f"completed ones that must be left{f', which said {user_text!r}' if user_text else ''}"
        )
        yield Seen(LOST, words, self._step(request), expected)

    def _step(self, frame: Frame) -> int:
        """The number of the step that sent a message."""
        return step_at(self._run, frame.seq)


def shown_turns(turns: list[Any]) -> list[ShownTurn]:
    """The turns of a thread object. One that shows no items can be anybody's."""
    shown: list[ShownTurn] = []
    for turn in map(obj, turns):
        items = [obj(item) for item in arr(turn.get("items"))]
        user_texts = [
            text(content.get("text"))
            for item in items
            if item.get("type") == "userMessage"
            for content in map(obj, arr(item.get("content")))
        ]
        texts = [line for line in user_texts if line and not line.startswith("[thread ")]
        completed = turn.get("status") == "completed"
        shown.append(ShownTurn(texts[0] if texts else "", bool(user_texts or not items), completed))
    return shown


def _left(before: list[ShownTurn], dropped: int) -> list[ShownTurn]:
    """The completed turns that a rollback of so many must leave, whatever else it counts."""
    users = [turn for turn in before if turn.user]
    return [turn for turn in users[: max(0, len(users) - dropped)] if turn.completed]


def lost_turn(left: list[ShownTurn], now: list[ShownTurn]) -> int | None:
    """The index of the first turn that is there no more, None where all are.

    Turns that say what they are about are looked for; of others the number counts.
    """
    if not all(turn.said for turn in left):
        return len(now) if len(now) < len(left) else None
    current_texts = {turn.said for turn in now}
    if any(turn.user and not turn.said for turn in now):
        return None
    return next((index for index, turn in enumerate(left) if turn.said not in current_texts), None)


def counts_own_turns(before: list[ShownTurn], now: list[ShownTurn], number: int) -> bool | None:
    """Return whether a rollback counted turns that the server began, a compaction's for example.

    None where that does not show: the text does not say, but a server does the one or the other.
    """
    gone = before[len(now) :]
    if before[: len(now)] != now or all(turn.user for turn in gone):
        return None
    if len(gone) == number:
        return True
    return False if sum(turn.user for turn in gone) == number else None


def _number(request: Frame) -> int | None:
    values = [value for value in obj(request.params).values() if type(value) is int]
    return values[0] if len(values) == 1 else None


def mixed_outputs(run: Run) -> Iterator[Seen]:
    """Outputs that are told of another command than the one that printed them."""
    reported: set[tuple[str, str]] = set()
    for frame in run.trace.frames:
        item = obj(dig(frame.params, "item"))
        if frame.method == "item/completed" and item.get("type") == "commandExecution":
            other = _foreign(text(item.get("command")), text(item.get("aggregatedOutput")))
            if other is not None and other not in reported:
                reported.add(other)
                step = step_at(run, frame.seq)
                words = f"item {item.get('id')}: {_mixed(*other)}"
                yield Seen(MIXED, words, step, output=Output(other[0]))
    arguments, encoder = asked_for(run), ResponsesEncoder()
    after = {mark.body.call: mark.after for mark in run.trace.marks_of(ModelCall)}
    for call in run.model.calls:
        for call_id, output in encoder.outputs(call.body).items():
            other = _foreign(arguments.get(call_id, ""), output)
            if other is not None and other not in reported:
                reported.add(other)
                step = step_at(run, after.get(call.number, -1) + 1)
                words = f"model call {call.number}, {call_id}: {_mixed(*other)}"
                missing_output = Output(other[0], call.thread or None, call.index)
                yield Seen(MIXED, words, step, output=missing_output)


def _mixed(own: str, other: str) -> str:
    return f"the command with {own} has the output of the one with {other}"


def asked_for(run: Run) -> dict[str, str]:
    """The arguments of each tool call that the model's side made, by its id."""
    arguments: dict[str, str] = {}
    for call in run.model.calls:
        for entry in map(obj, arr(call.body.get("input"))):
            if text(entry.get("type")).endswith("_call"):
                call_arguments = text(entry.get("arguments")) or text(entry.get("input"))
                arguments[text(entry.get("call_id"))] = call_arguments
    return arguments


def _foreign(command: str, output: str) -> tuple[str, str] | None:
    """The nonces of a command and of its output, where the output has another one alone."""
    own_nonces, printed_nonces = (
        set(_NONCE.findall(command.replace("'", ""))),
        set(_NONCE.findall(output)),
    )
    if own_nonces and printed_nonces and not own_nonces & printed_nonces:
        return min(own_nonces), min(printed_nonces)
    return None
