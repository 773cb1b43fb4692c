"""Floods that are a small output of a command, streamed in tiny pieces."""

from harness.play.run import Run
from harness.protocol.values import dig, text
from harness.trace.frame import Kind

_METHOD = "item/commandExecution/outputDelta"
# More bytes of output are a flood, however they are streamed.
MAX_OUTPUT_BYTES = 16 << 20
# Minimum share of messages that must be pieces of output.
_MIN_SHARE = 0.9


def describe_small_pieces(run: Run) -> str:
    """Return a description if small pieces of output filled the trace, else "".

    Bytes count: a server may stream a command's output byte by byte, which is no flood while the
    output itself is small.
    """
    if not run.overflow:
        return ""
    pieces = [
        text(dig(frame.params, "delta"))
        for frame in run.trace.frames
        if frame.kind is Kind.NOTIFICATION and frame.method == _METHOD
    ]
    count = len(pieces)
    size = sum(len(piece.encode("utf-8", "surrogatepass")) for piece in pieces)
    is_output = all(pieces) and count >= _MIN_SHARE * len(run.trace.frames)
    if not is_output or size > MAX_OUTPUT_BYTES:
        return ""
    return f"{size} bytes of output came in {count} messages; a trace holds no more of them"
