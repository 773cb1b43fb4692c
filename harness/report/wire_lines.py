"""Wire lines of a trace for reading: the proof of a finding with the messages around it."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from harness.judge.verdict import Place
from harness.protocol.values import read_path
from harness.trace.excerpt import Spot
from harness.trace.frame import Direction, Frame
from harness.trace.store import TraceFormatError, load
from harness.trace.surface.registry import classify_of
from harness.trace.trace import Trace

# The numbers of messages shown before and after each frame of the proof, and of lines in all.
CONTEXT_FRAMES = 2
MAX_LINES = 14
# The characters of a message that are shown.
MAX_MESSAGE_CHARACTERS = 240


def proof_lines(
    trace: Trace,
    frames: Collection[int],
    places: Sequence[Place] = (),
    *,
    limit: int = MAX_MESSAGE_CHARACTERS,
    context: int = CONTEXT_FRAMES,
    max_lines: int = MAX_LINES,
) -> Iterator[str]:
    """Yield the frames of a proof, marked, with as many frames around them as there is room for.

    If there are more than `max_lines` frames, the first and the last are shown, and the number of
    the others.
    """
    proof_frames = sorted(
        {*frames, *(place.frame for place in places)} & set(range(len(trace.frames)))
    )
    selected = (
        proof_frames
        if len(proof_frames) <= max_lines
        else [*proof_frames[: max_lines // 2], *proof_frames[max_lines // 2 - max_lines :]]
    )
    shown = set(selected)
    for distance in range(1, context + 1):
        for near in (seq + side for seq in selected for side in (-distance, distance)):
            if len(shown) < max_lines and 0 <= near < len(trace.frames):
                shown.add(near)
    last = -1
    for seq in sorted(shown):
        if seq != last + 1 and last >= 0:
            missing = sum(last < frame < seq for frame in proof_frames)
            yield "      …" + (f" {missing} more message(s) of the proof" if missing else "")
        yield frame_line(trace.frames[seq], marked=seq in proof_frames, limit=limit, places=places)
        last = seq


def frame_line(
    frame: Frame,
    *,
    marked: bool = False,
    limit: int = MAX_MESSAGE_CHARACTERS,
    places: Sequence[Place] = (),
) -> str:
    """Return one frame in one line: mark, milliseconds, direction, number, text with its places."""
    arrow = "→" if frame.direction is Direction.TO_TARGET else "←"
    note = f"  [{frame.damage.words}]" if frame.damage else ""
    spots = [
        Spot(read_path(place.path), place.offset) for place in places if place.frame == frame.seq
    ]
    text = frame.text(limit, spots)
    return f"  {'*' if marked else ' '} {frame.at * 1000:9.1f} {arrow} #{frame.seq} {text}{note}"


def load_stored(path: str) -> Trace | None:
    """Return the trace in a file; None if it is missing or unreadable."""
    if not path:
        return None
    try:
        return load(Path(path), classify_of=classify_of)
    except (OSError, ValueError, TraceFormatError):  # A path may hold a null byte.
        return None
