"""Sends generated parameters to a live server and judges what comes, with all rules on.

Here: one conversation per example on a shared process. Not here: generating (turn_params).
"""

from dataclasses import dataclass, field
from typing import Any

import anyio

from harness.backend.script import ModelStep
from harness.rules.base import Monitor
from harness.rules.judge import judge
from harness.rules.verdict import Level, Row, Verdict
from harness.scenario.player import Unmet
from harness.spec.book import Book
from harness.suite.bench import Bench
from harness.suite.run import Run, Stage
from harness.trace.frame import Kind
from harness.trace.values import dig, text

_REPLY = ModelStep.model_validate({"reply": [{"message": {"deltas": ["o", "k"]}}]})


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """What one example gave: the MUST violations, whether the turn was accepted, the run."""

    run: Run = field(repr=False)
    accepted: bool
    violations: tuple[Row, ...]


async def send_turn(
    bench: Bench, book: Book, rules: dict[str, type[Monitor]], params: dict[str, Any]
) -> Fuzzed:
    """Start a thread, send `turn/start` with these parameters, wait for the end, judge."""
    accepted = False

    async def talk(stage: Stage) -> Unmet | None:
        nonlocal accepted
        request: dict[str, Any] = {}
        settings = {"cwd": str(stage.cwd), "approvalPolicy": "never", **bench.profile.thread}
        with anyio.move_on_after(bench.profile.bounds.step) as scope:
            started = await stage.peer.request("thread/start", settings)
            thread_id = text(dig(started.result, "thread", "id"))
            stage.cast.threads["t"] = thread_id
            request = {"threadId": thread_id, **params}
            # A message of ours that is wrong by the book is the point, no finding against us.
            wrong = not book.is_valid_params("turn/start", request)
            answer = await stage.peer.request("turn/start", request, deliberate=wrong)
            accepted = answer.kind is Kind.RESPONSE
        if scope.cancelled_caught:
            return Unmet("timeout", "turn/start", 1, f"no answer to {request!r:.200}")
        return None

    # More replies than a turn can ask for: what the script says is not under test.
    run = await bench.converse("fuzz/turn-start", {"t": [_REPLY] * 20}, talk)
    rows = judge(book, run.trace, rules=rules.values())
    return Fuzzed(run, accepted, tuple(row for row in rows if _counts(row)))


def _counts(row: Row) -> bool:
    return row.verdict is Verdict.ERROR or (row.verdict is Verdict.FAIL and row.level is Level.MUST)
