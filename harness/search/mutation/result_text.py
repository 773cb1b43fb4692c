"""Report of a mutation run: the faults that survived and why, and the score."""

from collections.abc import Iterator

from harness.faults.mutation import Outcome
from harness.search.mutation.result import Attempt, FaultResult, Score

# Changes of a fault that are listed.
_MAX_PLACES_NAMED = 3


def lines(score: Score) -> Iterator[str]:
    """Yield the lines on survivors, on faults not applied and masked ones, and the score."""
    for outcome in (Outcome.SURVIVED, Outcome.NOT_APPLIED):
        for result in score.of(outcome):
            yield from story(result)
    masked = score.of(Outcome.MASKED)
    if masked:
        yield f"MASKED {len(masked)}: the target breaks their rules anyway"
        yield from (f"  {result.fault} ({result.rule})" for result in masked)
    counts = ", ".join(f"{score.count(outcome)} {outcome}" for outcome in Outcome)
    live = sum(result.live for result in score.of(Outcome.KILLED))
    yield (
        f"{score.target}: {counts} of {score.planned_count} faults; {live} of the killed live, the "
        f"others in traces; {score.scenarios} scenarios, {score.seconds:.0f} s"
    )
    if score.interrupted_by:
        untried = score.planned_count - len(score.results)
        yield f"interrupted ({score.interrupted_by}): {untried} not tried"
    value = "none" if score.value is None else f"{score.value:.1%}"
    yield f"mutation score: {value}"


def story(result: FaultResult) -> Iterator[str]:
    """Yield the lines on a fault that was not found: its rule, its reason, each attempt."""
    yield f"{result.outcome} {result.fault}: {result.rule} should tell that {result.reason}"
    if result.why:
        yield f"  {result.why}"
    for attempt in result.attempts:
        yield from _attempt(attempt)


def _attempt(attempt: Attempt) -> Iterator[str]:
    how_played = "live" if attempt.live else "in the trace"
    yield f"  {attempt.scenario} ({how_played}): {attempt.why or attempt.outcome}"
    if attempt.changed:
        more = len(attempt.changed) - _MAX_PLACES_NAMED
        changes = "; ".join(attempt.changed[:_MAX_PLACES_NAMED]) + (
            f"; and {more} more" if more > 0 else ""
        )
        yield f"    on the wire: {changes}"
    if attempt.trace:
        yield f"    look: harness show {attempt.trace}"
