"""Repeated timeouts with one cause: scenarios that end in the same silence.

A server in which one thing hangs (all approvals, every interrupt) would cost its bounds in each
scenario that needs it. So each scenario is described by its traits, and the traits of scenarios
that came to their end are known to work. The other traits of a silent scenario are suspect.

When two scenarios (`SCENARIOS_TO_SUSPECT`) with common suspect traits timed out waiting for the
same message, others with all of these traits wait only a short bound for it. A timeout for anything
else is repeated with the full bound. At the end of the run one of the hurried scenarios is played
with the full bound: the finding says whether that confirmed the others. A notification for which
two scenarios timed out, and that no scenario got, is suspect by itself, whatever else they have in
common.

Nothing is concluded from a trait that has worked anywhere, from silences of different kinds, or if
only waits and the like are common, but no need, method, approval or action; as more scenarios come
to their end, less is suspect. A silence that a baseline knows does not count.

Which two scenarios wait the full bound depends on their order. All of them are played and judged in
any case.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from harness.judge.verdict import Verdict
from harness.play.run import Run
from harness.play.session.first_turn import unanswered_method
from harness.protocol.values import dig
from harness.report.results.outcome import Finding, ScenarioOutcome
from harness.scenario.client_steps import (
    METHOD_OF_STEP,
    AnswerStep,
    NotifyStep,
    RequestStep,
    WaitStep,
)
from harness.scenario.loader import Loaded
from harness.scenario.steps.wait_targets import ANSWER, awaited_notification_kind, notification_kind
from harness.trace.frame import Kind
from harness.trace.marks import EndingBegins, Settled, StepBegins

SAME_SILENCE = "liveness.same-silence"
SCENARIOS_TO_SUSPECT = 2
"""Scenarios that must end in the same silence before others get a short bound."""
MIN_SHORT_SECONDS = 0.5
# The short bound, as a multiple of the longest wait that succeeded.
SHORT_BOUND_FACTOR = 3.0
MAX_NAMES_LISTED = 5
# Steps that send one method, without those that nearly every scenario has.
_METHOD_OF_STEP = {step: method for step, method in METHOD_OF_STEP.items() if "start" not in step}
_NOTIFICATION = "the server's "
"""Prefix of the trait of a scenario that waits for a notification."""
# Prefixes of specific traits; others only show how scenarios are written.
_SPECIFIC_TRAITS = ("the need ", "the request ", "the action ", "an answer to ")
_SILENCE_FINDINGS = ("scenario.timeout", "liveness.turn-does-not-end")


@dataclass(frozen=True, slots=True)
class Silent:
    """A scenario, or a placement, that timed out in silence: what it waited for, and its traits.

    `notification` is the awaited notification in the form of `notification_kind`, "" for none.
    """

    name: str
    awaited_words: str
    traits: frozenset[str]
    notification: str = ""


@dataclass(slots=True)
class Suspicion:
    """A message that probably never arrives: the scenarios that showed it, and their common traits.

    `short_bound` is in seconds. `hurried_scenarios` timed out with it; `is_confirmed` is None until
    one of them was played with the full bound.
    """

    awaited_words: str
    seen_in: tuple[str, ...]
    common: frozenset[str]
    short_bound: float
    hurried_scenarios: list[Loaded] = field(default_factory=list[Loaded])
    is_confirmed: bool | None = None

    def finding(self) -> Finding:
        """Return the finding about all of these silences."""
        names = [scenario.id for scenario in self.hurried_scenarios]
        message = f"timed out waiting for {self.awaited_words}, in {', '.join(self.seen_in)}"
        if names:
            listed = ", ".join(names[:MAX_NAMES_LISTED])
            more = f" and {len(names) - MAX_NAMES_LISTED} more" * (len(names) > MAX_NAMES_LISTED)
            message += f"; {listed}{more} waited {self.short_bound:g} s only"
        if self.is_confirmed is False:
            message += (
                f", but {names[-1]}, played again with the full bound, did not time out: "
                "play them with --keep-going"
            )
        elif self.is_confirmed:
            message += f", confirmed in {names[-1]} with the full bound"
        message += (
            f"; nothing that has {_list_traits(self.common)} came to its end; --keep-going waits "
            "the full bound everywhere, --timeout-scale 3 gives a slow server more time"
        )
        return Finding(SAME_SILENCE, message, kind=self.awaited_words)


class Silences:
    """Timeouts of a run and their common causes, fed by `note` and queried by `suspicion`."""

    def __init__(self) -> None:
        self._working_traits: set[str] = set()
        self._silent_scenarios: list[Silent] = []
        self._longest_wait = 0.0
        self._suspicions: dict[str, Suspicion] = {}

    def note(
        self,
        loaded: Loaded,
        traits: frozenset[str],
        run: Run,
        outcome: ScenarioOutcome,
        *,
        alone: bool = True,
    ) -> None:
        """Record a scenario that was played and judged.

        A silence while other scenarios ran, not `alone`, may be caused by them: it counts only for
        a notification that a scenario alone did not get either.
        """
        self.note_working_traits(run, traits)
        counts = alone or self.never_came(run.awaited_notification)
        # Of several plays of a scenario, the last one counts.
        self._silent_scenarios = [
            scenario for scenario in self._silent_scenarios if scenario.name != loaded.id
        ]
        for suspicion in self._suspicions.values():
            suspicion.hurried_scenarios = [
                scenario for scenario in suspicion.hurried_scenarios if scenario.id != loaded.id
            ]
        if outcome.verdict is not Verdict.FAIL or not fell_silent(outcome):
            return
        suspicion = next(
            (
                known
                for known in map(self._suspicions.get, awaited_variants(run))
                if known is not None
            ),
            None,
        )
        if run.is_hurried and suspicion is not None:
            suspicion.hurried_scenarios.append(loaded)
        elif counts:
            silent = Silent(loaded.id, awaited_words(run), traits, run.awaited_notification)
            self._silent_scenarios.append(silent)

    def never_came(self, notification: str) -> bool:
        """Return whether a scenario timed out for this notification, and none ever got it."""
        waited = any(scenario.notification == notification for scenario in self._silent_scenarios)
        return (
            bool(notification)
            and waited
            and f"{_NOTIFICATION}{notification}" not in self._working_traits
        )

    def note_working_traits(self, run: Run, traits: frozenset[str]) -> None:
        """Record that a run's traits work, if it came to its end with nothing missing."""
        self._longest_wait = max(self._longest_wait, longest_wait(run))
        self._working_traits |= {f"{_NOTIFICATION}{name}" for name in notifications_in(run)}
        if run.unmet is None and run.is_complete and not any(run.trace.marks_of(Settled)):
            self._working_traits |= traits

    def suspicion(self, traits: frozenset[str]) -> Suspicion | None:
        """Return the suspicion that applies to a scenario with these traits, or None."""
        for trait in sorted(traits - self._working_traits):
            notification = (
                trait.removeprefix(_NOTIFICATION) if trait.startswith(_NOTIFICATION) else ""
            )
            group = [
                scenario
                for scenario in self._silent_scenarios
                if notification and scenario.notification == notification
            ]
            if len(group) >= SCENARIOS_TO_SUSPECT:
                return self._suspicion_of(notification, group, frozenset({trait}))
        alike: dict[tuple[str, str], list[Silent]] = defaultdict(list)
        for silent in self._silent_scenarios:
            for trait in (silent.traits & traits) - self._working_traits:
                alike[silent.awaited_words, trait].append(silent)
        for group in alike.values():
            common = frozenset(group[0].traits).intersection(*(member.traits for member in group))
            common -= self._working_traits
            is_specific = any(trait.startswith(_SPECIFIC_TRAITS) for trait in common)
            if len(group) >= SCENARIOS_TO_SUSPECT and common <= traits and is_specific:
                return self._suspicion_of(group[0].awaited_words, group, common)
        return None

    def _suspicion_of(
        self, waited_for: str, silent_scenarios: list[Silent], common: frozenset[str]
    ) -> Suspicion:
        short = max(MIN_SHORT_SECONDS, round(SHORT_BOUND_FACTOR * self._longest_wait, 1))
        if waited_for not in self._suspicions:
            names = tuple(scenario.name for scenario in silent_scenarios)
            self._suspicions[waited_for] = Suspicion(waited_for, names, common, short)
        suspicion = self._suspicions[waited_for]
        suspicion.short_bound = max(suspicion.short_bound, short)
        return suspicion

    def take_unconfirmed(self) -> list[Suspicion]:
        """Return the suspicions with hurried scenarios that failed, and forget all suspicions."""
        hurrying = [
            suspicion for suspicion in self._suspicions.values() if suspicion.hurried_scenarios
        ]
        self._suspicions.clear()
        return hurrying


def longest_wait(run: Run) -> float:
    """Return the seconds of the longest completed step.

    Restarts are left out: the start of a process says nothing about later waits.
    """
    begun = [(mark.at, mark.body.name) for mark in run.trace.marks_of(StepBegins)]
    ended = [(mark.at, "") for mark in run.trace.marks_of(EndingBegins)]
    steps = pairwise(begun + (ended[:1] if run.unmet is None else []))
    return max((end - start for (start, name), (end, _) in steps if name != "restart"), default=0.0)


def fell_silent(outcome: ScenarioOutcome) -> bool:
    """Return whether a wait reached its bound; not if a baseline knows the timeout."""
    return any(finding.id in _SILENCE_FINDINGS and finding.counts for finding in outcome.findings)


def awaited_words(run: Run) -> str:
    """Describe what a silent run waited for, in words that are the same for all scenarios."""
    unmet = run.unmet
    if unmet is None:
        return "the server to come to rest"
    if unmet.wait_target == ANSWER:
        return f"an answer to {unanswered_method(run) or 'a request'}"
    return unmet.wait_target.kind or "the scenario's end"


def awaited_variants(run: Run) -> tuple[str, ...]:
    """Return `awaited_words` of a silent run, and the awaited notification without its details."""
    notification = run.awaited_notification
    return (awaited_words(run), notification) if notification else (awaited_words(run),)


def notifications_in(run: Run) -> set[str]:
    """Return the kinds of all server notifications, with and without their item type."""
    names: set[str] = set()
    for frame in run.trace.frames:
        if frame.kind is Kind.NOTIFICATION and frame.from_target:
            names.add(notification_kind(frame.method))
            names.add(notification_kind(frame.method, dig(frame.params, "item", "type")))
    return names


def traits_of(loaded: Loaded) -> frozenset[str]:
    """Return the traits of a scenario: needs, settings, steps, methods, kinds of model parts."""
    scenario = loaded.scenario
    traits = {f"the need {need}" for need in scenario.needs}
    settings = scenario.settings.model_dump(exclude_none=True)
    traits |= {f"{name} {value}" for name, value in settings.items() if isinstance(value, str)}
    traits |= {"a configuration"} if scenario.config else set()
    traits |= {"a name of the client"} if scenario.client_name else set()
    names: list[str] = []
    for step in scenario.steps:
        kind = next(iter(type(step).model_fields))
        names.append(kind)
        match step:
            case RequestStep(request=body):
                traits.add(f"the request {body.method}")
            case NotifyStep(notify=body):
                traits.add(f"the notification {body.method}")
            case AnswerStep(answer=body):
                traits.add(f"an answer to {body.to}")
            case WaitStep(wait=body):
                traits.add(f"a wait for {body.awaited_kinds[0]}")
                if isinstance(body.notification, str):
                    notification = awaited_notification_kind(body.notification, body.where)
                    traits.add(f"{_NOTIFICATION}{notification}")
            case _:
                traits.add(
                    f"the request {_METHOD_OF_STEP[kind]}"
                    if kind in _METHOD_OF_STEP
                    else f"the step {kind}"
                )
    traits |= {
        f"several {kind}" for kind in ("start_thread", "start_turn") if names.count(kind) > 1
    }
    for script in scenario.scripts().values():
        for model_step in script:
            traits |= {f"the model's {kind}" for kind in model_step.model_fields_set}
            parts = model_step.reply or ()
            traits |= {f"the model's {next(iter(type(part).model_fields))}" for part in parts}
    return frozenset(traits)


def _list_traits(traits: Iterable[str]) -> str:
    """Return the traits as one text, the most specific first; at most three are named."""
    ranked = sorted(traits, key=lambda trait: (not trait.startswith(_SPECIFIC_TRAITS), trait))
    more = f" and {len(ranked) - 3} more" if len(ranked) > 3 else ""
    return ", ".join(ranked[:3]) + more
