"""Observation of one server process outside the protocol, from conversation to conversation.

Descriptors are counted at the end of each conversation, files of the home left out. They have grown
when the minimum of the last five counts is well above the maximum of the first five: a descriptor
that is opened once, or now and then, does not raise all of them.

Standard error is searched for the crash reports of runtimes (`PANICS` and the profile's own
patterns), unless the server died of it: then the crash is the finding. During a conversation, rules
judge output that is not a message; here it is searched between two of them and after the end of the
input.
"""

import re
from collections import Counter
from collections.abc import Sequence

from harness.client.peer import Peer
from harness.client.target.descriptors import count_descriptors
from harness.client.target.process import ProcessExit, ServerProcess
from harness.play.hygiene import Hygiene
from harness.trace.frame import DamageKind, Frame, Kind
from harness.trace.trace import End, Trace

# Number of counts compared at each end, and the minimum growth in descriptors.
COUNTS_COMPARED, MIN_GROWTH = 5, 8
# Maximum bytes of standard error that are searched after a conversation.
MAX_STDERR_BYTES = 8 * 1024 * 1024

# Crash reports of the runtimes of Rust, Python, Go, JavaScript, Java and C, and of loggers.
PANICS = (
    r"panicked at ",
    r"Traceback \(most recent call last\)",
    r"^panic: ",
    r"^fatal error: ",
    r"Unhandled ?Promise ?Rejection",
    r"Uncaught (\w+)?(Error|Exception)",
    r'^Exception in thread "',
    r"terminate called after throwing",
    r"Assertion .* failed",
    r"AddressSanitizer",
    r"[Ss]egmentation fault",
    r"\bFATAL\b",
)


class ProcessWatch:
    """Watch over one process, from its start to its end; findings go to `hygiene`."""

    def __init__(
        self, process: ServerProcess, peer: Peer, hygiene: Hygiene, panics: Sequence[str]
    ) -> None:
        self._process = process
        self._peer = peer
        self._hygiene = hygiene
        pattern = "|".join(f"(?:{regex})" for regex in (*PANICS, *panics))
        self._panic = re.compile(pattern.encode(), re.MULTILINE)
        self._scenario = ""
        self._judged_frames = 0
        self._line_begun = False
        self.stderr_offset = 0
        """Offset of standard error at which the conversation begins."""
        self._descriptor_counts: list[Counter[str]] = []

    def follow(self, peer: Peer) -> None:
        """Watch another connection, which replaces the first one in the same conversation."""
        self._peer = peer

    def on_conversation_end(self, trace: Trace, *, died: bool) -> None:
        """Check standard error and descriptors when the trace of a conversation is complete."""
        self._scenario = trace.header.scenario
        self._judged_frames = len(trace.frames)
        self._line_begun = bool(self._peer.transport.partial)
        self._check_stderr(report=not died)
        if trace.end is End.QUIESCENT:
            now = count_descriptors(self._process.pid, self._process.home)
            if now is not None:
                self._descriptor_counts.append(now)

    def on_conversation_begin(self) -> None:
        """Check the output since the last conversation, before the next one begins."""
        self._check_late_output()

    def on_exit(self, ending: ProcessExit, grace: float) -> None:
        """Check a process that we ended; `grace` is the seconds allowed for each signal."""
        self._hygiene.check_exit(ending, grace)
        if not self._scenario:
            return  # It never served a conversation; the set-up finding has its output.
        self._check_late_output()
        self._check_stderr(report=True)
        if ending.is_graceful:
            self._hygiene.add_temporary_files(ending.files)
        self._check_descriptors()

    def _check_late_output(self) -> None:
        """Report lines since the last conversation was judged that are not messages."""
        frames = self._peer.recorder.trace.frames[self._judged_frames :]
        late = [frame for frame in frames if frame.from_target]
        # A line that began during the conversation was reported with it.
        noise = [
            frame
            for frame in late[self._line_begun :]
            # Ending the process may have cut off a message.
            if frame.kind is Kind.MALFORMED and not _is_cut_off_message(frame)
        ]
        self._line_begun = self._line_begun and not late
        if noise:
            self._hygiene.add_stray_output(self._scenario, noise[0].text(80), len(noise))
        self._judged_frames += len(frames)

    def _check_stderr(self, *, report: bool) -> None:
        stderr, self.stderr_offset = self._process.stderr_since(
            self.stderr_offset, MAX_STDERR_BYTES
        )
        match = self._panic.search(stderr) if report else None
        if match is not None:
            start = stderr.rfind(b"\n", 0, match.start()) + 1
            line = stderr[start:].split(b"\n", 1)[0][:200]
            self._hygiene.add_panic(self._scenario, line.decode("utf-8", "backslashreplace"))

    def _check_descriptors(self) -> None:
        counts = [count.total() for count in self._descriptor_counts]
        if len(counts) < 2 * COUNTS_COMPARED:
            return
        before, after = max(counts[:COUNTS_COMPARED]), min(counts[-COUNTS_COMPARED:])
        if after - before >= MIN_GROWTH:
            grown = self._descriptor_counts[-1] - self._descriptor_counts[0]
            kinds = ", ".join(f"{number} more {kind}" for kind, number in grown.most_common(3))
            self._hygiene.add_descriptor_growth(before, after, len(counts), kinds)


def _is_cut_off_message(frame: Frame) -> bool:
    """Return whether a frame looks like a message cut off by the end of its stream."""
    is_cut_off = frame.damage is not None and frame.damage.kind is DamageKind.CUT_OFF
    return is_cut_off and frame.raw.lstrip().startswith(b"{")
