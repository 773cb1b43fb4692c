"""The judge on a sample of conversations under load: recordings of single connections."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.judge.judge import judge
from harness.judge.verdict import Level, Verdict
from harness.play.config import Config
from harness.report.results.baseline import mark_known_row
from harness.report.results.baseline_globs import LOAD
from harness.trace.foreign import load_any
from harness.trace.trace import End


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A MUST rule that a conversation broke: the rule, what the judge says, and the recording."""

    rule: str
    text: str
    recording: str


def judge_recordings(
    config: Config, recordings: Iterable[tuple[Path, bool]]
) -> tuple[int, list[BrokenRule]]:
    """Return the number of judged recordings, and the rules of the level MUST that they break.

    Each path comes with whether the session came to rest: only then a missing message counts.
    Recordings without a finding are removed, the others kept for `harness show`.
    """
    count, broken = 0, list[BrokenRule]()
    names = config.profile.names or None
    for path, at_rest in recordings:
        if not path.is_file() or not path.stat().st_size:
            continue
        trace = load_any(path, config.book.paths_of, names=names)
        trace.end = End.QUIESCENT if at_rest else End.CLOSED
        count += 1
        rows = judge(config.book, trace, config.rules.values())
        marked = [mark_known_row(row, LOAD, config.entries) for row in rows]
        failed = [row for row in marked if row.verdict is Verdict.FAIL and row.level is Level.MUST]
        broken += [
            BrokenRule(row.rule, f"{row.subject}: {row.actual}", str(path)) for row in failed
        ]
        if not failed:
            path.unlink()
    return count, broken
