"""Output of a command in pieces so small that their messages do not fit into a trace."""

from harness.play.run import Run
from harness.protocol.values import dig, text
from harness.trace.frame import Kind

_METHOD = "item/commandExecution/outputDelta"
# A command whose output has more bytes than this is not streamed in small pieces: it has no end.
MAX_OUTPUT_BYTES = 16 << 20
# The part of the messages that must be pieces of output.
_MIN_SHARE = 0.9


def describe_small_pieces(run: Run) -> str:
    """Describe the pieces of output that filled the trace, "" if something else did.

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
