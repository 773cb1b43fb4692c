"""A conversation held by hand: what is sent, what is known of it, what the rules say meanwhile."""

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
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import MarkBody
from harness.trace.names import Renamer
from harness.trace.owed_on_connections import OwedOnConnections
from harness.trace.recorder import Recorder
from harness.trace.trace import End, Header, Mark

# The first id of our requests: those that a user writes himself begin with 1.
FIRST_ID = 1001
# A line that is not at once known to be wrong may be this long; a trace holds no more than that.
_OPENS = ("thread/start", "thread/resume", "thread/fork", "thread/unarchive")


class Rest(StrEnum):
    """The state in which nothing comes any more."""

    AT_REST = "at rest"
    ASKS = "it waits for an answer"
    HELD = "an answer of the model is held"
    SILENT = "it is silent"
    BUSY = "it goes on"
    GONE = "it is gone"


@dataclass(frozen=True, slots=True)
class Judging:
    """By what a conversation is judged."""

    book: Book
    profile: Profile
    rules: Mapping[str, type[Monitor]]

    def recorder(self, target: str, scenario: str) -> Recorder:
        """A recorder for a new trace."""
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


Shown = Callable[[Frame], None]
Found = Callable[[Row, str], None]


class Talk:
    """A conversation. `shown` gets each message, then `found` what the rules say of it.

    `defaults` are params that a request of a method gets where the user gives none; `streams` is
    the number of answers of the model that are under way.
    """

    def __init__(
        self,
        judging: Judging,
        recorder: Recorder,
        *,
        shown: Shown,
        found: Found,
        defaults: Mapping[str, Mapping[str, Any]] | None = None,
        streams: Callable[[], int] = lambda: 0,
    ) -> None:
        self.judging = judging
        self.fields = Fields(judging.book)
        self.recorder = recorder
        self.peer: Peer | None = None
        self.thread = ""
        self.findings: list[tuple[Row, str]] = []
        self.unasked_end = False
        """Whether the server ended, or closed the connection, by itself."""
        self._over = False
        self._turns: dict[str, str] = {}
        self._judge = Judge(judging.book, recorder.trace, judging.rules.values())
        self._owed = OwedOnConnections()
        self._shown, self._found = shown, found
        self._defaults = defaults or {}
        self._streams = streams
        self._entries = [
            deviation.model_copy(update={"scenario": "*"})
            for deviation in judging.profile.deviations
        ]
        self._happened = anyio.Event()
        self._connections = 0
        recorder.listeners.append(self._on_frame)
        recorder.mark_listeners.append(self._on_mark)

    def next_connection(self) -> str:
        """The name of the connection that begins now."""
        self._connections += 1
        self._turns.clear()
        return f"c{self._connections}"

    @property
    def turn(self) -> str:
        """The turn that runs in the thread that is spoken of, "" for none."""
        return self._turns.get(self.thread, "")

    @property
    def turns(self) -> Sequence[str]:
        """The turns that run."""
        return list(self._turns.values())

    @property
    def questions(self) -> list[Frame]:
        """Return the questions of the server that nobody answered, oldest first."""
        return list(self.peer.questions.values()) if self.peer is not None else []

    @property
    def open(self) -> list[str]:
        """Return what the server still owes, in words."""
        return [str(duty) for duty in self._owed.open()]

    @property
    def gone(self) -> bool:
        """Return whether nothing can be sent."""
        return self.peer is None or self.peer.inbox.closed

    def filled(self, method: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
        """The params to send: what is given, and what is known where that is not."""
        params = {**self._defaults.get(method, {}), **(given or {})}
        in_use = {"threadId": self.thread, "turnId": self.turn, "expectedTurnId": self.turn}
        for member in self.fields.members(method):
            if member.required and member.name not in params and in_use.get(member.name):
                params[member.name] = in_use[member.name]
        return params

    def missing(self, method: str, params: Mapping[str, Any]) -> list[str]:
        """The members that the params must have and do not."""
        return [name for name in self.fields.required(method) if name not in params]

    def template(self, method: str, params: Mapping[str, Any]) -> str:
        """The params with a place for each member that is missing, to be edited."""
        samples: dict[str, Any] = {"input": [{"type": "text", "text": ""}]}
        rest = {name: samples.get(name, "") for name in self.missing(method, params)}
        return json.dumps({**params, **rest}, ensure_ascii=False)

    async def request(self, method: str, params: Mapping[str, Any]) -> Frame:
        """Send a request; gives the sent frame. Raises `TargetGone`, `UsageError`."""
        wrong = not self.judging.book.is_valid_params(method, dict(params))
        return await self._peer().send_request(method, dict(params), deliberate=wrong)

    async def raw(self, line: bytes) -> Frame:
        """Send a line as it is. Raises `TargetGone`, `UsageError`."""
        return await self._peer().send_raw(line + b"\n")

    async def answer(self, question: Frame, result: Any) -> None:
        """Answer a question. Raises `TargetGone`, `UsageError`."""
        wrong = not self.judging.book.is_valid_result(question.method, result)
        await self._peer().answer(question, result, deliberate=wrong)

    async def refuse(self, question: Frame, words: str) -> None:
        """Refuse a question. Raises `TargetGone`, `UsageError`."""
        await self._peer().refuse(question, words)

    def wrong_by_the_book(self, sent: Frame) -> list[str]:
        """Return the errors of a request that we sent, in words."""
        if sent.kind is not Kind.REQUEST or sent.direction is not Direction.TO_TARGET:
            return []
        params = obj(sent.json).get("params")
        errors = self.judging.book.validate_params(sent.method, {} if params is None else params)
        return [str(error) for error in errors[:3]]

    def _peer(self) -> Peer:
        if self.peer is None:
            raise UsageError("there is no connection")
        return self.peer

    async def answered(self, sent: Frame, bound: float) -> Frame | None:
        """The answer to a request, None where none comes in time. Raises `TargetGone`."""
        with anyio.move_on_after(bound):
            return await self._peer().wait_for_answer(sent)
        return None

    async def question(self, bound: float) -> Frame | None:
        """The oldest question, waiting for one; None where none comes in time or can come."""
        with anyio.move_on_after(bound):
            while not self.questions and not self.gone:
                await self._happened.wait()
        return next(iter(self.questions), None)

    async def rest(self, settle: float, silent: float) -> Rest:
        """Wait until nothing comes any more, for `settle` s, or `silent` s where more is owed."""
        bound = settle
        while not self.gone:
            size_before = len(self.recorder.trace.frames), len(self.recorder.trace.marks)
            with anyio.move_on_after(bound):
                await self._happened.wait()
            if size_before != (len(self.recorder.trace.frames), len(self.recorder.trace.marks)):
                bound = settle
            elif self.questions:
                return Rest.ASKS
            elif not self._owed.open() and not self._streams():
                return Rest.AT_REST
            elif bound >= silent:
                return Rest.HELD if self._streams() else Rest.SILENT
            else:
                bound = silent
        return Rest.GONE

    def notice(self) -> None:
        """Something happened that is no message: whoever waits looks again."""
        self._happened.set()
        self._happened = anyio.Event()

    def over(self, end: End) -> list[str]:
        """Judge the end; gives the ids of the rules that passed.

        What a server says while it is ended is neither shown nor judged: the sum has been told.
        """
        self._over = True
        self.recorder.trace.end = end
        rows = self._judge.finish(end)
        self._tell()
        broken = {row.rule for row, _ in self.findings}
        return sorted({row.rule for row in rows if row.verdict is Verdict.PASS} - broken)

    @property
    def red(self) -> bool:
        """Return whether a MUST was broken that the profile does not know, or a rule crashed."""
        return any(
            not known_reason and (row.level is Level.MUST or row.verdict is Verdict.ERROR)
            for row, known_reason in self.findings
        )

    def _on_frame(self, frame: Frame) -> None:
        if self._over:
            return
        self._owed.feed(frame)
        self._follow(frame)
        self._judge.feed(frame)
        self._shown(frame)
        self._tell()
        self.notice()

    def _on_mark(self, mark: Mark[MarkBody]) -> None:
        if self._over:
            return
        self._owed.feed_mark(mark)
        self._judge.feed_mark(mark)
        self._tell()
        self.notice()

    def _tell(self) -> None:
        for row in self._judge.fresh():
            known_reason = (
                "" if row.verdict is Verdict.ERROR else reason_of(row, "connect", self._entries)
            )
            self.findings.append((row, known_reason))
            self._found(row, known_reason)

    def _follow(self, frame: Frame) -> None:
        """Note the thread that a message is about, and the turns that run."""
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


def shown_question(question: Frame) -> str:
    """Return the subject of a question, in short."""
    params = obj(question.params)
    command = params.get("command")
    command_line = " ".join(map(str, arr(command))) if isinstance(command, list) else text(command)
    reason = text(params.get("reason"))
    parts = [
        f"command: {command_line}" if command_line else "",
        f"reason: {reason}" if reason else "",
    ]
    return "; ".join(filter(None, parts)) or f"item {text(params.get('itemId')) or '?'}"
