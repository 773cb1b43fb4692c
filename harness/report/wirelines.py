"""Wire lines of a trace for reading: the proof of a finding with the messages around it."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from harness.judge.verdict import Place
from harness.protocol.values import read_path
from harness.trace.excerpt import Spot
from harness.trace.frame import Direction, Frame
from harness.trace.store import TraceFormatError, load
from harness.trace.surface.known import classify_of
from harness.trace.trace import Trace

# The numbers of messages shown before and after each frame of the proof, and of lines in all.
AROUND = 2
MAX_LINES = 14
# So many characters of a message are shown.
LIMIT = 240


def proof_lines(
    trace: Trace,
    frames: Collection[int],
    places: Sequence[Place] = (),
    *,
    limit: int = LIMIT,
    around: int = AROUND,
    most: int = MAX_LINES,
) -> Iterator[str]:
    """The frames of a proof, marked, with as many frames around them as there is room for.

    Of more than `most` frames the first and the last are shown, and the number of the others.
    """
    wanted = sorted({*frames, *(place.frame for place in places)} & set(range(len(trace.frames))))
    kept = wanted if len(wanted) <= most else [*wanted[: most // 2], *wanted[most // 2 - most :]]
    shown = set(kept)
    for distance in range(1, around + 1):
        for near in (seq + side for seq in kept for side in (-distance, distance)):
            if len(shown) < most and 0 <= near < len(trace.frames):
                shown.add(near)
    last = -1
    for seq in sorted(shown):
        if seq != last + 1 and last >= 0:
            missing = sum(last < one < seq for one in wanted)
            yield "      …" + (f" {missing} more message(s) of the proof" if missing else "")
        yield frame_line(trace.frames[seq], marked=seq in wanted, limit=limit, places=places)
        last = seq


def frame_line(
    frame: Frame, *, marked: bool = False, limit: int = LIMIT, places: Sequence[Place] = ()
) -> str:
    """One frame in one line: mark, milliseconds, direction, text with its places visible."""
    arrow = "→" if frame.direction is Direction.TO_TARGET else "←"
    note = f"  [{frame.damage.words}]" if frame.damage else ""
    spots = [Spot(read_path(one.path), one.offset) for one in places if one.frame == frame.seq]
    text = frame.text(limit, spots)
    return f"  {'*' if marked else ' '} {frame.at * 1000:9.1f} {arrow} {text}{note}"


def stored(path: str) -> Trace | None:
    """The trace in a file; None where there is none that can be read."""
    if not path:
        return None
    try:
        return load(Path(path), classify_of=classify_of)
    except (OSError, TraceFormatError):
        return None
