"""Descriptions of invalid and late answers to `initialize`."""

import json
from collections.abc import Sequence

from harness.protocol.values import MISSING
from harness.trace.correlation import same_id
from harness.trace.frame import Frame, Kind

LATE_ANSWER_HINT = (
    "its answer came after that, when its input was closed: it is slow, or does not flush what it "
    "writes; if it is slow, give --timeout-scale 3"
)
_MAX_LINE_CHARACTERS = 120


def describe_other_id(frames: Sequence[Frame]) -> str:
    """Return a message for an answer with another id than the request's, "" if there is none."""
    request = _last_initialize(frames)
    answers = _answers(frames)
    if request is None or not answers or late_answer(frames) is not None:
        return ""
    answer_id = answers[0].id
    shown_id = "none" if answer_id is MISSING else json.dumps(answer_id, ensure_ascii=False)
    shown_id = f"{shown_id[:40]} (a text)" if isinstance(answer_id, str) else shown_id[:40]
    return (
        f"answered under another id: {shown_id}; the answer to initialize must have its id, "
        f"{request.id} (a number); the line: {answers[0].text(_MAX_LINE_CHARACTERS)}"
    )


def late_answer(frames: Sequence[Frame]) -> Frame | None:
    """Return the answer to `initialize`, None if there is none; callers no longer wait for it."""
    request = _last_initialize(frames)
    if request is None:
        return None
    return next((answer for answer in _answers(frames) if same_id(answer.id, request.id)), None)


def _last_initialize(frames: Sequence[Frame]) -> Frame | None:
    """Return the last `initialize` request, since the server may have been restarted."""
    sent = [frame for frame in frames if not frame.from_target and frame.method == "initialize"]
    return sent[-1] if sent else None


def _answers(frames: Sequence[Frame]) -> list[Frame]:
    request = _last_initialize(frames)
    after = [frame for frame in frames if request is not None and frame.seq > request.seq]
    return [
        frame for frame in after if frame.from_target and frame.kind in (Kind.RESPONSE, Kind.ERROR)
    ]
