"""Judging, at the end of a trace, of what is still owed.

A trace that the harness played says how it ended. A recording by others does not: what is missing
may have come after it was cut.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from harness.protocol.spec.item_types import types_with
from harness.protocol.values import dig, obj, text
from harness.trace.marks import ModelCall, ModelEnd, RecorderNote
from harness.trace.owed import Obligation, Owed, Owes
from harness.trace.surfaces import SESSION
from harness.trace.trace import End, Trace

# Items that may wait for something other than the server, for any length of time.
_WORK: Final = types_with("runs-elsewhere")
_ENDS: Final = {
    End.EXITED: "the server ended",
    End.TIMED_OUT: "its time was up while the server was busy",
}
_END_OF_OUTPUT: Final = "server stdout EOF"


class Owing(StrEnum):
    """Ways to treat messages that never came."""

    JUDGED = "judged"
    SUSPECTED = "suspected"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Decision:
    """One of them, and the reason; `why` is "" if the trace itself says that it ended at rest."""

    owing: Owing
    why: str = ""


def decide(trace: Trace, owed: Iterable[Owed], *, settle: float, settled: bool) -> Decision:
    """Return whether what is owed at the end of `trace` is judged, suspected or ignored.

    `settle` is the silence in seconds after which nothing more is expected; `settled` is the
    user's word that the server had come to rest. Suspected is what looks owed where the recording
    was silent for so long before it ended, with nothing of the client outstanding: a model may
    have been slow. Where the recording holds the model's side, and that had ended, it is judged.
    """
    if trace.end is End.QUIESCENT:
        return Decision(Owing.JUDGED)
    if settled:
        return Decision(Owing.JUDGED, "--settled says that the server was at rest")
    if trace.end in _ENDS:
        return Decision(Owing.NOT_JUDGED, _ENDS[trace.end])
    if trace.header.surface != SESSION:
        return Decision(Owing.NOT_JUDGED, "its file ends before the trace did")
    each = list(owed)
    reason = _crash(trace) or _short(trace, settle) or _outstanding(trace, each)
    if reason:
        return Decision(Owing.NOT_JUDGED, reason)
    silence = f"it was silent for {_silence(trace):.2g} s before it ended"
    working = [one for ledger in each for one in ledger.open() if _is_work(one)]
    if not trace.marks_of(ModelCall):
        return Decision(Owing.SUSPECTED, f"{silence}; what the model did is not in it")
    if working:
        return Decision(Owing.SUSPECTED, f"{silence}; {working[0].subject} may still have run")
    return Decision(Owing.JUDGED, f"{silence}, and the model had answered all calls")


def _silence(trace: Trace) -> float:
    """Seconds from the last message to the last that the recorder noted."""
    last = trace.frames[-1].at if trace.frames else 0.0
    return max([last, *(mark.at for mark in trace.marks)]) - last


def _short(trace: Trace, settle: float) -> str:
    silence = _silence(trace)
    if silence >= settle:
        return ""
    if not silence:
        return "it ends with its last message"
    return f"it ends {silence:.2g} s after its last message; a silence of {settle:g} s would tell"


def _crash(trace: Trace) -> str:
    for mark in reversed(trace.marks_of(RecorderNote)):
        if mark.body.server_ended:
            status = mark.body.status
            last = not trace.frames or mark.after >= trace.frames[-1].seq
            return f"the server ended with status {status}" if last and status else ""
    return ""


def _outstanding(trace: Trace, owed: Iterable[Owed]) -> str:
    """Return what others than the server still had to do."""
    for ledger in owed:
        for question in ledger.unanswered_questions:
            return f"the client had not answered {question.method} id {question.id}"
        if ledger.retrying:
            return "a retry had been announced"
    calls, ends = len(trace.marks_of(ModelCall)), len(trace.marks_of(ModelEnd))
    return f"{calls - ends} answer(s) of the model had not ended" if calls > ends else ""


def _is_work(one: Obligation) -> bool:
    kind = text(dig(obj(one.frame.params), "item", "type"))
    return one.kind is Owes.ITEM_COMPLETED and kind in _WORK
