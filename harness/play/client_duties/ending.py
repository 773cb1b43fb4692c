"""Judging, at the end of a recording, of what a client never answered.

A client may wait for a person, and who made a recording may have ended it: nothing tells how long
an answer may take.
"""

from collections.abc import Iterable

from harness.judge.ending_known import Decision, Owing
from harness.trace.frame import Frame
from harness.trace.marks import RecorderNote
from harness.trace.trace import End, Trace


def decide_for_client(
    trace: Trace, unanswered: Iterable[Frame], *, settle: float, settled: bool
) -> Decision:
    """Return whether the questions that the client left open are judged, suspected or ignored.

    `settle` is the silence in seconds after which an answer is missed; `settled` is the user's word
    that the client had come to rest. A trace that the harness played says by itself how it ended.
    """
    open_ones = list(unanswered)
    if trace.end is End.QUIESCENT or not open_ones:
        return Decision(Owing.JUDGED)
    if settled:
        return Decision(Owing.JUDGED, "--settled says that the client was at rest")
    question = open_ones[0]
    asked = f"{question.method} id {question.id} was not answered"
    if trace.end is End.EXITED or any(
        one.body.server_ended for one in trace.marks_of(RecorderNote)
    ):
        return Decision(Owing.NOT_JUDGED, f"{asked}, and the server ended")
    last = max([trace.frames[-1].at, *(mark.at for mark in trace.marks)])
    waited = last - question.at
    if waited < settle:
        return Decision(
            Owing.NOT_JUDGED, f"{asked} within {waited:.2g} s, where the recording ends"
        )
    return Decision(Owing.SUSPECTED, f"{asked} for {waited:.2g} s; a person may have been asked")
