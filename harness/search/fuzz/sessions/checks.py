"""Checks beyond the rules, possible because a generated session is known in detail.

They compare turns with those shown before, and outputs with the nonce of their command, and expect
that an idle thread takes a turn. Only what follows from the specification is a problem: a completed
turn is still shown later unless a rollback can have dropped it, and output belongs to the command
that printed it. Nothing is concluded from overlapping requests.
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
from harness.trace.trace import Trace

LOST, MIXED, REFUSED = "fuzz.turn-lost", "fuzz.output-mixed", "fuzz.must-succeed"
COUNTED, NAMED = "fuzz.rollback-counts", "fuzz.name-found"
NAME = "thread/name/set"
_MOVING_METHODS = (NAME, "thread/archive", "thread/unarchive")
ROLLBACK, COMPACT = "thread/rollback", "thread/compact/start"
_DROPPING_METHODS = (ROLLBACK, COMPACT)
_SHOWING_METHODS = ("thread/read", "thread/resume", "thread/fork", ROLLBACK)
# Requests after which a thread certainly takes another turn.
_HARMLESS_METHODS = ("thread/start", "turn/start", "turn/steer", "turn/interrupt", "thread/read")
# Path of the user's text in an answer with turns.
_USER_TEXT_PATH = "thread.turns.*.items.*.content.*.text"
_NONCE = re.compile(r"q\d\dn\d\d\d")


@dataclass(frozen=True, slots=True)
class Output:
    """An output that is missing from an item, or from the model call of a thread's step `index`."""

    nonce: str
    thread: str | None = None
    index: int = -1


@dataclass(frozen=True, slots=True)
class Observation:
    """A problem: its cause (`fuzz.…`), words, step number (0 for none), expected values (`where`).

    With `habit` it is the server's choice at an open point: a problem only if the same server chose
    otherwise before, and a step can expect that.
    """

    cause: str
    text: str
    step: int = 0
    where: Mapping[str, Any] = field(default_factory=dict[str, Any])
    habit: str = ""
    output: Output | None = None


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A turn in an answer: its first user text ("" if unknown), whether the user began it."""

    user_text: str
    by_user: bool
    is_completed: bool


@dataclass(slots=True)
class _Thread:
    """State of a thread; `last_turns` are those shown last, None if unknown.

    `own_connections` are those on which it was started. `is_stored`: one of its turns has ended;
    before that a server need not list it. `open` are the requests in progress, and `overlapped`
    those that overlapped with one that drops turns, so that their order is unknown.
    """

    last_turns: list[ShownTurn] | None = None
    open: dict[tuple[str, Any], Frame] = field(default_factory=dict[tuple[str, Any], Frame])
    overlapped: set[tuple[str, Any]] = field(default_factory=set[tuple[str, Any]])
    running_turns: set[str] = field(default_factory=set[str])
    own_connections: set[str] = field(default_factory=set[str])
    is_disturbed: bool = False
    is_stored: bool = False
    name: str = ""
    is_archived: bool | None = False


def find_observations(run: Run) -> Iterator[Observation]:
    """Yield every problem and every habit in a run."""
    yield from _Walk(run).problems()
    yield from mixed_outputs(run)


def step_at(trace: Trace, seq: int) -> int:
    """Return the number of the step during which a message was recorded, 0 if none had begun."""
    begun = [mark.body.line for mark in trace.marks_of(StepBegins) if mark.after < seq]
    return begun[-1] if begun else 0


class _Walk:
    """One pass over the messages of a run, in recorded order."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._threads: dict[str, _Thread] = {}
        self._requests: dict[tuple[str, Any], Frame] = {}
        trace = run.trace
        self._ends = [mark.after for mark in trace.marks_of(ServerEnded)]

    def problems(self) -> Iterator[Observation]:
        ends = list(self._ends)
        for frame in self._run.trace.frames:
            while ends and ends[0] < frame.seq:
                # The next process may reuse ids.
                ends.pop(0)
                self._threads.clear()
                self._requests.clear()
            if frame.from_target:
                yield from self._on_received(frame)
            elif frame.kind is Kind.REQUEST:
                self._on_request(frame)

    def _thread(self, thread_id: str) -> _Thread:
        return self._threads.setdefault(thread_id, _Thread())

    def _on_request(self, frame: Frame) -> None:
        key = (frame.connection, frame.id)
        self._requests[key] = frame
        thread_id = text(dig(frame.params, "threadId"))
        if not thread_id:
            return
        thread = self._thread(thread_id)
        if thread.open:
            thread.last_turns, thread.is_disturbed = None, True
        thread.open[key] = frame
        if len(thread.open) > 1 and any(
            request.method in _DROPPING_METHODS for request in thread.open.values()
        ):
            thread.overlapped |= thread.open.keys()

    def _on_received(self, frame: Frame) -> Iterator[Observation]:
        if frame.kind in (Kind.RESPONSE, Kind.ERROR):
            request = self._requests.pop((frame.connection, frame.id), None)
            if request is not None:
                yield from self._on_answer(request, frame)
            return
        thread_id, turn_id = text(dig(frame.params, "threadId")), dig(frame.params, "turn", "id")
        if frame.method == "turn/started" and isinstance(turn_id, str):
            self._thread(thread_id).running_turns.add(turn_id)
        elif frame.method == "turn/completed" and isinstance(turn_id, str):
            thread = self._thread(thread_id)
            thread.running_turns.discard(turn_id)
            thread.is_stored = True
            failed = dig(frame.params, "turn", "status") == "failed"
            thread.is_disturbed = thread.is_disturbed or failed

    def _on_answer(self, request: Frame, answer: Frame) -> Iterator[Observation]:
        method, granted = request.method or "", answer.kind is Kind.RESPONSE
        thread_id = text(dig(request.params, "threadId"))
        if method == "thread/start" and granted:
            # Other connections need not know the thread.
            self._thread(text(dig(answer.result, "thread", "id"))).own_connections.add(
                request.connection
            )
        if method == "thread/list" and granted:
            yield from self._check_search(request, answer)
        if not thread_id:
            return
        thread = self._thread(thread_id)
        if granted and method in _MOVING_METHODS:
            self._note_move(thread, thread_id, request)
        alone = not (thread.open.keys() - {(request.connection, request.id)})
        thread.open.pop((request.connection, request.id), None)
        if method == "turn/start":
            if granted:
                thread.running_turns.add(text(dig(answer.result, "turn", "id")))
            elif (
                request.connection in thread.own_connections
                and alone
                and not (thread.is_disturbed or thread.running_turns)
            ):
                message = text(dig(answer.failure, "message"))
                words = f"turn/start on the idle thread {thread_id} was refused: {message}"
                yield Observation(REFUSED, words, self._step(request), {})
        elif method not in _HARMLESS_METHODS:
            thread.is_disturbed = True
        if method == COMPACT:
            thread.last_turns = None
        if granted and method in _SHOWING_METHODS:
            yield from self._check_turns(thread, request, answer)
        thread.overlapped.discard((request.connection, request.id))

    def _note_move(self, thread: _Thread, thread_id: str, request: Frame) -> None:
        """Record a new name, or that a thread was archived or unarchived."""
        method = request.method
        alike = [
            request
            for request in self._requests.values()
            if request.method in _MOVING_METHODS
            and (request.method == NAME) is (method == NAME)
            and dig(request.params, "threadId") == thread_id
        ]
        if method == NAME:
            thread.name = "" if alike else text(dig(request.params, "name"))
        else:
            thread.is_archived = None if alike else method == "thread/archive"

    def _check_search(self, request: Frame, answer: Frame) -> Iterator[Observation]:
        """Check whether a search finds a thread by its name; the specification leaves that open."""
        term, archived = dig(request.params, "searchTerm"), dig(request.params, "archived") is True
        listed_ids = [text(obj(listed).get("id")) for listed in arr(dig(answer.result, "data"))]
        moving = {dig(request.params, "threadId") for request in self._requests.values()}
        for thread_id, thread in self._threads.items():
            listed = bool(thread.is_stored and thread.name)
            if not listed or thread.name != term or thread_id in moving:
                continue
            is_listed = thread_id in listed_ids
            is_last_page = dig(answer.result, "nextCursor") is None
            if thread.is_archived is archived and (is_listed or is_last_page):
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
                yield Observation(NAMED, words, self._step(request), expected, habit=str(is_listed))

    def _check_turns(self, thread: _Thread, request: Frame, answer: Frame) -> Iterator[Observation]:
        """Compare the turns of an answer with those shown before."""
        turns = dig(answer.result, "thread", "turns")
        if not isinstance(turns, list) or (
            request.method == "thread/read" and dig(request.params, "includeTurns") is not True
        ):
            return
        now, before = shown_turns(arr(turns)), thread.last_turns  # pyright: ignore[reportUnknownArgumentType]
        across = (request.connection, request.id) in thread.overlapped
        certain = not (thread.running_turns or thread.open or across)
        if before is not None and certain:
            number = _number(request) if request.method == ROLLBACK else 0
            counted = counts_own_turns(before, now, number) if number else None
            if counted is not None:
                words = f"{request.method} of {number} counts turns that no user began: {counted}"
                kept_turns = before[: len(before) - number] if number else before
                user_text = next(
                    (turn.user_text for turn in reversed(kept_turns) if turn.by_user), ""
                )
                expected = {} if counted or not user_text else {_USER_TEXT_PATH: user_text}
                yield Observation(COUNTED, words, self._step(request), expected, str(counted))
            left_turns = _turns_left(before, len(before) if number is None else number)
            yield from self._check_lost(request, left_turns, now)
        thread.last_turns = now if certain else None
        if request.method == "thread/fork" and certain:
            self._thread(text(dig(answer.result, "thread", "id"))).last_turns = list(now)

    def _check_lost(
        self, request: Frame, left_turns: list[ShownTurn], now: list[ShownTurn]
    ) -> Iterator[Observation]:
        index = lost_turn(left_turns, now)
        if index is None:
            return
        user_text = left_turns[index].user_text
        expected = {_USER_TEXT_PATH: user_text}
        if not user_text:
            expected = {f"thread.turns.{len(left_turns) - 1}.status": "completed"}
        said = f", which said {user_text!r}" if user_text else ""
        words = (
            f"{request.method} shows {len(now)} turn(s), and not turn {index + 1} of the "
            f"{len(left_turns)} completed ones that must be left{said}"
        )
        yield Observation(LOST, words, self._step(request), expected)

    def _step(self, frame: Frame) -> int:
        """Return the number of the step that sent a message."""
        return step_at(self._run.trace, frame.seq)


def shown_turns(turns: list[Any]) -> list[ShownTurn]:
    """Return the turns of a thread object; one without items counts as the user's."""
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


def _turns_left(before: list[ShownTurn], dropped: int) -> list[ShownTurn]:
    """Return the completed turns that a rollback must leave, whichever turns it counts."""
    users = [turn for turn in before if turn.by_user]
    return [turn for turn in users[: max(0, len(users) - dropped)] if turn.is_completed]


def lost_turn(left_turns: list[ShownTurn], now: list[ShownTurn]) -> int | None:
    """Return the index of the first missing turn, None if none is missing.

    Turns are identified by their user texts; if some have none, only their number is compared.
    """
    if not all(turn.user_text for turn in left_turns):
        return len(now) if len(now) < len(left_turns) else None
    current_texts = {turn.user_text for turn in now}
    if any(turn.by_user and not turn.user_text for turn in now):
        return None
    return next(
        (index for index, turn in enumerate(left_turns) if turn.user_text not in current_texts),
        None,
    )


def counts_own_turns(before: list[ShownTurn], now: list[ShownTurn], number: int) -> bool | None:
    """Return whether a rollback counted turns that the server began, such as a compaction's.

    None if the answer does not show it. The specification leaves it open, but a server is
    consistent.
    """
    gone = before[len(now) :]
    if before[: len(now)] != now or all(turn.by_user for turn in gone):
        return None
    if len(gone) == number:
        return True
    return False if sum(turn.by_user for turn in gone) == number else None


def _number(request: Frame) -> int | None:
    values = [value for value in obj(request.params).values() if type(value) is int]
    return values[0] if len(values) == 1 else None


def mixed_outputs(run: Run) -> Iterator[Observation]:
    """Yield outputs that are attributed to another command than the one that printed them."""
    reported: set[tuple[str, str]] = set()
    for frame in run.trace.frames:
        item = obj(dig(frame.params, "item"))
        if frame.method == "item/completed" and item.get("type") == "commandExecution":
            other = _foreign_output(text(item.get("command")), text(item.get("aggregatedOutput")))
            if other is not None and other not in reported:
                reported.add(other)
                step = step_at(run.trace, frame.seq)
                words = f"item {item.get('id')}: {_mixed_words(*other)}"
                yield Observation(MIXED, words, step, output=Output(other[0]))
    arguments, encoder = tool_arguments(run), ResponsesEncoder()
    after = {mark.body.call: mark.after for mark in run.trace.marks_of(ModelCall)}
    for call in run.model.calls:
        for call_id, output in encoder.outputs(call.body).items():
            other = _foreign_output(arguments.get(call_id, ""), output)
            if other is not None and other not in reported:
                reported.add(other)
                step = step_at(run.trace, after.get(call.number, -1) + 1)
                words = f"model call {call.number}, {call_id}: {_mixed_words(*other)}"
                missing_output = Output(other[0], call.thread or None, call.index)
                yield Observation(MIXED, words, step, output=missing_output)


def _mixed_words(own: str, other: str) -> str:
    return f"the command with {own} has the output of the one with {other}"


def tool_arguments(run: Run) -> dict[str, str]:
    """Return the arguments of each tool call of the model, keyed by its id."""
    arguments: dict[str, str] = {}
    for call in run.model.calls:
        for entry in map(obj, arr(call.body.get("input"))):
            if text(entry.get("type")).endswith("_call"):
                call_arguments = text(entry.get("arguments")) or text(entry.get("input"))
                arguments[text(entry.get("call_id"))] = call_arguments
    return arguments


def _foreign_output(command: str, output: str) -> tuple[str, str] | None:
    """Return the nonces of a command and of its output if they differ, else None."""
    own_nonces, printed_nonces = (
        set(_NONCE.findall(command.replace("'", ""))),
        set(_NONCE.findall(output)),
    )
    if own_nonces and printed_nonces and not own_nonces & printed_nonces:
        return min(own_nonces), min(printed_nonces)
    return None
