"""Observation of one server process beside the protocol, from conversation to conversation.

Descriptors are counted when a conversation has come to rest, files of the home left out. They have
grown when the least of the last five counts is well above the greatest of the first five: what is
opened once, or is open now and then, makes no such step.

Standard error is searched for what a runtime writes when the program was wrong (`PANICS` and the
profile's own patterns), unless the server died of it: then the crash is the finding. Output that is
no message is the rules' while a conversation lasts; here it is looked for between two of them and
after the end of the input, where no rule looks.
"""

import re
from collections import Counter
from collections.abc import Sequence

from harness.client.peer import Peer
from harness.client.target.descriptors import count_descriptors
from harness.client.target.process import ProcessExit, ServerProcess
from harness.play.hygiene import Hygiene
from harness.trace.frame import Kind
from harness.trace.trace import End, Trace

# So many counts at each end are compared, and must differ by so many descriptors.
WINDOW, GROWTH = 5, 8
# So much of what was written to standard error since the last look is read, in bytes.
MAX_STDERR = 8 * 1024 * 1024

# As written by the runtimes of Rust, Python, Go, JavaScript, Java and C, and by loggers.
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


class Watch:
    """Watches one process, from its start to its end."""

    def __init__(
        self, process: ServerProcess, peer: Peer, hygiene: Hygiene, panics: Sequence[str]
    ) -> None:
        self._process = process
        self._peer = peer
        self._hygiene = hygiene
        pattern = "|".join(f"(?:{one})" for one in (*PANICS, *panics))
        self._panic = re.compile(pattern.encode(), re.MULTILINE)
        self._scenario = ""
        self._judged = 0
        self._begun = False
        self._heard = 0
        self._held: list[Counter[str]] = []

    def follow(self, peer: Peer) -> None:
        """Watch another connection, in the same conversation."""
        self._peer = peer

    def conversation_over(self, trace: Trace, *, died: bool) -> None:
        """The trace of a conversation is complete."""
        self._scenario = trace.header.scenario
        self._judged = len(trace.frames)
        self._begun = bool(self._peer.transport.partial)
        self._listen(report=not died)
        if trace.end is End.QUIESCENT:
            now = count_descriptors(self._process.pid, self._process.home)
            if now is not None:
                self._held.append(now)

    def conversation_begins(self) -> None:
        """The connection is about to be given to the next conversation."""
        self._late_output()

    def ended(self, ending: ProcessExit, grace: float) -> None:
        """We ended the process; `grace` in seconds for each push."""
        self._hygiene.check_exit(ending, grace)
        if not self._scenario:
            return  # It was of no use from the start, and what it said is told with that.
        self._late_output()
        self._listen(report=True)
        if ending.is_graceful:
            self._hygiene.add_temporary_files(ending.files)
        self._descriptors()

    def _late_output(self) -> None:
        """Output since the last conversation was judged that is no message."""
        frames = self._peer.recorder.trace.frames[self._judged :]
        late = [one for one in frames if one.from_target]
        # A line that was begun in the conversation was shown with it.
        noise = [one for one in late[self._begun :] if one.kind is Kind.MALFORMED]
        self._begun = self._begun and not late
        if noise:
            self._hygiene.add_stray_output(self._scenario, noise[0].text(80), len(noise))
        self._judged += len(frames)

    def _listen(self, *, report: bool) -> None:
        said, self._heard = self._process.stderr_since(self._heard, MAX_STDERR)
        found = self._panic.search(said) if report else None
        if found is not None:
            start = said.rfind(b"\n", 0, found.start()) + 1
            line = said[start:].split(b"\n", 1)[0][:200]
            self._hygiene.add_panic(self._scenario, line.decode("utf-8", "backslashreplace"))

    def _descriptors(self) -> None:
        counts = [one.total() for one in self._held]
        if len(counts) < 2 * WINDOW:
            return
        before, after = max(counts[:WINDOW]), min(counts[-WINDOW:])
        if after - before >= GROWTH:
            grown = self._held[-1] - self._held[0]
            kinds = ", ".join(f"{number} more {kind}" for kind, number in grown.most_common(3))
            self._hygiene.add_descriptor_growth(before, after, len(counts), kinds)
