"""Verdicts that differ between two runs: of rules, of scenarios, and of capabilities.

A scenario that only one of the runs played says nothing about the other, so a rule is compared by
the scenarios that both played.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.judge.verdict import GRAVITY, Level, Verdict
from harness.report.compare.values import NO_PLACE, PLAYED, Change, Kind, Run, TracePlace
from harness.report.results.outcome import UNSTEADY
from harness.report.results.report import Proof, RuleResult, ScenarioResult

_BROKEN = (Verdict.FAIL, Verdict.KNOWN, Verdict.ERROR)
_LEVELS = (Level.INFO, Level.SHOULD, Level.MUST)
# Rules that judge the harness itself.
_HARNESS_PREFIX = "harness."
# Ids that mean nothing to a reader, and differ in every run.
_ID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(thr|turn)_\d+\b")
# The folder of one run, as in `/home/me/project/.harness/run/123-main-2/work4/notes.txt`.
_RUN_FOLDER = re.compile(r"/[^\s\"']*/run/\d+-[\w-]+/\w+/")
# Proofs of an unsteady violation in one run that rule out chance.
MIN_PROOFS = 3
# A worse verdict of these weighs enough to fail the comparison; INFO never fails a run either.
_COUNTED_LEVELS = (Level.MUST, Level.SHOULD)


@dataclass(frozen=True, slots=True)
class _CommonVerdict:
    """A rule's verdict in the scenarios that both runs played, with its proofs."""

    verdict: Verdict
    level: Level
    proofs: tuple[Proof, ...]
    scenarios: tuple[str, ...]

    @property
    def word(self) -> str:
        """Return the verdict; of a violation that is not a MUST, with its level: `FAIL (INFO)`."""
        if self.verdict in (Verdict.FAIL, Verdict.KNOWN) and self.level is not Level.MUST:
            return f"{self.verdict} ({self.level})"
        return str(self.verdict)

    @property
    def weight(self) -> int:
        """Return how bad the verdict is: 0 if nothing is broken."""
        return 1 + _LEVELS.index(self.level) if self.verdict in _BROKEN else 0


def rule_changes(before: Run, after: Run) -> Iterator[tuple[Change, bool]]:
    """Yield the rules whose verdict differs, each with whether chance may have made it.

    A rule that only one of the runs knows is left out.
    """
    common = before.played_scenarios & after.played_scenarios
    later = {rule.id: rule for rule in after.report.rules}
    for rule in before.report.rules:
        if rule.id not in later or rule.id.startswith(_HARNESS_PREFIX):
            continue
        first, second = (
            _judge_common(rule, before, common),
            _judge_common(later[rule.id], after, common),
        )
        kind = _kind(first, second)
        if kind is None:
            continue
        places = _evidence(first, before), _evidence(second, after)
        worse = second if second.weight > first.weight else first
        change = Change(
            kind,
            f"{rule.id}: {rule.title}",
            first.word,
            second.word,
            _explain(first, second),
            kind is Kind.REGRESSED and second.level in _COUNTED_LEVELS,
            worse.verdict is Verdict.KNOWN,
            *_comparable_places(places, first, second, (before, after)),
        )
        is_same = bool(after.report.server) and before.report.server == after.report.server
        lasting = _kind(
            _without_chance(first, unsteady_scenarios(before), is_same_server=is_same),
            _without_chance(second, unsteady_scenarios(after), is_same_server=is_same),
        )
        yield change, lasting is None


def _judge_common(rule: RuleResult, run: Run, common: set[str]) -> _CommonVerdict:
    """Return a rule's verdict in the common scenarios, without placements of races."""
    if common == run.played_scenarios:
        proofs = tuple(proof for proof in rule.proofs if not proof.race)
        scenarios = tuple(rule.scenarios)
    else:
        proofs = tuple(
            proof for proof in rule.proofs if not proof.race and proof.scenario in common
        )
        scenarios = tuple(scenario for scenario in rule.scenarios if scenario in common)
    if not scenarios:
        idle = rule.verdict if rule.verdict is Verdict.NOT_APPLICABLE else Verdict.NOT_EXERCISED
        return _CommonVerdict(idle, rule.level, (), ())
    broken = [proof for proof in proofs if proof.row.verdict in _BROKEN]
    if not broken and (rule.verdict is Verdict.KNOWN or set(rule.broken_in) & common):
        # A report proves a subject once: here, by a scenario that only this run played.
        broken = [proof for proof in rule.proofs if proof.row.verdict in _BROKEN]
    return _verdict_of(broken, rule.level, scenarios)


def _verdict_of(
    broken: Sequence[Proof], level: Level, scenarios: tuple[str, ...]
) -> _CommonVerdict:
    """Return the verdict that these violations give, PASS with this level if there are none."""
    if not broken:
        return _CommonVerdict(Verdict.PASS, level, (), scenarios)
    # The gravest first: it is what the verdict is about. One that counts comes before a known one.
    proofs = sorted(
        broken,
        key=lambda proof: (GRAVITY[proof.row.verdict], _LEVELS.index(proof.row.level)),
        reverse=True,
    )
    worst = proofs[0].row
    return _CommonVerdict(worst.verdict, worst.level, tuple(proofs), scenarios)


def _kind(first: _CommonVerdict, second: _CommonVerdict) -> Kind | None:
    if not first.scenarios and not second.scenarios:
        return None
    if not first.scenarios:
        return Kind.BROKEN_ANEW if second.weight else None
    if not second.scenarios:
        return Kind.UNJUDGED
    if second.weight > first.weight:
        return Kind.REGRESSED
    return Kind.MENDED if second.weight < first.weight else None


def _without_chance(
    judged: _CommonVerdict, shaky: set[str], *, is_same_server: bool
) -> _CommonVerdict:
    """Return the verdict without the few violations that need not occur in every run.

    Those are flaky ones, ones in `shaky` scenarios, where a repetition of the run differed, and, if
    both runs were on one release of one server, ones of level INFO: a choice that it makes anew
    each time. `MIN_PROOFS` of them rule out chance.
    """
    chancy = [
        proof
        for proof in judged.proofs
        if proof.flaky
        or proof.scenario in shaky
        or (is_same_server and proof.row.level is Level.INFO)
    ]
    if not 0 < len(chancy) < MIN_PROOFS:
        return judged
    return _verdict_of(
        [proof for proof in judged.proofs if proof not in chancy], judged.level, judged.scenarios
    )


def _explain(first: _CommonVerdict, second: _CommonVerdict) -> str:
    """Return the gravest violation in words; if both runs have one, how the two differ."""
    if not (first.proofs and second.proofs):
        return _describe_violation(second if second.weight > first.weight else first)
    was, now = _describe_violation(first), _describe_violation(second)
    if was == now:
        return f"the same finding is judged as {second.level} now: judge both runs anew; {now}"
    return (
        f"before, {first.level} of {_clauses(first)}: {was}; "
        f"after, {second.level} of {_clauses(second)}: {now}"
    )


def _clauses(judged: _CommonVerdict) -> str:
    row = judged.proofs[0].row
    return ", ".join(row.clauses) or row.rule


def _describe_violation(judged: _CommonVerdict) -> str:
    if not judged.proofs:
        return ""
    row = judged.proofs[0].row
    more = f" (+{len(judged.proofs) - 1} more)" if len(judged.proofs) > 1 else ""
    words = f"{row.subject}: expected {row.expected}; actual {row.actual}{more}"
    return _ID.sub("…", _RUN_FOLDER.sub("…/", words))


def _evidence(judged: _CommonVerdict, run: Run) -> TracePlace:
    if judged.proofs:
        proof = judged.proofs[0]
        # The next run of the profile overwrites the trace that the proof names.
        kept_trace = _trace_of(run, [proof.scenario]).trace
        return TracePlace(kept_trace or proof.trace, min(proof.row.frames, default=-1))
    return _trace_of(run, judged.scenarios[:1])


def _comparable_places(
    places: tuple[TracePlace, TracePlace],
    first: _CommonVerdict,
    second: _CommonVerdict,
    runs: tuple[Run, Run],
) -> tuple[TracePlace, TracePlace]:
    """Return the evidence of both sides, from the same scenario if one has no finding to show."""
    if first.proofs and not second.proofs:
        same = _trace_of(runs[1], [first.proofs[0].scenario])
        return places[0], same if same is not NO_PLACE else places[1]
    if second.proofs and not first.proofs:
        same = _trace_of(runs[0], [second.proofs[0].scenario])
        return same if same is not NO_PLACE else places[0], places[1]
    return places


def _trace_of(run: Run, scenarios: Iterable[str]) -> TracePlace:
    traces = {scenario.id: scenario.trace for scenario in run.report.scenarios}
    return next(
        (TracePlace(traces[scenario]) for scenario in scenarios if traces.get(scenario)), NO_PLACE
    )


def scenario_changes(before: Run, after: Run) -> Iterator[tuple[Change, bool]]:
    """Yield the scenarios that failed in one run only, each with whether it may be chance."""
    later = {scenario.id: scenario for scenario in after.report.scenarios}
    shaky = {run.name: unsteady_scenarios(run) for run in (before, after)}
    for first in before.report.scenarios:
        second = later.get(first.id)
        if second is None or first.verdict not in PLAYED or second.verdict not in PLAYED:
            continue
        was, now = (result.verdict in _BROKEN for result in (first, second))
        if was == now:
            continue
        change = Change(
            Kind.REGRESSED if now else Kind.MENDED,
            f"scenario {first.id}: {first.title}",
            str(first.verdict),
            str(second.verdict),
            (second if now else first).reason,
            now,
            (second if now else first).verdict is Verdict.KNOWN,
            TracePlace(first.trace),
            TracePlace(second.trace),
        )
        yield change, first.id in shaky[before.name] or first.id in shaky[after.name]


def unsteady_scenarios(run: Run) -> set[str]:
    """Return the scenarios in which a repetition within the run differed."""
    return {
        scenario.id
        for scenario in run.report.scenarios
        if any(finding == UNSTEADY for finding, _, _ in scenario.messages)
    }


def capability_changes(before: Run, after: Run) -> Iterator[Change]:
    """Yield the capabilities that only one server offers, as the played scenarios show."""
    first, second = (
        {scenario.id: scenario for scenario in run.report.scenarios} for run in (before, after)
    )
    gone: dict[str, list[str]] = defaultdict(list)
    new: dict[str, list[str]] = defaultdict(list)
    for name in sorted(first.keys() & second.keys()):
        for capability in set(second[name].missing) - set(first[name].missing):
            if _has_all_capabilities(first[name]):
                gone[capability].append(name)
        for capability in set(first[name].missing) - set(second[name].missing):
            if _has_all_capabilities(second[name]):
                new[capability].append(name)
    for kind, scenarios in ((Kind.CAPABILITY_GONE, gone), (Kind.CAPABILITY_NEW, new)):
        for capability, names in sorted(scenarios.items()):
            offered, missing = "offered", "not offered"
            lost = kind is Kind.CAPABILITY_GONE
            yield Change(
                kind,
                f"capability {capability}",
                offered if lost else missing,
                missing if lost else offered,
                f"{len(names)} scenarios need it, such as {names[0]}",
                lost,
                shown_before=TracePlace(first[names[0]].trace),
                shown_after=TracePlace(second[names[0]].trace),
            )


def _has_all_capabilities(scenario: ScenarioResult) -> bool:
    """Return whether a scenario was played to its end, with all capabilities offered."""
    return scenario.verdict in PLAYED and not scenario.missing
