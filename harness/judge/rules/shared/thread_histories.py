"""Turns that a thread's model calls should contain, and those that they should not.

The messages of all connections are read in the order in which the harness recorded them. A turn is
recognised in a model call by the beginning of its first text, or of an answer of the model, if no
other turn has a text with it. Everything that may or may not have changed a history makes the turns
concerned uncertain: compactions, killed servers, rollbacks that may count turns in two ways.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from harness.judge.rules.shared.state_tracking import COMPLETED
from harness.judge.rules.shared.view_queries import is_failure, item_in, turn_in
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import ModelCall, ModelEnd, ServerEnded
from harness.trace.message_texts import is_in_text
from harness.trace.order import came_before, marked_before
from harness.trace.trace import Trace

# The characters that identify a text; the mark of a model call keeps a little more.
BEGINNING: Final = 100
MIN_TEXT_CHARACTERS: Final = 3
# Beyond this number of texts nothing is judged: each is compared with all others.
MAX_TEXTS: Final = 300
_COMPACTION: Final = "contextCompaction"
# Requests that name a thread and leave its history as it is.
_LEAVING_HISTORY: Final = frozenset(
    {
        "thread/resume",
        "thread/read",
        "thread/list",
        "thread/loaded/list",
        "thread/archive",
        "thread/unarchive",
        "thread/name/set",
        "thread/unsubscribe",
        "turn/interrupt",
    }
)


@dataclass(slots=True, eq=False)
class SaidTurn:
    """A turn with the texts that identify it in model calls.

    `inputs` are the beginnings of the input's first text and of steered ones; `answers` those of
    the model's final messages. `calls` are the model calls with its input. `compacts` says that the
    history was compacted while it ran.
    """

    thread_id: str
    request: Frame
    inputs: list[str]
    id: str = ""
    end: Frame | None = None
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    answers: list[str] = field(default_factory=list[str])
    is_accepted: bool = False
    compacts: bool = False

    @property
    def is_completed(self) -> bool:
        """Return whether the agent finished the turn."""
        return self.end is not None and turn_in(self.end).get("status") == COMPLETED


@dataclass(slots=True, eq=False)
class History:
    """The turns of a thread: those it certainly has, may have, and certainly dropped.

    `dropped` maps a turn to the answer of the rollback that dropped it. `own` are all turns that
    were started on the thread, `inherited` those that it may have copied as a fork.
    `was_begun_here` says that all of its history is in the trace, `is_lost` that nothing is known
    of it. `is_vague` says that a rollback may count turns that the trace does not show; they come
    before the last `certain` turns of `kept`, which were requested after `doubted_at`.
    `compactions` are the connections that requested one which was not reported there yet.
    """

    kept: list[SaidTurn] = field(default_factory=list[SaidTurn])
    uncertain: set[SaidTurn] = field(default_factory=set[SaidTurn])
    dropped: dict[SaidTurn, Frame] = field(default_factory=dict[SaidTurn, Frame])
    inherited: set[SaidTurn] = field(default_factory=set[SaidTurn])
    own: set[SaidTurn] = field(default_factory=set[SaidTurn])
    was_begun_here: bool = False
    is_vague: bool = False
    is_lost: bool = False
    certain: int = 0
    compactions: list[str] = field(default_factory=list[str])
    doubted_at: Frame | None = None

    def doubt(self, now: Frame | None = None) -> None:
        """Make all turns that it has uncertain, and those that were requested before a message."""
        self.uncertain |= set(self.kept)
        self.kept.clear()
        self.is_vague, self.certain = True, 0
        self.doubted_at = now or self.doubted_at

    def add(self, turn: SaidTurn) -> None:
        """Add an accepted turn."""
        self.own.add(turn)
        if self.doubted_at is not None and came_before(turn.request, self.doubted_at):
            self.uncertain.add(turn)
            self.certain = 0
        else:
            self.kept.append(turn)
            self.certain += 1

    def note_compacted(self, message: Frame) -> None:
        """Note that a compaction which a client requested is over, or was rejected."""
        if message.connection in self.compactions:
            self.compactions.remove(message.connection)

    def roll_back(self, number: int, request: Frame, answer: Frame) -> None:
        """Drop the last turns; those that are dropped in one reading only become uncertain.

        Turns that were cut off may count or not.
        """
        turns = self.kept
        if any(turn.end is None or not came_before(turn.end, request) for turn in turns):
            self.is_lost = True
            return
        if self.compactions:
            self.doubt()
            return
        first = len(turns) - self.certain if self.is_vague else 0
        least = max(first, len(turns) - number)
        completed = [place for place, turn in enumerate(turns[first:], first) if turn.is_completed]
        is_within = number <= len(completed)
        most = completed[-number] if is_within else first
        self.dropped |= dict.fromkeys(turns[least:], answer)
        self.uncertain |= set(turns[most:least])
        self.kept = turns[: min(least, most)]
        if self.is_vague and not is_within:
            self.doubt()
        elif most != least:
            self.is_vague, self.certain = True, 0
        else:
            self.certain = len(self.kept) - first

    def fork(self, request: Frame, answer: Frame) -> "History":
        """Return the history of a fork."""
        ended = [turn for turn in self.kept if turn.end and came_before(turn.end, request)]
        fork = History(kept=ended, dropped=dict(self.dropped))
        fork.uncertain = self.uncertain | {turn for turn in self.kept if turn not in ended}
        fork.inherited = self.own | self.inherited
        fork.was_begun_here, fork.is_vague = (
            self.was_begun_here,
            self.is_vague or len(ended) < len(self.kept),
        )
        fork.certain = self.certain if len(ended) == len(self.kept) else 0
        fork.compactions = list(self.compactions)
        fork.is_lost = self.is_lost or len(obj(request.params)) > 1
        return fork


class ThreadHistories:
    """The histories of all threads of a trace; reads each message once."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._read = 0
        self._marks_read = 0
        self._starts: dict[Frame, SaidTurn] = {}
        self._open: list[SaidTurn] = []
        self._by_call: dict[int, SaidTurn] = {}
        self._turns: dict[tuple[str, str], SaidTurn] = {}
        self._ended: dict[tuple[str, str], Frame] = {}
        self._owners: dict[str, object] = {}
        self._ambiguous: set[str] = set()
        self.histories: dict[str, History] = {}

    def history(self, thread_id: str) -> History:
        """Return the history of a thread, created on first use."""
        return self.histories.setdefault(thread_id, History())

    def read_until(self, moment: Frame) -> None:
        """Read the messages and marks up to and including a message."""
        marks = self._trace.marks
        for frame in islice(self._trace.frames, self._read, None):
            if came_before(moment, frame):
                return
            while self._marks_read < len(marks) and marked_before(marks[self._marks_read], frame):
                self._add_mark(marks[self._marks_read].body)
                self._marks_read += 1
            self._read += 1
            self._add_frame(frame)

    def turn_of_end(self, end: Frame) -> SaidTurn | None:
        """Return the turn that a turn/completed ends, None if this client did not start it."""
        turn = self._turns.get(_key_of(end))
        if turn is None or turn.end is None or turn.request.connection != end.connection:
            return None
        return turn

    @property
    def has_too_many_texts(self) -> bool:
        """Return whether texts were left out, so that none is certainly unique."""
        return len(self._owners) > MAX_TEXTS

    def is_unique(self, words: str) -> bool:
        """Return whether a text is of one turn only."""
        return words in self._owners and words not in self._ambiguous

    def other_turns(self, history: History) -> Iterator[SaidTurn]:
        """Yield the turns that no thread of this history ever had, oldest first."""
        for turn in self._starts.values():
            if turn.is_accepted and turn not in history.own and turn not in history.inherited:
                yield turn

    def _add_text(self, words: str, owner: object) -> None:
        if len(words) < MIN_TEXT_CHARACTERS or self.has_too_many_texts:
            return
        for other, known in self._owners.items():
            if known is not owner and (is_in_text(words, other) or is_in_text(other, words)):
                self._ambiguous |= {words, other}
        self._owners.setdefault(words, owner)

    def _add_mark(self, body: object) -> None:
        if isinstance(body, ModelCall):
            self._add_call(body)
        elif isinstance(body, ModelEnd):
            self._add_answers(body)
        elif isinstance(body, ServerEnded) and body.killed:
            # A server may write a turn, or a rollback, later than it reports it.
            for history in self.histories.values():
                history.doubt()
                history.uncertain |= history.dropped.keys()
                history.dropped.clear()

    def _add_answers(self, end: ModelEnd) -> None:
        """Note the texts of the model, also those in calls that belong to no known turn."""
        turn = self._by_call.pop(end.call, None)
        for message in end.texts:
            words = beginning_of(message.text)
            self._add_text(words, turn or end)
            if turn is not None and end.is_complete and not end.tools:
                turn.answers.append(words)

    def _add_call(self, call: ModelCall) -> None:
        """Assign a call to the only running turn whose input it contains."""
        turns = [
            turn
            for turn in self._open
            if turn.inputs[0]
            and is_in_call(turn.inputs[0], call)
            and turn.inputs[0] in self._owners
        ]
        if len(turns) == 1 and self.is_unique(turns[0].inputs[0]):
            turns[0].calls.append(call)
            self._by_call[call.call] = turns[0]

    def _add_frame(self, frame: Frame) -> None:
        if frame.kind is Kind.NOTIFICATION:
            if frame.from_target:
                self._add_notification(frame)
            return
        request = self._trace.pairs.request_of(frame)
        if frame.kind is Kind.REQUEST:
            if not frame.from_target:
                self._add_request(frame)
        elif request is not None and frame.from_target:
            self._add_answer(request, frame)

    def _add_request(self, frame: Frame) -> None:
        params = obj(frame.params)
        if frame.method in _LEAVING_HISTORY:
            return
        thread_id = text(params.get("threadId"))
        if frame.method == "turn/start":
            turn = SaidTurn(thread_id, frame, [_input_text(params)])
            self._starts[frame] = turn
            self._open.append(turn)
            self._add_text(turn.inputs[0], turn)
            if frame.deliberate:
                self.history(thread_id).is_lost = True
        elif frame.method == "turn/steer":
            turn = next((one for one in reversed(self._open) if one.thread_id == thread_id), None)
            self._add_text(_input_text(params), turn or frame)
            if turn is not None:
                turn.inputs.append(_input_text(params))
        elif frame.method == "thread/compact/start":
            self.history(thread_id).doubt(frame)
            self.history(thread_id).compactions.append(frame.connection)
        elif frame.method not in ("thread/rollback", "thread/fork", "thread/start"):
            for history in self._named_histories(params):
                history.is_lost = True

    def _named_histories(self, params: dict[str, Any]) -> list[History]:
        values = {value for value in params.values() if isinstance(value, str)}
        return [self.histories[name] for name in values & self.histories.keys()]

    def _add_answer(self, request: Frame, answer: Frame) -> None:
        failed = is_failure(answer)
        if request.method == "turn/start" and request in self._starts:
            self._add_turn(self._starts[request], answer, failed=failed)
        elif request.method == "thread/rollback" and not failed:
            for history in self._named_histories(obj(request.params)):
                number = rolled_back_turns(request)
                overlapping = any(
                    self.histories.get(turn.thread_id) is history for turn in self._open
                )
                if number is None or request.deliberate or overlapping:
                    history.is_lost = True
                else:
                    history.roll_back(number, request, answer)
        elif request.method == "thread/compact/start" and failed:
            self.history(text(obj(request.params).get("threadId"))).note_compacted(answer)
        elif request.method in ("thread/start", "thread/fork") and not failed:
            thread_id = text(dig(answer.result, "thread", "id"))
            if request.method == "thread/start":
                self.history(thread_id).was_begun_here = True
            else:
                source = self.history(text(obj(request.params).get("threadId")))
                self.histories[thread_id] = source.fork(request, answer)

    def _add_turn(self, turn: SaidTurn, answer: Frame, *, failed: bool) -> None:
        if turn.id or failed:
            if failed and turn in self._open:
                self._open.remove(turn)
            return
        turn.id, turn.is_accepted = text(turn_in(answer).get("id")), True
        history, key = self.history(turn.thread_id), (turn.thread_id, turn.id)
        history.add(turn)
        # A turn whose id is that of an earlier one cannot be told from it.
        history.is_lost = history.is_lost or key in self._turns
        self._turns[key] = turn
        end = self._ended.get(key)
        if end is not None:
            self._end(turn, end)

    def _add_notification(self, frame: Frame) -> None:
        if frame.method == "turn/completed":
            key = _key_of(frame)
            if key not in self._ended:
                self._ended[key] = frame
                for turn in [turn for turn in self._open if (turn.thread_id, turn.id) == key]:
                    self._end(turn, frame)
        elif frame.method in ("item/started", "item/completed"):
            if item_in(frame).get("type") == _COMPACTION:
                thread_id = text(obj(frame.params).get("threadId"))
                history = self.history(thread_id)
                history.doubt(frame)
                if frame.method == "item/completed":
                    history.note_compacted(frame)
                for turn in self._open:
                    turn.compacts = turn.compacts or turn.thread_id == thread_id
        elif frame.method == "turn/started":
            self._add_started(frame)

    def _add_started(self, frame: Frame) -> None:
        """Note a turn that no turn/start began: a later rollback may count it."""
        thread_id, turn_id = _key_of(frame)
        begins = any(turn.thread_id == thread_id and not turn.id for turn in self._open)
        if not begins and (thread_id, turn_id) not in self._turns:
            history = self.history(thread_id)
            history.is_vague, history.certain = True, 0

    def _end(self, turn: SaidTurn, end: Frame) -> None:
        turn.end = end
        self._open.remove(turn)


def beginning_of(words: str) -> str:
    """Return the part of a text that identifies it."""
    return words.strip()[:BEGINNING]


def is_in_call(words: str, call: ModelCall, apart_from: Iterable[str] = ()) -> bool:
    """Return whether a message of a model call contains a text, as far as its mark shows.

    Messages that begin with another text of `apart_from` do not count: an answer may repeat the
    input.
    """
    messages = (*(call.user_texts or ()), *(call.recalled or ()))
    others = tuple(other for other in apart_from if other and other != words)
    return any(
        is_in_text(words, message.strip()) and not message.startswith(others)
        for message in messages
    )


def rolled_back_turns(request: Frame) -> int | None:
    """Return the only number in a rollback's params, which are not specified.

    None if there is not exactly one, or it is not a positive integer.
    """
    values = obj(request.params).values()
    numbers = [
        value for value in values if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    number = numbers[0] if len(numbers) == 1 else None
    return number if isinstance(number, int) and number > 0 else None


def _key_of(frame: Frame) -> tuple[str, str]:
    """Return the ids of thread and turn in turn/started or turn/completed."""
    return text(obj(frame.params).get("threadId")), text(turn_in(frame).get("id"))


def _input_text(params: dict[str, Any]) -> str:
    parts = [obj(part) for part in arr(params.get("input"))]
    texts = [text(part.get("text")) for part in parts if part.get("type") == "text"]
    return beginning_of(texts[0]) if texts else ""
