"""The verdict in about ten lines, for a terminal: what failed, what was not judged, and why."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from harness.judge.verdict import Level, Verdict
from harness.protocol.spec.book import Book
from harness.report.requirements import judged_requirements
from harness.report.results.report import (
    NOT_KNOWN,
    NOT_OFFERED,
    Report,
    RuleResult,
    ScenarioResult,
    gravest,
    is_red,
)
from harness.report.results.starts import ServerStart, by_reason
from harness.trace.surfaces import surface_of

WIDTH = 100


def summary(
    report: Report, book: Book, *, names: bool = False, whole: bool = False
) -> Iterator[str]:
    """The lines of the summary.

    With `names` each rule that was not judged is named. Without, a few are; many are counted, in a
    `whole` run by their areas, since where it looked at all there is, the gaps are worth a look.
    """
    yield _score(report)
    if report.scenarios or not report.races:
        yield _scenarios(report)
    yield from _races(report)
    yield f"requirements judged: {judged_requirements(report, book).words()}"
    yield from _choices(report, book)
    yield from _withheld(report)
    for issue in report.issues:
        mark = "KNOWN" if issue.known else "FAIL" if issue.level is Level.MUST else issue.level
        # A finding that keeps everything else from being judged is shown in full, with what to do.
        whole = issue.id.startswith("setup.") and not issue.known
        line = f"{mark:6} {issue.id}: {issue.message}"
        yield _cut(line, 1000) if whole else _cut(line)
        if issue.repeat and not issue.known:
            yield f"       repeat: {issue.repeat}"
    for rule in report.rules:
        if rule.verdict in (Verdict.FAIL, Verdict.ERROR):
            yield _cut(rule_line(rule, strict=report.strict))
    for scenario in report.scenarios:
        if scenario.verdict in (Verdict.FAIL, Verdict.ERROR):
            yield _cut(f"{scenario.verdict:6} scenario {scenario.id}: {scenario.reason}")
    for race in report.races:
        if race.verdict in (Verdict.FAIL, Verdict.ERROR):
            yield _cut(f"{race.verdict:6} race {race.scenario}@{race.reason}")
    yield from _known(report)
    yield from _not_judged(report, names=names, areas=whole)
    if names and report.starts:
        yield from _starts(report.starts)
    if report.unchecked:
        yield _cut(f"baseline entries not checked: {', '.join(report.unchecked)}")
    yield f"verdict: {verdict_words(report)}"


def verdict_words(report: Report) -> str:
    """GREEN or RED, and whether that is the last word."""
    verdict = "RED" if report.red else "GREEN"
    if report.interrupted:
        return f"INTERRUPTED ({verdict} so far)"
    if report.unplayed:
        whole = len(report.scenarios) + len(report.races)
        left = f"{len(report.unplayed)} of {whole} were not played"
        return f"{verdict} so far, NOT WHOLE: --max-time was over, and {left}"
    return verdict


def _starts(starts: Sequence[ServerStart]) -> Iterator[str]:
    """Give the reason for each start of the server, with its scenarios."""
    yield f"server starts: {len(starts)}"
    for reason, scenarios in by_reason(starts):
        first, *rest = _wrapped(scenarios)
        yield f"  {len(scenarios)} {reason}: {first.strip()}"
        yield from rest


def _choices(report: Report, book: Book) -> Iterator[str]:
    """Give the open points that were seen; none of them is judged."""
    if report.choices:
        played = {surface_of(one.id) for one in report.scenarios}
        about = [one for one in book.unspecified if one.is_about(played)]
        visible = [one for one in about if one.unseen is None]
        seen = sum(one.id in report.choices for one in visible)
        yield f"open points: {seen} of {len(visible)} were seen (harness ledger)"


def _score(report: Report) -> str:
    """The rules by verdict; findings that do not count are listed under their level."""
    counts = Counter(
        str(gravest(rule))
        if rule.verdict is Verdict.FAIL and not is_red(rule, strict=report.strict)
        else str(rule.verdict)
        for rule in report.rules
    )
    words = [Verdict.PASS, Verdict.FAIL, Level.SHOULD, Level.INFO, *list(Verdict)[2:]]
    shown = ", ".join(f"{counts[word]} {word}" for word in words if counts[word])
    return f"rules: {len(report.rules)} ({shown})"


def _scenarios(report: Report) -> str:
    counts = Counter(str(scenario.verdict) for scenario in report.scenarios)
    seconds = sum(scenario.seconds for scenario in report.scenarios)
    line = f"scenarios: {len(report.scenarios)} ({_counted(counts)}), {seconds:.1f} s of play"
    again = [one for one in report.scenarios if one.runs > 1]
    if not again:
        return line
    odd = sum(0 < one.failed_runs < one.runs for one in again)
    plays = sum(one.runs for one in again)
    return f"{line}; {len(again)} of them in {plays} plays, {odd} unsteady"


def _races(report: Report) -> Iterator[str]:
    if not report.races:
        return
    placements = [one for race in report.races for one in race.placements]
    races = Counter(str(race.verdict) for race in report.races)
    counts = Counter(str(one.verdict) for one in placements)
    seconds = sum(one.seconds * one.runs for one in placements)
    racy = sum(one.racy for one in placements)
    yield f"races: {len(report.races)} ({_counted(races)}), {seconds:.1f} s of play"
    yield f"placements: {len(placements)} ({_counted(counts)}), {racy} of them racy"
    for race in report.races:
        missed = [one.position for one in race.placements if one.verdict is Verdict.NOT_EXERCISED]
        if missed:
            yield _cut(f"NOT_EXERCISED {race.id}: never reached: {', '.join(missed)}")


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def _withheld(report: Report) -> Iterator[str]:
    """A line for each program that the machine lacks: what was not judged, and what to do."""
    for one in report.withheld:
        counts = [
            f"{len(ids)} {noun}(s)"
            for noun, ids in (("scenario", one.scenarios), ("race", one.races), ("rule", one.rules))
            if ids or noun != "race"
        ]
        if one.scenarios or one.races or one.rules:
            what = f"{', '.join(counts)} that need {one.capability}"
            yield _cut(f"not judged on this machine: {what}: {one.why}; {one.advice}", 300)


def rule_line(rule: RuleResult, *, strict: bool = False) -> str:
    """A rule's first violation in one line, with the number of the others."""
    proofs = [proof for proof in rule.proofs if proof.row.verdict is not Verdict.KNOWN]
    first = proofs[0]
    word = "ERROR" if rule.verdict is Verdict.ERROR else "FAIL"
    mark = word if is_red(rule, strict=strict) else str(gravest(rule))
    more = f"+{len(proofs) - 1} more" if len(proofs) > 1 else ""
    # One subject (a method's name, a kind of id) may be wrong in many scenarios: say in how many.
    far = f"in {len(rule.broken_in)} scenarios" if len(rule.broken_in) > 1 else ""
    told = ", ".join(filter(None, (more, far)))
    return (
        f"{mark:6} {rule.id} in {first.scenario}: {first.row.actual}{f' ({told})' if told else ''}"
    )


def _known(report: Report) -> Iterator[str]:
    for rule in report.rules:
        if any(proof.row.verdict is Verdict.KNOWN for proof in rule.proofs):
            reasons = list(dict.fromkeys(proof.reason for proof in rule.proofs if proof.reason))
            yield _cut(f"KNOWN  {rule.id}: {'; '.join(reasons)}")
    for scenario in report.scenarios:
        if scenario.verdict is Verdict.KNOWN:
            yield _cut(f"KNOWN  scenario {scenario.id}: {scenario.reason}")


def _not_judged(report: Report, *, names: bool, areas: bool) -> Iterator[str]:
    told = {ids for one in report.withheld for ids in (*one.scenarios, *one.rules)}
    for verdict in (Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE):
        groups: dict[str, list[str]] = {}
        for rule in report.rules:
            if rule.verdict is verdict and rule.id not in told:
                groups.setdefault(rule.reason, []).append(rule.id)
        blocked = [issue.id for issue in report.issues if issue.id.startswith("setup.")]
        for reason, ids in groups.items():
            if blocked and verdict is Verdict.NOT_EXERCISED:
                # One line for each cause; the rules themselves are not listed.
                yield f"{verdict}: {len(ids)} rule(s), because of {', '.join(blocked)}"
                continue
            if reason.startswith(NOT_KNOWN):
                yield f"{verdict}: {len(ids)} rule(s): {reason}"
                continue
            yield from _unjudged_rules(verdict, reason, ids, names=names, areas=areas)
        skipped = [one for one in report.scenarios if one.verdict is verdict and one.id not in told]
        lacking = [one for one in skipped if one.missing]
        if len({one.missing for one in lacking}) > 1:
            yield from _not_offered(lacking)
            skipped = [one for one in skipped if not one.missing]
        for reason, count in Counter(one.reason for one in skipped).items():
            yield _cut(f"{verdict}: {count} scenario(s): {reason}")


def _unjudged_rules(
    verdict: Verdict, reason: str, ids: Sequence[str], *, names: bool, areas: bool
) -> Iterator[str]:
    """The rules that were not judged for one reason."""
    lines = list(_wrapped(ids))
    if names or len(lines) == 1:
        yield f"{verdict}: {reason}:"
        yield from lines
        return
    counted = f"{verdict}: {len(ids)} rule(s): {reason} (-v names them)"
    if not areas:
        yield counted
        return
    yield f"{counted}:"
    found = Counter(one.split(".", 1)[0] for one in ids)
    yield from _wrapped(f"{area} ({found[area]})" for area in sorted(found))


def _not_offered(scenarios: Sequence[ScenarioResult]) -> Iterator[str]:
    """Give the features that the server does not offer, with the scenarios that need them."""
    needing = Counter(capability for one in scenarios for capability in one.missing)
    heading = f"{len(scenarios)} scenario(s): {NOT_OFFERED.strip()} what they need:"
    yield f"{Verdict.NOT_APPLICABLE}: {heading}"
    names = sorted(needing)
    yield from _wrapped(f"{name} ({needing[name]})" for name in names)


def _wrapped(names: Iterable[str]) -> Iterator[str]:
    line = " "
    for name in names:
        if len(line) + len(name) + 1 > WIDTH:
            yield line
            line = " "
        line += f" {name}"
    yield line


def _cut(line: str, limit: int = 320) -> str:
    line = " ".join(line.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
