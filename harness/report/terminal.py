"""The verdict in about ten lines, for a terminal: what failed, what was not judged, and why."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from harness.judge.verdict import Level, Verdict
from harness.protocol.escapes import visible
from harness.protocol.spec.book import Book
from harness.report.requirements import judged_requirements
from harness.report.results.report import (
    NOT_KNOWN,
    NOT_OFFERED,
    Report,
    RuleResult,
    ScenarioResult,
    gravest_level,
    is_red,
)
from harness.report.results.server_starts import ServerStart, by_reason
from harness.trace.surfaces import surface_of

WIDTH = 100
# Findings that are about the machine or the profile, not about the release.
_NEVER_NEWS = ("setup.", "baseline.", "harness.")


def summary(
    report: Report, book: Book, *, names: bool = False, whole: bool = False
) -> Iterator[str]:
    """Return the lines of the summary.

    With `names` each rule that was not judged is named. Otherwise rules are named if they fit on a
    line, else counted: by area if the run is `whole`, since only then every gap matters.
    """
    return map(visible, _summary_lines(report, book, names=names, whole=whole))


def _summary_lines(report: Report, book: Book, *, names: bool, whole: bool) -> Iterator[str]:
    if report.release_note:
        yield f"release: {report.release_note}"
    if report.suite:
        yield f"suite: {report.suite}"
    news = f" ({report.news})" if report.news else ""
    yield _rule_counts_line(report)
    if report.scenarios or not report.races:
        yield _scenario_counts_line(report)
    yield from _race_lines(report)
    yield f"requirements: {judged_requirements(report, book).words()}"
    yield from _choice_lines(report, book)
    yield from _withheld_lines(report)
    for time in report.times:
        yield _shorten(f"time {time.step or time.name}: {time.words()}")
    for issue in report.issues:
        mark = "KNOWN" if issue.known else "FAIL" if issue.level is Level.MUST else issue.level
        # A finding that blocks all other verdicts is shown in full, with its advice.
        blocks = issue.id.startswith("setup.") and not issue.known
        is_news = mark in ("FAIL", Level.SHOULD) and not issue.id.startswith(_NEVER_NEWS)
        line = f"{mark:6} {issue.id}{news if is_news else ''}: {issue.message}"
        yield _shorten(line, 1000) if blocks or issue.paste else _shorten(line)
        yield from (f"         {line}".rstrip() for line in issue.paste.splitlines())
        if issue.repeat and not issue.known:
            yield f"       repeat: {issue.repeat}"
    for rule in report.rules:
        if rule.verdict in (Verdict.FAIL, Verdict.ERROR):
            # What counts for nothing has no deviation in known releases either.
            is_news = gravest_level(rule) is not Level.INFO
            yield _shorten(rule_line(rule, strict=report.strict, news=news if is_news else ""))
    for scenario in report.scenarios:
        if scenario.verdict in (Verdict.FAIL, Verdict.ERROR):
            yield _shorten(f"{scenario.verdict:6} scenario {scenario.id}{news}: {scenario.reason}")
    for race in report.races:
        if race.verdict in (Verdict.FAIL, Verdict.ERROR):
            yield _shorten(f"{race.verdict:6} race{news} {race.scenario}@{race.reason}")
    yield from _known_lines(report)
    yield from _unjudged_lines(report, names=names, areas=whole)
    if names and report.starts:
        yield from _start_lines(report.starts)
    if report.unchecked:
        yield _shorten(f"baseline entries not checked: {', '.join(report.unchecked)}")
    verdict, reasons = verdict_words(report), ", ".join(report.red_reasons())
    link = (
        " because of " if verdict.partition(" of ")[0] in ("RED", "ERROR") else "; red because of "
    )
    yield f"verdict: {verdict}{link if reasons else ''}{reasons}"
    if report.shard is not None:
        yield "  the verdict of the whole run: harness merge, with the reports of all shards"


def verdict_words(report: Report) -> str:
    """Return GREEN, RED, or ERROR if only the harness failed, and whether the verdict is final."""
    verdict = "ERROR" if report.is_error else "RED" if report.red else "GREEN"
    part = f" of shard {report.shard.name} alone" if report.shard is not None else ""
    if report.interrupted:
        return f"INTERRUPTED ({verdict} so far){part}"
    if report.unplayed:
        items = len(report.scenarios) + len(report.races)
        unplayed = f"{len(report.unplayed)} of {items} were not played"
        return f"{verdict} so far{part}, NOT WHOLE: --max-time was over, and {unplayed}"
    return f"{verdict}{part}"


def _start_lines(starts: Sequence[ServerStart]) -> Iterator[str]:
    """Yield the reason for each start of the server, with its scenarios."""
    yield f"server starts: {len(starts)}"
    for reason, scenarios in by_reason(starts):
        first, *others = _wrap(scenarios)
        yield f"  {len(scenarios)} {reason}: {first.strip()}"
        yield from others


def _choice_lines(report: Report, book: Book) -> Iterator[str]:
    """Yield the number of open points that were seen; none of them is judged."""
    if report.choices:
        played = {surface_of(scenario.id) for scenario in report.scenarios}
        points = [point for point in book.unspecified if point.is_about(played)]
        visible = [point for point in points if point.unseen is None]
        seen_count = sum(point.id in report.choices for point in visible)
        seen = f"the server's choice was seen at {seen_count} of {len(visible)}"
        yield f"open points: {seen} (harness ledger)"


def _rule_counts_line(report: Report) -> str:
    """Return the rules by verdict; findings that do not count are listed under their level."""
    counts = Counter(
        str(gravest_level(rule))
        if rule.verdict is Verdict.FAIL and not is_red(rule, strict=report.strict)
        else str(rule.verdict)
        for rule in report.rules
    )
    words = [Verdict.PASS, Verdict.FAIL, Level.SHOULD, Level.INFO, *list(Verdict)[2:]]
    counts_shown = ", ".join(f"{counts[word]} {word}" for word in words if counts[word])
    return f"rules: {len(report.rules)} ({counts_shown})"


def _scenario_counts_line(report: Report) -> str:
    counts = Counter(str(scenario.verdict) for scenario in report.scenarios)
    seconds = sum(scenario.seconds for scenario in report.scenarios)
    line = (
        f"scenarios: {len(report.scenarios)} ({_count_verdicts(counts)}), {seconds:.1f} s of play"
    )
    again = [scenario for scenario in report.scenarios if scenario.runs > 1]
    if not again:
        return line
    odd = sum(0 < scenario.failed_runs < scenario.runs for scenario in again)
    plays = sum(scenario.runs for scenario in again)
    return f"{line}; {len(again)} of them in {plays} plays, {odd} unsteady"


def _race_lines(report: Report) -> Iterator[str]:
    if not report.races:
        return
    placements = [placement for race in report.races for placement in race.placements]
    races = Counter(str(race.verdict) for race in report.races)
    counts = Counter(str(placement.verdict) for placement in placements)
    seconds = sum(placement.seconds * placement.runs for placement in placements)
    racy = sum(placement.racy for placement in placements)
    yield f"races: {len(report.races)} ({_count_verdicts(races)}), {seconds:.1f} s of play"
    yield f"placements: {len(placements)} ({_count_verdicts(counts)}), {racy} of them racy"
    for race in report.races:
        missed = [
            placement.position
            for placement in race.placements
            if placement.verdict is Verdict.NOT_EXERCISED
        ]
        if missed:
            yield _shorten(f"NOT_EXERCISED {race.id}: never reached: {', '.join(missed)}")


def _count_verdicts(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def _withheld_lines(report: Report) -> Iterator[str]:
    """Yield a line for each program that the machine lacks: what was not judged, and advice."""
    for withheld in report.withheld:
        counts = [
            f"{len(ids)} {noun}(s)"
            for noun, ids in (
                ("scenario", withheld.scenarios),
                ("race", withheld.races),
                ("rule", withheld.rules),
            )
            if ids or noun != "race"
        ]
        if withheld.scenarios or withheld.races or withheld.rules:
            subject = f"{', '.join(counts)} that need {withheld.capability}"
            yield _shorten(
                f"not judged on this machine: {subject}: {withheld.why}; {withheld.advice}", 300
            )


def rule_line(rule: RuleResult, *, strict: bool = False, news: str = "") -> str:
    """Return a line with a rule's first violation that is not known, and counts of the others.

    `news` is a note on the rule, such as ` (new since 0.169)`.
    """
    proofs = [proof for proof in rule.proofs if proof.row.verdict is not Verdict.KNOWN]
    first = proofs[0]
    word = "ERROR" if rule.verdict is Verdict.ERROR else "FAIL"
    mark = word if is_red(rule, strict=strict) else str(gravest_level(rule))
    more = f"{len(proofs)} subjects" if len(proofs) > 1 else ""
    # One subject (a method's name, a kind of id) may be wrong in many scenarios: say in how many.
    far = f"in {len(rule.broken_in)} scenarios" if len(rule.broken_in) > 1 else ""
    notes = " ".join(filter(None, (more, far)))
    note = f" ({notes})" if notes else ""
    return f"{mark:6} {rule.id}{news} in {first.scenario}: {first.row.actual}{note}"


def _known_lines(report: Report) -> Iterator[str]:
    for rule in report.rules:
        if any(proof.row.verdict is Verdict.KNOWN for proof in rule.proofs):
            reasons = list(dict.fromkeys(proof.reason for proof in rule.proofs if proof.reason))
            yield _shorten(f"KNOWN  {rule.id}: {'; '.join(reasons)}")
    for scenario in report.scenarios:
        if scenario.verdict is Verdict.KNOWN:
            yield _shorten(f"KNOWN  scenario {scenario.id}: {scenario.reason}")


def _unjudged_lines(report: Report, *, names: bool, areas: bool) -> Iterator[str]:
    withheld_ids = {
        ids for withheld in report.withheld for ids in (*withheld.scenarios, *withheld.rules)
    }
    for verdict in (Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE):
        groups: dict[str, list[str]] = {}
        for rule in report.rules:
            if rule.verdict is verdict and rule.id not in withheld_ids:
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
            yield from _unjudged_rule_lines(verdict, reason, ids, names=names, areas=areas)
        skipped = [
            scenario
            for scenario in report.scenarios
            if scenario.verdict is verdict and scenario.id not in withheld_ids
        ]
        lacking = [scenario for scenario in skipped if scenario.missing]
        if len({scenario.missing for scenario in lacking}) > 1:
            yield from _not_offered_lines(lacking)
            skipped = [scenario for scenario in skipped if not scenario.missing]
        for reason, count in Counter(scenario.reason for scenario in skipped).items():
            yield _shorten(f"{verdict}: {count} scenario(s): {reason}")


def _unjudged_rule_lines(
    verdict: Verdict, reason: str, ids: Sequence[str], *, names: bool, areas: bool
) -> Iterator[str]:
    """Yield the rules that were not judged for one reason."""
    lines = list(_wrap(ids))
    if names or len(lines) == 1:
        yield f"{verdict}: {reason}:"
        yield from lines
        return
    counted = f"{verdict}: {len(ids)} rule(s): {reason} (-v names them)"
    if not areas:
        yield counted
        return
    yield f"{counted}:"
    counts = Counter(name.split(".", 1)[0] for name in ids)
    yield from _wrap(f"{area} ({counts[area]})" for area in sorted(counts))


def _not_offered_lines(scenarios: Sequence[ScenarioResult]) -> Iterator[str]:
    """Yield the features that the server does not offer, with the scenarios that need them."""
    needing = Counter(capability for scenario in scenarios for capability in scenario.missing)
    heading = f"{len(scenarios)} scenario(s): {NOT_OFFERED.strip()} what they need:"
    yield f"{Verdict.NOT_APPLICABLE}: {heading}"
    names = sorted(needing)
    yield from _wrap(f"{name} ({needing[name]})" for name in names)


def _wrap(names: Iterable[str]) -> Iterator[str]:
    line = " "
    for name in names:
        if len(line) + len(name) + 1 > WIDTH:
            yield line
            line = " "
        line += f" {name}"
    yield line


def _shorten(line: str, limit: int = 320) -> str:
    line = " ".join(line.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
