"""Sends generated requests to a live server, many in one conversation, and judges what comes.

Here: one conversation, all rules on. Each request's own answer is waited for; a barrier tells a
server that left one out from a server that hangs. The silence at the end is paid once. Not here:
generating (params), confirming and telling (campaign).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from harness.backend.script import ModelStep
from harness.fuzz.params import Request
from harness.fuzz.values import FOLDER, HUGE, HUGE_TEXT, THREAD, TURN, filled
from harness.judge.judge import judge
from harness.judge.verdict import Level, Row, Verdict
from harness.results.baseline import known_row
from harness.runner.bench import Bench
from harness.runner.config import Config
from harness.runner.conversation_context import ConversationContext
from harness.runner.run import Run
from harness.spec.book import Book
from harness.spec.skill_paths import skill_paths
from harness.trace.frame import Frame, Kind
from harness.trace.trace import End
from harness.trace.values import dig, text

# Each costs two bounds; more would tell nothing new.
MOST_UNANSWERED = 3
_REPLY = ModelStep.model_validate({"reply": [{"message": {"deltas": ["o", "k"]}}]})


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """What one conversation gave: how many answers of each kind, what was wrong, the run."""

    run: Run = field(repr=False)
    results: int
    errors: int
    violations: tuple[Row, ...]
    trouble: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether the server answered all, lived on, and broke no MUST."""
        return not self.violations and not self.trouble


async def converse(bench: Bench, config: Config, requests: Sequence[Request]) -> Fuzzed:
    """Start a thread, send the requests one after the other, bring it to its end, judge."""
    # More replies than so many requests can ask for: what the script says is not under test.
    replies = [_REPLY] * (4 * len(requests) + 8)
    async with bench.conversation("fuzz", {"t": replies}) as stage:
        sender = _Sender(stage, bench, config.book)
        with anyio.fail_after(bench.bounds.scenario):
            await sender.open()
            for request in requests:
                await sender.send(request)
                if len(sender.unanswered) == MOST_UNANSWERED:
                    break
    run = stage.run
    rows = judge(config.book, run.trace, rules=config.rules.values())
    known = [known_row(row, "fuzz", config.entries) for row in rows]
    violations = tuple(row for row in known if _counts(row))
    trouble = [*sender.unanswered, *_ended(run)]
    return Fuzzed(run, sender.results, sender.errors, violations, tuple(trouble))


class _Sender:
    def __init__(self, stage: ConversationContext, bench: Bench, book: Book) -> None:
        self._stage = stage
        self._bench = bench
        self._book = book
        # A conversation with several answers left out must fit into its bound, to be told.
        self._bound = min(bench.bounds.step, bench.bounds.scenario / 8)
        self._known: dict[str, str] = {}
        self.results = self.errors = 0
        self.unanswered: list[str] = []

    async def open(self) -> None:
        """The thread that the requests speak of."""
        settings = {
            "cwd": str(self._stage.cwd),
            "approvalPolicy": "never",
            **self._bench.profile.thread,
        }
        with anyio.move_on_after(self._bound):
            started = await self._stage.peer.request("thread/start", settings)
            self._stage.cast.threads["t"] = text(dig(started.result, "thread", "id"))
        self._known = {
            THREAD: self._stage.cast.threads.get("t", "thr_0"),
            FOLDER: str(self._stage.cwd),
        }
        self._known |= {TURN: "turn_0", HUGE: HUGE_TEXT}

    async def send(self, request: Request) -> None:
        """One request and its answer; a turn that it started is waited for by a patient one."""
        params = filled(request.params, self._known)
        # A message of ours that is wrong by the book is the point, no finding against us.
        paths = skill_paths(request.method, params)
        wrong = not (
            self._book.is_valid_params(request.method, params) and all(right for _, right in paths)
        )
        answer: Frame | None = None
        with anyio.move_on_after(self._bound):
            answer = await self._stage.peer.request(request.method, params, deliberate=wrong)
        if answer is None:
            await self._missed(request, params)
        elif answer.kind is Kind.ERROR:
            self.errors += 1
        else:
            self.results += 1
            await self._started(answer, patient=request.patient)

    async def _started(self, answer: Frame, *, patient: bool) -> None:
        turn_id = text(dig(answer.result, "turn", "id"))
        if not turn_id:
            return
        self._known[TURN] = turn_id
        if not patient:
            return

        def ends(frame: Frame) -> bool:
            told = frame.method == "turn/completed"
            return told and dig(frame.params, "turn", "id") == turn_id

        # One that does not end is judged by the rules, at the end.
        with anyio.move_on_after(self._bound / 5):
            await self._stage.peer.inbox.wait(ends)

    async def _missed(self, request: Request, params: Any) -> None:
        alive = False
        with anyio.move_on_after(self._bound):
            await self._stage.peer.request("thread/read", {"threadId": self._known[THREAD]})
            alive = True
        other = "though it answered the next request" if alive else "nor to the next request"
        said = json.dumps(params)[:200]
        self.unanswered.append(f"no answer to {request.method} {said}, {other}")


def _counts(row: Row) -> bool:
    return row.verdict is Verdict.ERROR or (row.verdict is Verdict.FAIL and row.level is Level.MUST)


def _ended(run: Run) -> list[str]:
    if run.ended.end is End.QUIESCENT:
        return []
    if run.died:
        return [f"the server ended by itself (exit status {run.status}): {run.stderr[-300:]}"]
    busy = run.ended.liveness or run.overflow or ", ".join(run.ended.outstanding)
    return [f"the conversation did not come to its end: {busy}"]
