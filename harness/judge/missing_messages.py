"""The treatment of messages that are missing at the end of a trace.

A trace that the harness played says how it ended. A recording of another program does not: a
missing message may have come after the recording stopped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from harness.protocol.spec.item_types import types_with
from harness.protocol.values import dig, obj, text
from harness.trace.marks import ClientLeft, ModelCall, ModelEnd, RecorderNote
from harness.trace.obligations import Obligation, ObligationKind, ObligationLedger
from harness.trace.surfaces import SESSION
from harness.trace.trace import End, Trace

# Items that may wait for something other than the server, for any length of time.
_WORK: Final = types_with("runs-elsewhere")
_ENDS: Final = {
    End.EXITED: "the server ended",
    End.TIMED_OUT: "its time was up while the server was busy",
}
_END_OF_OUTPUT: Final = "server stdout EOF"


class Treatment(StrEnum):
    """Ways to treat missing messages: as failures, as suspicions, or not at all."""

    JUDGED = "judged"
    SUSPECTED = "suspected"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Decision:
    """A treatment and its reason, "" if the trace itself says that it ended at rest."""

    treatment: Treatment
    reason: str = ""


def decide_treatment(
    trace: Trace, ledgers: Sequence[ObligationLedger], *, settle: float, settled: bool
) -> Decision:
    """Return how to treat messages that are missing at the end of `trace`, and why.

    `settle` is the silence in seconds after which nothing more is expected; with `settled` the user
    says that the server had come to rest. If a recording was silent for that long before it ended,
    and nothing of the client was outstanding, missing messages are suspected, since the model may
    have been slow; they are judged if the recording shows that the model had answered.
    """
    if trace.end is End.QUIESCENT:
        return Decision(Treatment.JUDGED)
    if settled:
        return Decision(Treatment.JUDGED, "--settled says that the server was at rest")
    if trace.end in _ENDS:
        return Decision(Treatment.NOT_JUDGED, _ENDS[trace.end])
    if trace.header.surface != SESSION:
        return Decision(Treatment.NOT_JUDGED, "its file ends before the trace did")
    reason = (
        _server_crash(trace) or _short_silence(trace, settle) or _outstanding_work(trace, ledgers)
    )
    if reason:
        return Decision(Treatment.NOT_JUDGED, reason)
    silence = f"it was silent for {_silence(trace):.2g} s before it ended"
    working = [
        obligation
        for ledger in ledgers
        for obligation in ledger.open_obligations()
        if _may_run_long(obligation)
    ]
    if not trace.marks_of(ModelCall):
        return Decision(Treatment.SUSPECTED, f"{silence}; what the model did is not in it")
    if working:
        return Decision(Treatment.SUSPECTED, f"{silence}; {working[0].subject} may still have run")
    return Decision(Treatment.JUDGED, f"{silence}, and the model had answered all calls")


def _silence(trace: Trace) -> float:
    """Return the seconds from the last message to the end of the recording.

    If a client left before the end, return the silence before it left: a server owes nothing new to
    a client that is gone.
    """
    departures = trace.marks_of(ClientLeft)
    if departures:
        after = departures[-1].after
        return departures[-1].at - (trace.frames[after].at if after >= 0 else 0.0)
    last = trace.frames[-1].at if trace.frames else 0.0
    return max([last, *(mark.at for mark in trace.marks)]) - last


def _short_silence(trace: Trace, settle: float) -> str:
    silence = _silence(trace)
    if silence >= settle:
        return ""
    if trace.marks_of(ClientLeft):
        left = f"the client left {silence:.2g} s after the last message"
        return f"{left}; a silence of {settle:g} s would tell"
    if not silence:
        return "it ends with its last message"
    return f"it ends {silence:.2g} s after its last message; a silence of {settle:g} s would tell"


def _server_crash(trace: Trace) -> str:
    for mark in reversed(trace.marks_of(RecorderNote)):
        if mark.body.server_ended:
            status = mark.body.status
            last = not trace.frames or mark.after >= trace.frames[-1].seq
            return f"the server ended with status {status}" if last and status else ""
    return ""


def _outstanding_work(trace: Trace, ledgers: Sequence[ObligationLedger]) -> str:
    """Return a text about open work of the client or the model, "" if there is none."""
    for ledger in ledgers:
        for question in ledger.unanswered_questions:
            return f"the client had not answered {question.method} id {question.id}"
        if ledger.is_retrying:
            return "a retry had been announced"
    calls, ends = len(trace.marks_of(ModelCall)), len(trace.marks_of(ModelEnd))
    return f"{calls - ends} answer(s) of the model had not ended" if calls > ends else ""


def _may_run_long(obligation: Obligation) -> bool:
    kind = text(dig(obj(obligation.frame.params), "item", "type"))
    return obligation.kind is ObligationKind.ITEM_COMPLETED and kind in _WORK
