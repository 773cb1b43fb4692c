"""Decisions on requests that a client never answered, at the end of a recording.

A client may wait for a person, or the recording may simply have been stopped: no rule limits the
time for an answer.
"""

from collections.abc import Iterable

from harness.judge.missing_messages import Decision, Treatment
from harness.trace.frame import Frame
from harness.trace.marks import ClientLeft, RecorderNote
from harness.trace.trace import End, Trace


def decide_for_client(
    trace: Trace, unanswered: Iterable[Frame], *, settle: float, settled: bool
) -> Decision:
    """Return whether the client's unanswered requests are judged, suspected or ignored.

    `settle` is the silence in seconds after which an answer is missing; `settled` is the user's
    statement that the client had come to rest. A trace of a play records how it ended. A client
    that has left answers nothing more, even if the server ended afterwards.
    """
    departures = {mark.body.connection: mark for mark in trace.marks_of(ClientLeft)}
    open_ones = [
        question
        for question in unanswered
        if question.connection not in departures
        or question.seq <= departures[question.connection].after
    ]
    if trace.end is End.QUIESCENT or not open_ones:
        return Decision(Treatment.JUDGED)
    if settled:
        return Decision(Treatment.JUDGED, "--settled says that the client was at rest")
    question = open_ones[0]
    problem = f"{question.method} id {question.id} was not answered"
    departure = departures.get(question.connection)
    if departure is not None:
        waited = departure.at - question.at
        left = f"{problem} within {waited:.2g} s, after which the client left"
        return Decision(Treatment.JUDGED if waited >= settle else Treatment.NOT_JUDGED, left)
    if trace.end is End.EXITED or any(
        mark.body.server_ended for mark in trace.marks_of(RecorderNote)
    ):
        return Decision(Treatment.NOT_JUDGED, f"{problem}, and the server ended")
    last = max([trace.frames[-1].at, *(mark.at for mark in trace.marks)])
    waited = last - question.at
    if waited < settle:
        return Decision(
            Treatment.NOT_JUDGED, f"{problem} within {waited:.2g} s, where the recording ends"
        )
    return Decision(
        Treatment.SUSPECTED, f"{problem} for {waited:.2g} s; a person may have been asked"
    )
