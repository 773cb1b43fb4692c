"""Judge the clients of stored traces and recordings by their duties."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from harness.cli.commands.stored_traces import (
    SETTLE_SECONDS,
    TraceCheck,
    count_words,
    load_stored,
)
from harness.judge.judge import feed_trace
from harness.judge.missing_messages import Treatment
from harness.judge.rules.discovery import client_rules
from harness.judge.verdict import Level, Row, Verdict
from harness.play.client_duties.unanswered_requests import decide_for_client
from harness.play.client_duties.verdicts import DutyVerdict, duty_verdicts
from harness.protocol.spec.loading import load_book
from harness.trace.foreign import TARGET as RECORDING
from harness.trace.store import TraceFormatError
from harness.trace.surfaces import SESSION
from harness.trace.trace import End, Trace

_ALL = tuple(str(verdict.value) for verdict in Verdict)
_PASS, _FAIL, _ERROR = Verdict.PASS.value, Verdict.FAIL.value, Verdict.ERROR.value
_IDLE = Verdict.NOT_EXERCISED.value


@dataclass(frozen=True, slots=True)
class ClientCheck:
    """The judgement of the clients of one stored trace: its findings, and a verdict per duty."""

    trace_check: TraceCheck
    duties: list[DutyVerdict]

    @property
    def red(self) -> bool:
        """Return whether a MUST (if strict, also a SHOULD) duty is broken, or a rule crashed."""
        return self.trace_check.red

    def counts(self) -> Counter[str]:
        """Return the number of findings at each level; suspected ones are counted separately."""
        return self.trace_check.counts()

    def lines(self) -> Iterator[str]:
        """Yield the findings as for a server, then the duties kept and those never exercised."""
        of = {
            name: sorted({duty.rule for duty in self.duties if duty.verdict == name})
            for name in _ALL
        }
        broken = len(of[_FAIL]) + len(of[_ERROR])
        counts = count_words(self.counts())
        yield (
            f"{self.trace_check.path}: {len(self.trace_check.trace.frames)} messages; "
            "the client's duties: "
            f"{len(of[_PASS])} kept, {broken} broken{f' ({counts})' if counts else ''}, "
            f"{len(of[_IDLE])} never came up"
        )
        yield from islice(self.trace_check.lines(), 1, None)
        for verdict, words in ((_PASS, "kept:  "), (_IDLE, "never: ")):
            names = ", ".join(of[verdict])
            if names:
                yield from textwrap.wrap(
                    names,
                    96,
                    initial_indent=f"  {words}",
                    subsequent_indent=" " * 9,
                    break_on_hyphens=False,
                )

    def json(self) -> dict[str, Any]:
        """Return the verdicts as a JSON object."""
        return {
            "file": str(self.trace_check.path),
            "side": "client",
            "verdict": "RED" if self.red else "GREEN",
            "messages": len(self.trace_check.trace.frames),
            "damage": self.trace_check.trace.damage,
            "duties": [duty.to_json() for duty in self.duties],
        }


def check_client(
    path: Path,
    names: Mapping[str, str] | None = None,
    *,
    known_names: Sequence[Mapping[str, str]] = (),
    settle: float = SETTLE_SECONDS,
    settled: bool = False,
) -> ClientCheck:
    """Judge the clients of a stored trace, on all connections.

    The parameters are those of `check_trace`. Messages that a scenario made wrong on purpose break
    no duty; in a third-party recording nothing is excused. Raises `TraceFormatError` for an invalid
    trace, and for a surface other than the session: its clients are not judged.
    """
    book, duties = load_book(), tuple(client_rules().values())
    trace = load_stored(path, names, known_names=known_names)
    if trace.header.surface != SESSION:
        surface = trace.header.surface
        raise TraceFormatError(f"{path}: no duty judges a client on the surface {surface!r}")
    if trace.header.target == RECORDING:
        trace = _clear_deliberate(trace)
    judge = feed_trace(book, trace, rules=duties)
    unanswered = [
        question for ledger in judge.open_ledgers for question in ledger.unanswered_questions
    ]
    decision = decide_for_client(trace, unanswered, settle=settle, settled=settled)
    rows = judge.finish(End.QUIESCENT if decision.treatment is Treatment.JUDGED else End.CLOSED)
    suspected: list[Row] = []
    if decision.treatment is Treatment.SUSPECTED:
        at_rest = feed_trace(book, trace, rules=duties).finish(End.QUIESCENT)
        suspected = [
            replace(row, level=Level.INFO)
            for row in at_rest
            if row.verdict is Verdict.FAIL and row not in rows
        ]
    read_with = trace.header.names if names is None else names
    checked = TraceCheck(path, trace, rows, decision, read_with, suspected)
    return ClientCheck(checked, duty_verdicts(book, trace, duties, rows))


def _clear_deliberate(trace: Trace) -> Trace:
    """Return the trace with no message marked as deliberate, so that nothing is excused."""
    frames = [
        replace(frame, deliberate=False) if frame.deliberate else frame for frame in trace.frames
    ]
    return replace(trace, frames=frames)
