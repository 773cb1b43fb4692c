"""The page of one run: the verdict first, then findings, requirements, scenarios, the slowest.

Everything can be read without the script, except the conversations, which it draws when asked.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.judge.verdict import Verdict
from harness.protocol.spec.book import Book
from harness.report.html.conversations import MAX_CONVERSATION_BYTES, Conversations, PlacedFinding
from harness.report.html.findings import COUNTS, GROUPS, finding_cards, trace_of
from harness.report.html.rendering import render
from harness.report.html.scenario_facts import ScenarioFacts
from harness.report.html.timeline import timeline_of
from harness.report.requirements import binds_clients_only, judged_requirements, with_levels
from harness.report.results.outcome import Finding
from harness.report.results.report import Report, gravest_level, is_red
from harness.report.results.rerun_command import near_path, replay_command, scenario_argument
from harness.report.sequence_coverage import coverage_lines
from harness.report.terminal import summary, verdict_words
from harness.trace.surfaces import surface_of

MAX_SLOWEST: Final = 12
_OTHER_SURFACE: Final = "OTHER_SURFACE"
_NO_RULE: Final = "NO_RULE"
# The order in bars, maps and filters: what is wrong first.
_ORDER: Final = (
    *("ERROR", "FAIL", "SHOULD", "INFO", "KNOWN", "PARTLY", "PASS"),
    *("NOT_EXERCISED", "NOT_APPLICABLE", _OTHER_SURFACE, _NO_RULE),
)
_UNJUDGED: Final = _ORDER[-4:]


@dataclass(frozen=True, slots=True)
class Bar:
    """Counts by verdict, drawn as one bar; `parts` have their left edge and width of 1,000."""

    name: str
    total: int
    parts: tuple[tuple[str, int, float, float], ...]


@dataclass(frozen=True, slots=True)
class Area:
    """The requirements of one area: verdict, id, statement and rules of each."""

    name: str
    counts: Mapping[str, int]
    requirements: tuple[tuple[str, str, str, tuple[str, ...]], ...]

    @property
    def is_wrong(self) -> bool:
        """Return whether a requirement of the area is broken."""
        return any(self.counts.get(verdict) for verdict in ("FAIL", "ERROR"))


@dataclass(frozen=True, slots=True)
class Play:
    """A scenario or a race, as one row of the page."""

    id: str
    title: str
    verdict: str
    reason: str
    seconds: float
    area: str
    facts: ScenarioFacts
    path: str
    repeat: str
    trace: str = ""
    runs: int = 1
    failed_runs: int = 0
    broken: tuple[str, ...] = ()
    placements: tuple[Any, ...] = ()
    lane: str = ""
    began: float = 0.0
    replayed: bool = False


def run_page(
    report: Report, book: Book, harness: str, facts: Mapping[str, ScenarioFacts] | None = None
) -> str:
    """Return the whole page; `harness` is the version that judged, `facts` those of scenarios."""
    told = "\n".join(summary(report, book, names=False, whole=len(report.scenarios) > 100))
    report = with_levels(report, book)
    cards = finding_cards(report, book)
    plays = _plays(report, facts or {})
    timeline = timeline_of(plays)
    conversations = Conversations(MAX_CONVERSATION_BYTES)
    conversations.add_all(
        [card.trace for card in cards],
        [
            *(play.trace for play in plays),
            *(placement.trace for play in plays for placement in play.placements),
        ],
        shown_findings(report),
    )
    counting = sum(card.group == COUNTS for card in cards)
    return render(
        "run.html.j2",
        title=f"{verdict_words(report)}: {report.target}",
        report=report,
        heading=report.target,
        harness=harness,
        sections=[
            ("findings", "Findings", counting),
            ("requirements", "Requirements", None),
            ("scenarios", "Scenarios", len(plays)),
            *([("lanes", "Lanes", None)] if timeline.lanes else []),
            *([("slowest", "Slowest", None)] if any(play.seconds for play in plays) else []),
        ],
        word=verdict_words(report),
        tone="error" if report.is_error else "fail" if report.red else "pass",
        reasons=report.red_reasons(),
        requirement_words=judged_requirements(report, book).words(),
        told=told,
        facts=_facts(report, harness),
        bars=_bars(report, book),
        groups=[(group, [card for card in cards if card.group == group]) for group in GROUPS],
        counting=counting,
        areas=_areas(report, book),
        order=_ORDER,
        rules=_rules(report),
        rule_ids={rule.id for rule in report.rules},
        plays=plays,
        play_ids={play.id for play in plays},
        choices=_choices(plays, report),
        timeline=timeline,
        slowest=_slowest(plays),
        conversations=conversations,
        index=_index(report, plays),
    )


def shown_findings(report: Report) -> Iterator[tuple[str, PlacedFinding]]:
    """Yield each finding with the file of its conversation."""
    kept = {one.id: one.trace for one in report.scenarios}
    for rule in report.rules:
        for proof in rule.proofs:
            yield trace_of(proof, kept), (proof.row, proof.stderr)
    for scenario in report.scenarios:
        for name, words, line in scenario.messages:
            known = scenario.reason if scenario.verdict is Verdict.KNOWN else ""
            yield scenario.trace, (Finding(name, words, line, known=known), scenario.stderr)


def _facts(report: Report, harness: str) -> list[tuple[str, str]]:
    rows = {
        "Target": report.target,
        "Server": report.server,
        "Command": report.command,
        "Agent": report.agent,
        "SDK": report.sdk,
        "Release": report.release_note or report.release,
        "Suite": report.suite,
        "Harness": f"{harness}, documents {report.revision}",
        "Played": f"{report.started} in {report.took:.1f} s" if report.started else "",
        **{f"Time {one.step or one.name}": one.words() for one in report.times},
        "Sequences": "; ".join(
            line
            for fuzz in report.fuzz
            for search in fuzz["searches"]
            for line in coverage_lines(search.get("coverage", ()))
        ),
    }
    return [(name, value) for name, value in rows.items() if value]


def _bars(report: Report, book: Book) -> list[Bar]:
    placements = [placement for race in report.races for placement in race.placements]
    return [
        bar
        for bar in (
            _bar("requirements", [verdict for verdict, *_ in _requirement_rows(report, book)]),
            _bar("rules", [_rule_word(rule, report) for rule in report.rules]),
            _bar("scenarios", [str(scenario.verdict) for scenario in report.scenarios]),
            _bar("races", [str(race.verdict) for race in report.races]),
            _bar("placements", [str(placement.verdict) for placement in placements]),
        )
        if bar.total
    ]


def _bar(name: str, words: Sequence[str]) -> Bar:
    counts, parts, left = Counter(words), list[tuple[str, int, float, float]](), 0.0
    for word in _ORDER:
        if counts[word]:
            width = 1000 * counts[word] / len(words)
            parts.append((word, counts[word], round(left, 2), round(width, 2)))
            left += width
    return Bar(name, len(words), tuple(parts))


def _rule_word(rule: Any, report: Report) -> str:
    counts = rule.verdict is not Verdict.FAIL or is_red(rule, strict=report.strict)
    return str(rule.verdict if counts else gravest_level(rule))


def _requirement_rows(
    report: Report, book: Book
) -> Iterable[tuple[str, str, str, tuple[str, ...]]]:
    for requirement in book.requirements:
        if not binds_clients_only(requirement):
            unseen = _OTHER_SURFACE if requirement.rules else _NO_RULE
            verdict = report.requirements.get(requirement.id, unseen)
            yield verdict, requirement.id, requirement.clause.statement, requirement.rules


def _areas(report: Report, book: Book) -> list[Area]:
    """Return the areas with what is wrong first, then by name."""
    by_area: dict[str, list[tuple[str, str, str, tuple[str, ...]]]] = defaultdict(list)
    for row in _requirement_rows(report, book):
        by_area[row[1].partition(".")[0]].append(row)
    areas = [
        Area(name, Counter(row[0] for row in rows), tuple(sorted(rows, key=_by_order)))
        for name, rows in by_area.items()
    ]
    return sorted(areas, key=lambda area: (*_wrongs(area.counts), area.name))


def _by_order(row: tuple[str, str, str, tuple[str, ...]]) -> tuple[int, str]:
    return _ORDER.index(row[0]), row[1]


def _wrongs(counts: Mapping[str, int]) -> tuple[int, ...]:
    is_judged = any(counts.get(word) for word in _ORDER if word not in _UNJUDGED)
    return *(-counts.get(word, 0) for word in _ORDER[:3]), not is_judged


def _rules(report: Report) -> list[tuple[str, Any]]:
    rows = [(_rule_word(rule, report), rule) for rule in report.rules]
    return sorted(rows, key=lambda row: (_ORDER.index(row[0]), row[1].id))


def _plays(report: Report, facts: Mapping[str, ScenarioFacts]) -> list[Play]:
    """Return the scenarios and races: what failed or broke a rule first, then in their order."""
    broken: dict[str, list[str]] = defaultdict(list)
    for rule in report.rules:
        if is_red(rule, strict=report.strict):
            for name in dict.fromkeys(rule.broken_in):
                broken[name].append(rule.id)
    rows = [
        Play(
            one.id,
            one.title,
            str(one.verdict),
            one.reason,
            one.seconds,
            one.id.partition("/")[0],
            facts.get(one.id, ScenarioFacts()),
            near_path(one.path),
            _repeat(report, one.path, one.id),
            one.trace,
            one.runs,
            one.failed_runs,
            tuple(broken[one.id]),
            lane=one.lane,
            began=one.began,
            replayed=one.replayed,
        )
        for one in report.scenarios
    ]
    rows += [
        Play(
            one.id,
            f"{one.action} at each position",
            str(one.verdict),
            one.reason,
            sum(placement.seconds for placement in one.placements),
            one.scenario.partition("/")[0],
            facts.get(one.id, ScenarioFacts()),
            near_path(one.path),
            _repeat(report, one.path, one.scenario, one.action),
            placements=one.placements,
            lane=one.lane,
            began=one.began,
            replayed=one.replayed,
        )
        for one in report.races
    ]
    return sorted(rows, key=_severity)


def _severity(play: Play) -> int:
    return 0 if play.verdict in ("FAIL", "ERROR") else 1 if play.broken else 2


def _repeat(report: Report, path: str, scenario: str, race: str = "") -> str:
    words = [scenario_argument(path, scenario)]
    return replay_command(report.programs, [surface_of(scenario)], words, race=race)


def _choices(plays: Sequence[Play], report: Report) -> dict[str, list[str]]:
    """Return the values of each filter."""
    judged = [rule.id for rule in report.rules if rule.scenarios]
    return {
        "area": sorted({play.area for play in plays}),
        "capability": sorted({need for play in plays for need in play.facts.needs}),
        "tag": sorted({tag for play in plays for tag in play.facts.tags}),
        "rule": sorted(judged),
    }


def _index(report: Report, plays: Sequence[Play]) -> dict[str, Any]:
    """Return what the script filters by: the numbers of the scenarios that each rule judged."""
    numbers = {play.id: number for number, play in enumerate(plays)}
    return {
        "rules": {
            rule.id: [numbers[name] for name in dict.fromkeys(rule.scenarios) if name in numbers]
            for rule in report.rules
            if rule.scenarios
        },
    }


def _slowest(plays: Sequence[Play]) -> list[tuple[Play, float]]:
    """Return the slowest plays with their share of the slowest one, of 1,000."""
    ranked = sorted(plays, key=lambda play: -play.seconds)[:MAX_SLOWEST]
    longest = max((play.seconds for play in ranked), default=0.0) or 1.0
    return [(play, round(1000 * play.seconds / longest, 1)) for play in ranked if play.seconds]
