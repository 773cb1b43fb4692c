"""Verdicts that differ between two runs: of rules, of scenarios, and what is offered.

What only one of the runs played says nothing about the other, so a rule is compared by the
scenarios that both played.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.judge.verdict import GRAVITY, Level, Verdict
from harness.report.compare.values import NOWHERE, PLAYED, Change, Kind, Run, Where
from harness.report.results.outcome import UNSTEADY
from harness.report.results.report import Proof, RuleResult, ScenarioResult

_BROKEN = (Verdict.FAIL, Verdict.KNOWN, Verdict.ERROR)
_LEVELS = (Level.INFO, Level.SHOULD, Level.MUST)
# Rules that judge the harness itself.
_OURS = "harness."
# Ids that say nothing to a reader, and are others in every run.
_ID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(thr|turn)_\d+\b")
# The folder of one run, as in `/home/me/project/.harness/run/123-main-2/work4/notes.txt`.
_PLACE = re.compile(r"/[^\s\"']*/run/\d+-[\w-]+/\w+/")
# What does not come in every run and came so often in one of them is no chance.
MIN_PROOFS = 3
# A worse verdict of these weighs enough to fail the comparison; INFO never fails a run either.
_WEIGHTY = (Level.MUST, Level.SHOULD)


@dataclass(frozen=True, slots=True)
class _Judged:
    """A rule's verdict in the scenarios that both runs played, with what shows it."""

    verdict: Verdict
    level: Level
    proofs: tuple[Proof, ...]
    scenarios: tuple[str, ...]

    @property
    def word(self) -> str:
        """ "FAIL", "FAIL (SHOULD)"."""
        if self.verdict in (Verdict.FAIL, Verdict.KNOWN) and self.level is not Level.MUST:
            return f"{self.verdict} ({self.level})"
        return str(self.verdict)

    @property
    def weight(self) -> int:
        """Return how bad it is: 0 if nothing is broken."""
        return 1 + _LEVELS.index(self.level) if self.verdict in _BROKEN else 0


def rule_changes(before: Run, after: Run) -> Iterator[tuple[Change, bool]]:
    """The rules whose verdict differs, each with whether chance may have made the difference.

    A rule that only one of the runs knows is left out.
    """
    common = before.played & after.played
    later = {rule.id: rule for rule in after.report.rules}
    for rule in before.report.rules:
        if rule.id not in later or rule.id.startswith(_OURS):
            continue
        first, second = _judged(rule, before, common), _judged(later[rule.id], after, common)
        kind = _kind(first, second)
        if kind is None:
            continue
        shown = _evidence(first, before), _evidence(second, after)
        worse = second if second.weight > first.weight else first
        change = Change(
            kind,
            f"{rule.id}: {rule.title}",
            first.word,
            second.word,
            _note(worse, rule.id, before),
            kind is Kind.REGRESSED and second.level in _WEIGHTY,
            *_alike(shown, first, second, (before, after)),
        )
        yield change, _by_chance((first, _shaky(before)), (second, _shaky(after)))


def _judged(rule: RuleResult, run: Run, common: set[str]) -> _Judged:
    """Return the verdict of the common scenarios on a rule; placements of races are left out."""
    if common == run.played:
        proofs = tuple(one for one in rule.proofs if not one.race)
        scenarios = tuple(rule.scenarios)
    else:
        proofs = tuple(one for one in rule.proofs if not one.race and one.scenario in common)
        scenarios = tuple(one for one in rule.scenarios if one in common)
    if not scenarios:
        idle = rule.verdict if rule.verdict is Verdict.NOT_APPLICABLE else Verdict.NOT_EXERCISED
        return _Judged(idle, rule.level, (), ())
    broken = [one for one in proofs if one.row.verdict in _BROKEN]
    if not broken and (rule.verdict is Verdict.KNOWN or set(rule.broken_in) & common):
        # A subject is proven once in a report: here, by a scenario that only this run played.
        broken = [one for one in rule.proofs if one.row.verdict in _BROKEN]
    if not broken:
        return _Judged(Verdict.PASS, rule.level, (), scenarios)
    worst = max((one.row.verdict for one in broken), key=GRAVITY.__getitem__)
    level = max((one.row.level for one in broken), key=_LEVELS.index)
    return _Judged(worst, level, tuple(broken), scenarios)


def _kind(first: _Judged, second: _Judged) -> Kind | None:
    if not first.scenarios and not second.scenarios:
        return None
    if not first.scenarios:
        return Kind.BROKEN_ANEW if second.weight else None
    if not second.scenarios:
        return Kind.UNJUDGED
    if second.weight > first.weight:
        return Kind.REGRESSED
    return Kind.MENDED if second.weight < first.weight else None


def _by_chance(first: tuple[_Judged, set[str]], second: tuple[_Judged, set[str]]) -> bool:
    """Return whether the little that is broken in one of them is known not to be so in every run.

    Beside each are the scenarios of which its run says that a repetition went otherwise.
    """
    return any(
        0 < len(one.proofs) < MIN_PROOFS
        and all(proof.flaky or proof.scenario in shaky for proof in one.proofs)
        and not other.proofs
        for (one, shaky), (other, _) in ((first, second), (second, first))
    )


def _note(worse: _Judged, rule_id: str, run: Run) -> str:
    if not worse.proofs:
        return ""
    row = worse.proofs[0].row
    more = f" (+{len(worse.proofs) - 1} more)" if len(worse.proofs) > 1 else ""
    told = f"{row.subject}: expected {row.expected}; actual {row.actual}{more}"
    return _ID.sub("…", _PLACE.sub("…/", told))


def _evidence(judged: _Judged, run: Run) -> Where:
    if judged.proofs:
        proof = judged.proofs[0]
        # The next run of the profile writes over the trace that the proof names.
        kept = _trace_of(run, [proof.scenario]).trace
        return Where(kept or proof.trace, min(proof.row.frames, default=-1))
    return _trace_of(run, judged.scenarios[:1])


def _alike(
    shown: tuple[Where, Where],
    first: _Judged,
    second: _Judged,
    runs: tuple[Run, Run],
) -> tuple[Where, Where]:
    """The evidence of both sides, from the same scenario where one side has no finding to show."""
    if first.proofs and not second.proofs:
        same = _trace_of(runs[1], [first.proofs[0].scenario])
        return shown[0], same if same is not NOWHERE else shown[1]
    if second.proofs and not first.proofs:
        same = _trace_of(runs[0], [second.proofs[0].scenario])
        return same if same is not NOWHERE else shown[0], shown[1]
    return shown


def _trace_of(run: Run, scenarios: Iterable[str]) -> Where:
    traces = {one.id: one.trace for one in run.report.scenarios}
    return next((Where(traces[one]) for one in scenarios if traces.get(one)), NOWHERE)


def scenario_changes(before: Run, after: Run) -> Iterator[tuple[Change, bool]]:
    """The scenarios that failed by themselves in one run only, each with whether by chance."""
    later = {one.id: one for one in after.report.scenarios}
    shaky = {run.name: _shaky(run) for run in (before, after)}
    for first in before.report.scenarios:
        second = later.get(first.id)
        if second is None or first.verdict not in PLAYED or second.verdict not in PLAYED:
            continue
        was, now = (one.verdict in _BROKEN for one in (first, second))
        if was == now:
            continue
        change = Change(
            Kind.REGRESSED if now else Kind.MENDED,
            f"scenario {first.id}: {first.title}",
            str(first.verdict),
            str(second.verdict),
            (second if now else first).reason,
            now,
            Where(first.trace),
            Where(second.trace),
        )
        yield change, first.id in shaky[before.name] or first.id in shaky[after.name]


def _shaky(run: Run) -> set[str]:
    """The scenarios of which a run itself says that a repetition went otherwise."""
    return {
        one.id
        for one in run.report.scenarios
        if any(finding == UNSTEADY for finding, _, _ in one.messages)
    }


def capability_changes(before: Run, after: Run) -> Iterator[Change]:
    """Give the features that only one server offers, by the scenarios that need them."""
    first, second = ({one.id: one for one in run.report.scenarios} for run in (before, after))
    gone: dict[str, list[str]] = defaultdict(list)
    new: dict[str, list[str]] = defaultdict(list)
    for name in sorted(first.keys() & second.keys()):
        for capability in set(second[name].missing) - set(first[name].missing):
            if _offered(first[name]):
                gone[capability].append(name)
        for capability in set(first[name].missing) - set(second[name].missing):
            if _offered(second[name]):
                new[capability].append(name)
    for kind, found in ((Kind.CAPABILITY_GONE, gone), (Kind.CAPABILITY_NEW, new)):
        for capability, names in sorted(found.items()):
            offered, missing = "offered", "not offered"
            lost = kind is Kind.CAPABILITY_GONE
            yield Change(
                kind,
                f"capability {capability}",
                offered if lost else missing,
                missing if lost else offered,
                f"{len(names)} scenarios need it, such as {names[0]}",
                lost,
                Where(first[names[0]].trace),
                Where(second[names[0]].trace),
            )


def _offered(scenario: ScenarioResult) -> bool:
    """Return whether a scenario was played to its end, and nothing was found missing."""
    return scenario.verdict in PLAYED and not scenario.missing
