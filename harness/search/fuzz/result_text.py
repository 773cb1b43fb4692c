"""Reports of a fuzz run, for people and as JSON."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from harness.scenario.scenario_text import scenario_text
from harness.search.fuzz.case import Kind
from harness.search.fuzz.run import FuzzResult
from harness.search.fuzz.sessions.search import SessionCampaign
from harness.search.fuzz.store import TRACE, Failure, Store
from harness.search.sequences.search import SequenceCampaign

# Lines of a case to print; the rest is in its file.
_MAX_CASE_LINES = 40


def lines(
    result: FuzzResult, store: Store, target: Sequence[str], *, verbose: bool = False
) -> Iterator[str]:
    """Yield the lines of the report: searches, fixed failures, notes, failures, the verdict.

    `target` are the options that name the server. With `verbose` each reason is told why sequences
    were not covered.
    """
    for kind, campaign in result.searches.items():
        yield _search_line(result, kind, campaign)
        if isinstance(campaign, SequenceCampaign):
            yield from (f"  {line}" for line in campaign.coverage.lines())
            reasons = campaign.coverage.reason_lines() if verbose else ()
            yield from (f"    {line}" for line in reasons)
            yield from (f"  SHOULD {_short(line)}" for line in campaign.broken_should)
        for text in campaign.unsteady:
            yield f"  UNSTEADY not seen again on a fresh process: {_short(text)}"
        if campaign.only_errors:
            yield f"  WARNING {campaign.errors} of {campaign.requests} were refused: {_ERRORS_ONLY}"
        if campaign.lacks and not isinstance(campaign, SequenceCampaign):
            yield f"  not offered, so not tried any more: {', '.join(campaign.lacks)}"
    for identity in result.fixed_ids:
        yield f"fixed: {identity} does not show any more"
    for text in result.notes:
        yield f"NOTE {text}"
    for failure in result.failures:
        yield from _failure_lines(failure, result, store, target)
    if result.interrupted_by:
        yield f"interrupted ({result.interrupted_by}): what was not sent by then is not tried"
    yield f"verdict: {result.verdict}"


_ERRORS_ONLY = "little but error paths was reached; harness doctor says what the server lacks"


def _search_line(result: FuzzResult, kind: Kind, campaign: SessionCampaign) -> str:
    rate = campaign.requests / campaign.seconds if campaign.seconds else 0.0
    only = f" of {result.bounds.method}" if result.bounds.method else ""
    how = f"{result.bounds.ways} ways" if kind == "sequences" else f"seed {campaign.seed}"
    return (
        f"fuzz {kind}{only}: {how}, {campaign.cases} conversations, "
        f"{campaign.requests} requests ({campaign.results} answered, {campaign.errors} refused), "
        f"{rate:.0f} requests/s"
    )


def _failure_lines(
    failure: Failure, result: FuzzResult, store: Store, target: Sequence[str]
) -> Iterator[str]:
    known_words = ", known" if failure.id in result.known_ids else ""
    flaky = ", not each time" if failure.flaky else ""
    occasion = f": {failure.occasion}" if failure.occasion else ""
    yield f"FAIL {failure.cause} ({failure.kind}{known_words}{flaky}){occasion}"
    yield f"  {_short(failure.text, 500)}"
    if failure.id in result.unkept_ids:
        yield from _case_lines(failure)
        return
    yield f"  case      {store.scenario(failure.id)}"
    yield from _case_lines(failure)
    yield f"  again     {replay_command(failure, store, target)}"
    yield f"  look      harness show {shlex.quote(str(store.folder / (failure.id + TRACE)))}"


def _case_lines(failure: Failure) -> Iterator[str]:
    case_lines = scenario_text(failure.document, failure.id).splitlines()[1:]
    for line in case_lines[:_MAX_CASE_LINES]:
        yield f"    {_short(line, 160)}"
    if len(case_lines) > _MAX_CASE_LINES:
        yield f"    … {len(case_lines) - _MAX_CASE_LINES} more lines"


def replay_command(failure: Failure, store: Store, target: Sequence[str]) -> str:
    """Return the command that plays a failure again, from any folder."""
    return shlex.join(["harness", "replay", str(store.scenario(failure.id)), *target])


def plain(result: FuzzResult, store: Store, target: Sequence[str]) -> dict[str, Any]:
    """Return the report as a JSON object; docs/fuzzing.md describes its members."""
    return {
        "verdict": result.verdict,
        "seed": result.bounds.seed,
        "searches": [
            {
                "kind": kind,
                "conversations": campaign.cases,
                "answered": campaign.results,
                "refused": campaign.errors,
                "seconds": round(campaign.seconds, 3),
                "only_errors": campaign.only_errors,
                "unsteady": campaign.unsteady,
                **(
                    {
                        "coverage": campaign.coverage.plain(),
                        "broken_should": campaign.broken_should,
                    }
                    if isinstance(campaign, SequenceCampaign)
                    else {}
                ),
            }
            for kind, campaign in result.searches.items()
        ],
        "failures": [
            {
                "id": failure.id,
                "kind": failure.kind,
                "cause": failure.cause,
                "occasion": failure.occasion,
                "text": failure.text,
                "flaky": failure.flaky,
                "known": failure.id in result.known_ids,
                "document": failure.document,
                "replay": None
                if failure.id in result.unkept_ids
                else replay_command(failure, store, target),
            }
            for failure in result.failures
        ],
        "fixed": result.fixed_ids,
        "notes": result.notes,
        "interrupted": result.interrupted_by,
    }


def _short(text: str, limit: int = 300) -> str:
    if len(text) <= limit:
        return text
    return f"{text[: limit - 60]} …{len(text) - limit + 20} more… {text[-40:]}"
