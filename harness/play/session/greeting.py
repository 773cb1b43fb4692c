"""An answer to `initialize` that is none, in words."""

import json
from collections.abc import Sequence

from harness.protocol.values import MISSING
from harness.trace.correlation import same_id
from harness.trace.frame import Frame, Kind

LATE = (
    "its answer came after that, when its input was closed: it is slow, or does not flush what it "
    "writes; if it is slow, give --timeout-scale 3"
)
_LINE = 120


def other_id(frames: Sequence[Frame]) -> str:
    """ "answered under another id: 1001; …", "" where no answer came under another id."""
    asked = _asked(frames)
    answers = _answers(frames)
    if asked is None or not answers or late(frames) is not None:
        return ""
    found = answers[0].id
    told = "none" if found is MISSING else json.dumps(found, ensure_ascii=False)
    told = f"{told[:40]} (a text)" if isinstance(found, str) else told[:40]
    return (
        f"answered under another id: {told}; the answer to initialize must have its id, "
        f"{asked.id} (a number); the line: {answers[0].text(_LINE)}"
    )


def late(frames: Sequence[Frame]) -> Frame | None:
    """The answer to `initialize`, where there is one at all: whoever asks did not wait for it."""
    asked = _asked(frames)
    if asked is None:
        return None
    return next((one for one in _answers(frames) if same_id(one.id, asked.id)), None)


def _asked(frames: Sequence[Frame]) -> Frame | None:
    """The last request of its kind: a server can have been started anew."""
    sent = [one for one in frames if not one.from_target and one.method == "initialize"]
    return sent[-1] if sent else None


def _answers(frames: Sequence[Frame]) -> list[Frame]:
    asked = _asked(frames)
    after = [one for one in frames if asked is not None and one.seq > asked.seq]
    return [one for one in after if one.from_target and one.kind in (Kind.RESPONSE, Kind.ERROR)]
