"""Messages that rules expect and an idle server may still send."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from harness.client.target.profile import Profile
from harness.judge.base import Monitor, judges_surface
from harness.judge.judge import feed_trace
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Row, Verdict
from harness.protocol.spec.book import Book
from harness.report.results.baseline import mark_known_row
from harness.trace.surfaces import SESSION
from harness.trace.trace import End, Trace

# Long silences that left a rule broken, after which the short silence is enough for it.
MAX_WAITS_IN_VAIN = 2


class LateMessages:
    """Judge of whether a longer silence could change the verdict on a trace.

    Obligations cover what every client waits for; rules expect more, such as thread/archived, and
    the specification sets no time limit for it. A trace that breaks a rule when it is judged as if
    it had ended is not at its end before the profile's `settle` seconds of silence. Without
    `rules`, those of the session judge.
    """

    def __init__(
        self, book: Book, profile: Profile, rules: Iterable[type[Monitor]] | None = None
    ) -> None:
        self._book = book
        self._entries = profile.deviations
        every = all_rules().values() if rules is None else rules
        self._rules = [rule for rule in every if judges_surface(rule, SESSION)]
        self._waits_in_vain = Counter[str]()
        self._judged, self._rows = Trace(), list[Row]()

    def missed_by(self, trace: Trace) -> list[str]:
        """Return the ids of broken rules that a later message could still satisfy."""
        judged = feed_trace(self._book, trace, self._rules).finish(End.QUIESCENT)
        self._judged, self._rows = _copy_of(trace), judged
        rows = (mark_known_row(row, trace.header.scenario, self._entries) for row in judged)
        broken = {
            row.rule for row in rows if row.verdict is Verdict.FAIL and row.level is not Level.INFO
        }
        return sorted(rule for rule in broken if self._waits_in_vain[rule] < MAX_WAITS_IN_VAIN)

    def rows_of(self, trace: Trace) -> list[Row] | None:
        """Return the rows of a trace that `missed_by` judged last; None if anything was added."""
        if trace.end is not End.QUIESCENT:
            return None
        same = trace.frames == self._judged.frames and trace.marks == self._judged.marks
        return self._rows if same and trace.header == self._judged.header else None

    def add_wait_in_vain(self, rules: Sequence[str]) -> None:
        """Count a long silence in which none of these rules was satisfied."""
        self._waits_in_vain.update(rules)


def _copy_of(trace: Trace) -> Trace:
    """Return a copy to which the recorder adds nothing; its frames and marks are shared."""
    return replace(
        trace, header=replace(trace.header), frames=list(trace.frames), marks=list(trace.marks)
    )
