"""Rules on requests that are answered with an empty object."""

from harness.judge.base import Outcomes, Witness
from harness.judge.rules.shared.view_queries import request_subject
from harness.judge.rules.shared.violations import member, wrong
from harness.judge.verdict import Level
from harness.trace.frame import Frame, Kind


def empty_reply(request: Frame | None, answer: Frame) -> Outcomes:
    """Judge an answer that must be `{}`; None unless it is the result of a known request.

    The specification does not forbid extra members: they are recorded as INFO.
    """
    if request is None or answer.kind is not Kind.RESPONSE:
        return None
    subject, frames = request_subject(request), (request, answer)
    result: object = answer.result
    if not isinstance(result, dict):
        return [wrong(subject, frames, member(answer), "{}")]
    if not result:
        return [Witness(subject, frames)]
    return [wrong(subject, frames, member(answer), "{}", level=Level.INFO)]
