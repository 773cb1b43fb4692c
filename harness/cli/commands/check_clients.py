"""Judging the clients of stored traces and recordings by their duties."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from harness.cli.commands.stored_traces import SETTLE, Checked, counted
from harness.judge.ending_known import Owing
from harness.judge.judge import judged
from harness.judge.rules.discovery import client_rules
from harness.judge.verdict import Level, Row, Verdict
from harness.play.client_duties.ending import decide_for_client
from harness.play.client_duties.verdicts import DutyVerdict, duty_verdicts
from harness.protocol.spec.loading import load_book
from harness.trace.foreign import TARGET as RECORDING
from harness.trace.foreign import load_any
from harness.trace.store import TraceFormatError
from harness.trace.surface.known import classify_of
from harness.trace.surfaces import SESSION
from harness.trace.trace import End, Trace

_ALL = tuple(str(verdict.value) for verdict in Verdict)
_PASS, _FAIL, _ERROR = Verdict.PASS.value, Verdict.FAIL.value, Verdict.ERROR.value
_IDLE = Verdict.NOT_EXERCISED.value


@dataclass(frozen=True, slots=True)
class CheckedClient:
    """The judgement of the clients of one stored trace: its findings, and a verdict per duty."""

    checked: Checked
    duties: list[DutyVerdict]

    @property
    def red(self) -> bool:
        """Return whether a MUST is broken, or a rule crashed."""
        return self.checked.red

    def counts(self) -> Counter[str]:
        """Return the number of findings at each level, suspected ones apart."""
        return self.checked.counts()

    def lines(self) -> Iterator[str]:
        """The findings as of a server, then which duties were kept and which never came up."""
        of = {
            name: sorted({duty.rule for duty in self.duties if duty.verdict == name})
            for name in _ALL
        }
        broken = len(of[_FAIL]) + len(of[_ERROR])
        counts = counted(self.counts())
        yield (
            f"{self.checked.path}: {len(self.checked.trace.frames)} messages; the client's duties: "
            f"{len(of[_PASS])} kept, {broken} broken{f' ({counts})' if counts else ''}, "
            f"{len(of[_IDLE])} never came up"
        )
        yield from islice(self.checked.lines(), 1, None)
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
        """The verdicts as a JSON object."""
        return {
            "file": str(self.checked.path),
            "verdict": "RED" if self.red else "GREEN",
            "messages": len(self.checked.trace.frames),
            "duties": [duty.json() for duty in self.duties],
        }


def check_client(
    path: Path,
    names: Mapping[str, str] | None = None,
    *,
    known: Sequence[Mapping[str, str]] = (),
    settle: float = SETTLE,
    settled: bool = False,
) -> CheckedClient:
    """Judge the clients of a stored trace, whatever connections they had.

    The parameters are those of check_trace. What a scenario of ours made wrong on purpose breaks no
    duty; in a recording by others nothing is excused. Raises `TraceFormatError` for a trace of
    another surface than the session: it has no client whose messages are judged.
    """
    book, duties = load_book(), tuple(client_rules().values())
    trace = load_any(path, book.paths_of, names=names, known=known, classify_of=classify_of)
    if trace.header.surface != SESSION:
        surface = trace.header.surface
        raise TraceFormatError(f"{path}: no duty judges a client on the surface {surface!r}")
    if trace.header.target == RECORDING:
        trace = _meant(trace)
    judge = judged(book, trace, rules=duties)
    unanswered = [question for ledger in judge.owed for question in ledger.unanswered_questions]
    decision = decide_for_client(trace, unanswered, settle=settle, settled=settled)
    rows = judge.finish(End.QUIESCENT if decision.owing is Owing.JUDGED else End.CLOSED)
    suspected: list[Row] = []
    if decision.owing is Owing.SUSPECTED:
        at_rest = judged(book, trace, rules=duties).finish(End.QUIESCENT)
        suspected = [
            replace(row, level=Level.INFO)
            for row in at_rest
            if row.verdict is Verdict.FAIL and row not in rows
        ]
    read_with = trace.header.names if names is None else names
    checked = Checked(path, trace, rows, decision, read_with, suspected)
    return CheckedClient(checked, duty_verdicts(book, trace, duties, rows))


def _meant(trace: Trace) -> Trace:
    """The trace with nothing in it that would be excused as a scenario's purpose."""
    frames = [
        replace(frame, deliberate=False) if frame.deliberate else frame for frame in trace.frames
    ]
    return replace(trace, frames=frames)
