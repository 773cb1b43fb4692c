"""A conversation held by hand: its messages, its state, and the findings of the rules."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import anyio

from harness.cli.connect.fields import Fields
from harness.client.peer import Peer
from harness.client.target.profile import Profile
from harness.errors import UsageError
from harness.judge.base import Monitor
from harness.judge.judge import Judge
from harness.judge.verdict import Level, Row, Verdict
from harness.protocol.spec.book import Book
from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.report.results.baseline import reason_of
from harness.trace.connection_ledgers import ConnectionLedgers
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import MarkBody
from harness.trace.names import Renamer
from harness.trace.recorder import Recorder
from harness.trace.trace import End, Header, Mark

# The first id of composed requests: in raw ones the user is likely to type ids from 1.
FIRST_ID = 1001


class Rest(StrEnum):
    """State of a conversation after a wait."""

    AT_REST = "at rest"
    ASKS = "it waits for an answer"
    HELD = "an answer of the model is held"
    SILENT = "it is silent"
    BUSY = "it goes on"
    GONE = "it is gone"


@dataclass(frozen=True, slots=True)
class Judging:
    """The rules, book and profile by which a conversation is judged."""

    book: Book
    profile: Profile
    rules: Mapping[str, type[Monitor]]

    def recorder(self, target: str, scenario: str) -> Recorder:
        """Return a recorder for a new trace."""
        declared = self.profile.capabilities
        header = Header(
            target=target,
            profile=self.profile.name,
            scenario=scenario,
            spec_revision=self.book.revision,
            names=dict(self.profile.names),
            capabilities=[] if declared == "probe" else list(declared),
        )
        return Recorder(header, renamer=Renamer(self.profile.names, self.book.paths_of))


OnFrame = Callable[[Frame], None]
OnFinding = Callable[[Row, str], None]


class Talk:
    """A conversation. `on_frame` gets each message, then `on_finding` its findings.

    `defaults` are params of a method's requests that the user may override; `streams` returns the
    number of the model's answers under way.
    """

    def __init__(
        self,
        judging: Judging,
        recorder: Recorder,
        *,
        on_frame: OnFrame,
        on_finding: OnFinding,
        defaults: Mapping[str, Mapping[str, Any]] | None = None,
        streams: Callable[[], int] = lambda: 0,
    ) -> None:
        self.judging = judging
        self.fields = Fields(judging.book)
        self.recorder = recorder
        self.peer: Peer | None = None
        self.thread = ""
        self.findings: list[tuple[Row, str]] = []
        self.ended_unasked = False
        """True once the server ended, or closed the connection, by itself."""
        self._has_ended = False
        self._turns: dict[str, str] = {}
        self._judge = Judge(judging.book, recorder.trace, judging.rules.values())
        self._owed = ConnectionLedgers()
        self._show_frame, self._show_finding = on_frame, on_finding
        self._defaults = defaults or {}
        self._streams = streams
        self._entries = judging.profile.deviations
        self._scenario = recorder.trace.header.scenario
        self._happened = anyio.Event()
        self._connections = 0
        recorder.listeners.append(self._on_frame)
        recorder.mark_listeners.append(self._on_mark)

    def next_connection(self) -> str:
        """Return the name of the next connection, and forget the running turns."""
        self._connections += 1
        self._turns.clear()
        return f"c{self._connections}"

    @property
    def turn(self) -> str:
        """Return the running turn of the current thread, "" if none runs."""
        return self._turns.get(self.thread, "")

    @property
    def turns(self) -> Sequence[str]:
        """Return the running turns."""
        return list(self._turns.values())

    @property
    def questions(self) -> list[Frame]:
        """Return the open questions of the server, oldest first."""
        return list(self.peer.questions.values()) if self.peer is not None else []

    @property
    def open_duties(self) -> list[str]:
        """Return the messages that the server still owes, in words."""
        return [str(duty) for duty in self._owed.open_obligations()]

    @property
    def is_closed(self) -> bool:
        """Return whether nothing can be sent any more."""
        return self.peer is None or self.peer.inbox.closed

    def fill_params(self, method: str, given_params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the params to send: defaults, given ones over them, ids in use where required."""
        params = {**self._defaults.get(method, {}), **(given_params or {})}
        in_use = {"threadId": self.thread, "turnId": self.turn, "expectedTurnId": self.turn}
        for member in self.fields.members(method):
            if member.required and member.name not in params and in_use.get(member.name):
                params[member.name] = in_use[member.name]
        return params

    def missing_members(self, method: str, params: Mapping[str, Any]) -> list[str]:
        """Return the required members that the params lack."""
        return [name for name in self.fields.required_members(method) if name not in params]

    def template(self, method: str, params: Mapping[str, Any]) -> str:
        """Return the params with a placeholder for each missing member, to be edited."""
        samples: dict[str, Any] = {"input": [{"type": "text", "text": ""}]}
        rest = {name: samples.get(name, "") for name in self.missing_members(method, params)}
        return json.dumps({**params, **rest}, ensure_ascii=False)

    async def send_request(self, method: str, params: Mapping[str, Any]) -> Frame:
        """Send a request and return its frame.

        Raises `TargetGone` if the server is gone, `UsageError` if there never was a connection.
        """
        wrong = not self.judging.book.is_valid_params(method, dict(params))
        return await self._peer().send_request(method, dict(params), deliberate=wrong)

    async def send_raw(self, line: bytes) -> Frame:
        """Send a line as it is, and return its frame. Errors are those of `send_request`."""
        return await self._peer().send_raw(line + b"\n")

    async def answer(self, question: Frame, result: Any) -> None:
        """Answer a question with a result. Errors are those of `send_request`."""
        wrong = not self.judging.book.is_valid_result(question.method, result)
        await self._peer().answer(question, result, deliberate=wrong)

    async def refuse(self, question: Frame, words: str) -> None:
        """Answer a question with an error. Errors are those of `send_request`."""
        await self._peer().refuse(question, words)

    def schema_errors(self, request: Frame) -> list[str]:
        """Return at most three schema errors of a request that we sent; [] for other messages."""
        if request.kind is not Kind.REQUEST or request.direction is not Direction.TO_TARGET:
            return []
        params = obj(request.json).get("params")
        errors = self.judging.book.validate_params(request.method, {} if params is None else params)
        return [str(error) for error in errors[:3]]

    def _peer(self) -> Peer:
        if self.peer is None:
            raise UsageError("there is no connection")
        return self.peer

    async def wait_answer(self, request: Frame, bound: float) -> Frame | None:
        """Return the answer to a request, None after `bound` seconds; `TargetGone` at the end."""
        with anyio.move_on_after(bound):
            return await self._peer().wait_for_answer(request)
        return None

    async def wait_question(self, bound: float) -> Frame | None:
        """Wait for the oldest question; None if none comes in `bound` seconds, or none can."""
        with anyio.move_on_after(bound):
            while not self.questions and not self.is_closed:
                await self._happened.wait()
        return next(iter(self.questions), None)

    async def wait_rest(self, settle: float, silent: float) -> Rest:
        """Wait for `settle` seconds of silence, `silent` if something is owed; return the state."""
        bound = settle
        while not self.is_closed:
            size_before = len(self.recorder.trace.frames), len(self.recorder.trace.marks)
            with anyio.move_on_after(bound):
                await self._happened.wait()
            if size_before != (len(self.recorder.trace.frames), len(self.recorder.trace.marks)):
                bound = settle
            elif self.questions:
                return Rest.ASKS
            elif not self._owed.open_obligations() and not self._streams():
                return Rest.AT_REST
            elif bound >= silent:
                return Rest.HELD if self._streams() else Rest.SILENT
            else:
                bound = silent
        return Rest.GONE

    def wake_waiters(self) -> None:
        """Wake the waiters after an event that is not a message."""
        self._happened.set()
        self._happened = anyio.Event()

    def finish(self, end: End) -> list[str]:
        """Judge the end and return the ids of the rules that passed.

        Messages that come later, while the server shuts down, are neither shown nor judged.
        """
        self._has_ended = True
        self.recorder.trace.end = end
        rows = self._judge.finish(end)
        self._report_findings()
        broken = {row.rule for row, _ in self.findings}
        return sorted({row.rule for row in rows if row.verdict is Verdict.PASS} - broken)

    @property
    def red(self) -> bool:
        """Return whether a MUST was broken that is not known, or a rule crashed."""
        return any(
            not known_reason and (row.level is Level.MUST or row.verdict is Verdict.ERROR)
            for row, known_reason in self.findings
        )

    def _on_frame(self, frame: Frame) -> None:
        if self._has_ended:
            return
        self._owed.feed(frame)
        self._follow(frame)
        self._judge.feed(frame)
        self._show_frame(frame)
        self._report_findings()
        self.wake_waiters()

    def _on_mark(self, mark: Mark[MarkBody]) -> None:
        if self._has_ended:
            return
        self._owed.feed_mark(mark)
        self._judge.feed_mark(mark)
        self._report_findings()
        self.wake_waiters()

    def _report_findings(self) -> None:
        for row in self._judge.take_new_violations():
            known_reason = (
                ""
                if row.verdict is Verdict.ERROR
                else reason_of(row, self._scenario, self._entries)
            )
            self.findings.append((row, known_reason))
            self._show_finding(row, known_reason)

    def _follow(self, frame: Frame) -> None:
        """Update the current thread and the running turns."""
        if frame.direction is Direction.TO_TARGET:
            thread = text(obj(frame.params).get("threadId"))
            self.thread = thread or self.thread
            return
        opened = text(dig(frame.result, "thread", "id")) if frame.result is not MISSING else ""
        self.thread = opened or self.thread
        params = obj(frame.params)
        thread, turn = text(params.get("threadId")), text(dig(params, "turn", "id"))
        match frame.method:
            case "turn/started":
                self._turns[thread or self.thread] = turn
            case "turn/completed":
                self._turns.pop(thread or self.thread, None)
            case _:
                pass


def question_subject(question: Frame) -> str:
    """Return the command and reason of a question, else the id of its item."""
    params = obj(question.params)
    command = params.get("command")
    command_line = " ".join(map(str, arr(command))) if isinstance(command, list) else text(command)
    reason = text(params.get("reason"))
    parts = [
        f"command: {command_line}" if command_line else "",
        f"reason: {reason}" if reason else "",
    ]
    return "; ".join(filter(None, parts)) or f"item {text(params.get('itemId')) or '?'}"
