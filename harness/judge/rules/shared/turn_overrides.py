"""Params of turn/start that last for later turns: model and cwd.

The messages of all connections are read, since any client may start a turn. A value is unknown
after a resume, an unsubscription, an archive or a restart, since the settings then are left open,
after a rejected or overlapping turn/start, and after a rollback of the turn that named it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from harness.judge.rules.shared.state_tracking import COMPLETED
from harness.judge.rules.shared.thread_histories import rolled_back_turns
from harness.judge.rules.shared.view_queries import is_failure, turn_in
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import ServerEnded, StepBegins
from harness.trace.order import came_before, marked_before
from harness.trace.trace import Trace

_BEGIN: Final = "turn/start"
_NEW_PROCESS: Final = ("restart", "kill")
# Requests after which a thread may have other settings.
_RESETTING: Final = methods_with("may-reload")
# Further requests about a thread that leave its settings as they are.
_HARMLESS: Final = frozenset(
    {
        "thread/fork",
        "thread/read",
        "thread/name/set",
        "thread/compact/start",
        "turn/steer",
        "turn/interrupt",
    }
)


@dataclass(frozen=True, slots=True)
class Override:
    """A value that a turn/start named, with the request; `value` is "" if none ever did."""

    value: str = ""
    request: Frame | None = None


@dataclass(slots=True)
class _Settings:
    """The override of a thread, None if unknown, and the later turns.

    `completed` counts the turns that began after it and were completed; `running` are the
    turn/start that may still run, with the ids of their turns; `ended` are ids of ended turns.
    """

    override: Override | None = None
    completed: int = 0
    running: dict[Frame, str] = field(default_factory=dict[Frame, str])
    ended: set[str] = field(default_factory=set[str])


class TurnOverrides:
    """The last value of one param of turn/start, for each turn; reads each message once.

    `is_valid` says whether a value can be compared.
    """

    def __init__(self, trace: Trace, param: str, is_valid: Callable[[str], bool] = bool) -> None:
        self._trace, self._param, self._is_valid = trace, param, is_valid
        self._read = self._marks_read = 0
        self._settings: dict[str, _Settings] = {}
        self._expected: dict[Frame, Override | None] = {}

    def of_turn(self, request: Frame, now: Frame) -> Override | None:
        """Return the override that a turn/start named, or one before; None if it is unknown."""
        self._read_until(now)
        return self._expected.get(request)

    def _read_until(self, now: Frame) -> None:
        marks = self._trace.marks
        for frame in islice(self._trace.frames, self._read, None):
            if came_before(now, frame):
                return
            while self._marks_read < len(marks) and marked_before(marks[self._marks_read], frame):
                body = marks[self._marks_read].body
                self._marks_read += 1
                begins = isinstance(body, StepBegins) and body.name in _NEW_PROCESS
                if begins or isinstance(body, ServerEnded):
                    self._settings.clear()
            self._read += 1
            self._add_frame(frame)

    def _add_frame(self, frame: Frame) -> None:
        if frame.kind is Kind.NOTIFICATION:
            if frame.from_target and frame.method == "turn/completed":
                self._end_turn(frame)
            return
        request = self._trace.pairs.request_of(frame)
        if frame.kind is Kind.REQUEST and not frame.from_target:
            self._add_request(frame)
        elif request is not None and frame.from_target:
            self._add_answer(request, frame)

    def _of_thread(self, thread_id: str) -> _Settings:
        return self._settings.setdefault(thread_id, _Settings())

    def _add_request(self, request: Frame) -> None:
        params = obj(request.params)
        thread_id = text(params.get("threadId"))
        settings = self._of_thread(thread_id)
        if request.method == _BEGIN:
            if settings.running or request.deliberate:
                settings.override = None
            elif self._param in params:
                value = text(params[self._param])
                valid = self._is_valid(value)
                settings.override = Override(value, request) if valid else None
                settings.completed = 0
            settings.running[request] = ""
            self._expected[request] = settings.override
        elif request.method in _RESETTING:
            if thread_id:
                settings.override = None
            else:
                self._settings.clear()
        elif request.method == "thread/rollback":
            if settings.running:
                settings.override = None
        elif request.method not in _HARMLESS and thread_id:
            settings.override = None

    def _add_answer(self, request: Frame, answer: Frame) -> None:
        params = obj(request.params)
        settings = self._of_thread(text(params.get("threadId")))
        if request.method == _BEGIN:
            if is_failure(answer):
                settings.running.pop(request, None)
                if self._param in params:
                    settings.override = None
            elif request in settings.running:
                settings.running[request] = text(turn_in(answer).get("id"))
                if settings.running[request] in settings.ended:
                    del settings.running[request]
        elif request.method == "thread/start" and not is_failure(answer):
            self._of_thread(text(dig(answer.result, "thread", "id"))).override = Override()
        elif request.method in _RESETTING:
            settings.override = None
        elif request.method == "thread/rollback" and not is_failure(answer):
            number = rolled_back_turns(request)
            if settings.override != Override() and (
                number is None or number > settings.completed or settings.running
            ):
                settings.override = None
            settings.completed -= number or 0

    def _end_turn(self, end: Frame) -> None:
        settings = self._of_thread(text(obj(end.params).get("threadId")))
        turn = turn_in(end)
        settings.ended.add(text(turn.get("id")))
        for request, turn_id in list(settings.running.items()):
            if turn_id == text(turn.get("id")):
                del settings.running[request]
                named_it = settings.override is None or settings.override.request is request
                settings.completed += turn.get("status") == COMPLETED and not named_it
