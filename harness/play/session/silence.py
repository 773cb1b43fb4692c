"""Repeated timeouts with one cause: scenarios that end in the same silence.

A server in which one thing hangs (all approvals, every interrupt) would cost its bounds in each
scenario that needs it. So it is remembered what each scenario is made of (its traits), and which
traits a scenario had that came to its end. What a silent scenario has and none of those is suspect.
When two scenarios (`SCENARIOS_TO_SUSPECT`) that have something suspect in common waited in vain for
the same, another that has all of it too waits a short bound only. Whatever else it waits for in
vain is waited for with the full bound. At the end of the run one of those that waited shortly is
played with the full bound: the finding says whether that confirmed the others.

A notification that two scenarios waited for in vain, and that came in none, is suspect by itself,
whatever else they have in common.

Nothing is concluded from a trait that has worked anywhere, from silences of different kinds, or
where only waits and the like are common, but no need, no method, no question and no action; as more
scenarios come to their end, less is suspect. A silence that a baseline knows does not count.

Which two scenarios wait the full bound depends on their order. All of them are played and judged in
any case.

A server with which no turn can be had at all is `first_turn`'s; playing is the session's.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from harness.judge.verdict import Verdict
from harness.play.run import Run
from harness.play.session.first_turn import unanswered
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
from harness.scenario.steps.awaited import ANSWER, notification_of, notification_wanted
from harness.trace.frame import Kind
from harness.trace.marks import EndingBegins, Settled, StepBegins

SAME_SILENCE = "liveness.same-silence"
SCENARIOS_TO_SUSPECT = 2
"""How many scenarios end in the same silence before others wait for the same shortly."""
MIN_SHORT_SECONDS = 0.5
# A short wait is at least so many times as long as the longest wait that was not in vain.
SHORT_OVER_LONGEST = 3.0
MAX_NAMES_LISTED = 5
# The steps that are requests of one method; nearly every scenario has those that start something.
_METHODS = {step: method for step, method in METHOD_OF_STEP.items() if "start" not in step}
_NOTIFICATION = "the server's "
"""Begins the trait of a scenario that waits for a notification."""
# What several scenarios must have in common, for it to be more than how scenarios are written.
_TELLING = ("the need ", "the request ", "the action ", "an answer to ")
_WAITED = ("scenario.timeout", "liveness.turn-does-not-end")


@dataclass(frozen=True, slots=True)
class Silent:
    """A scenario, or a placement, that ended in silence: what it waited for, what it is made of.

    `notification` is what it waited for as `notification_of` has it, "" if that was none.
    """

    name: str
    awaited: str
    traits: frozenset[str]
    notification: str = ""


@dataclass(slots=True)
class Suspicion:
    """Something that probably never comes: which scenarios showed it, and what they share.

    `hurried` are the scenarios that waited for it shortly, and in vain; `confirmed` is None until
    one of them was played with the full bound.
    """

    awaited: str
    shown: tuple[str, ...]
    common: frozenset[str]
    short: float
    hurried: list[Loaded] = field(default_factory=list[Loaded])
    confirmed: bool | None = None

    def finding(self) -> Finding:
        """Return the finding about all of these silences."""
        names = [one.id for one in self.hurried]
        message = f"waited in vain for {self.awaited}; so in {', '.join(self.shown)}"
        if names:
            listed = ", ".join(names[:MAX_NAMES_LISTED])
            more = f" and {len(names) - MAX_NAMES_LISTED} more" * (len(names) > MAX_NAMES_LISTED)
            message += f"; {listed}{more} waited {self.short:g} s only"
        if self.confirmed is False:
            message += (
                f", but {names[-1]}, played again with the full bound, did not wait in vain: "
                "play them with --keep-going"
            )
        elif self.confirmed:
            message += f", confirmed in {names[-1]} with the full bound"
        message += (
            f"; nothing that has {_listed(self.common)} came to its end; --keep-going waits the "
            "full bound everywhere, --timeout-scale 3 gives a slow server more time"
        )
        return Finding(SAME_SILENCE, message, kind=self.awaited)


class Silences:
    """The memory of a run: give it each outcome with `note`, ask it with `suspicion`."""

    def __init__(self) -> None:
        self._worked: set[str] = set()
        self._silent: list[Silent] = []
        self._longest = 0.0
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
        """Remember a scenario that was played and judged.

        A silence beside other scenarios, not `alone`, may be their doing: it counts only for what
        never came to one that was played alone either.
        """
        self.worked(run, traits)
        counts = alone or self.never_came(run.awaited_notification)
        # A scenario is one, however often it is played: its last play counts.
        self._silent = [one for one in self._silent if one.name != loaded.id]
        for suspicion in self._suspicions.values():
            suspicion.hurried = [one for one in suspicion.hurried if one.id != loaded.id]
        if outcome.verdict is not Verdict.FAIL or not fell_silent(outcome):
            return
        suspicion = next(
            (one for one in map(self._suspicions.get, awaited_in(run)) if one is not None), None
        )
        if run.is_hurried and suspicion is not None:
            suspicion.hurried.append(loaded)
        elif counts:
            silent = Silent(loaded.id, awaited(run), traits, run.awaited_notification)
            self._silent.append(silent)

    def never_came(self, notification: str) -> bool:
        """Return whether a scenario that was played alone waited in vain for it, and it came in
        none.
        """
        waited = any(one.notification == notification for one in self._silent)
        return (
            bool(notification) and waited and f"{_NOTIFICATION}{notification}" not in self._worked
        )

    def worked(self, run: Run, traits: frozenset[str]) -> None:
        """Note that the traits of a run work which came to its end, with nothing owed."""
        self._longest = max(self._longest, longest_wait(run))
        self._worked |= {f"{_NOTIFICATION}{one}" for one in notifications_in(run)}
        if run.unmet is None and run.is_complete and not any(run.trace.marks_of(Settled)):
            self._worked |= traits

    def suspicion(self, traits: frozenset[str]) -> Suspicion | None:
        """Return what a scenario with these traits would probably wait for in vain."""
        for trait in sorted(traits - self._worked):
            wanted = trait.removeprefix(_NOTIFICATION) if trait.startswith(_NOTIFICATION) else ""
            shown = [one for one in self._silent if wanted and one.notification == wanted]
            if len(shown) >= SCENARIOS_TO_SUSPECT:
                return self._suspected(wanted, shown, frozenset({trait}))
        alike: dict[tuple[str, str], list[Silent]] = defaultdict(list)
        for one in self._silent:
            for trait in (one.traits & traits) - self._worked:
                alike[one.awaited, trait].append(one)
        for shown in alike.values():
            common = frozenset(shown[0].traits).intersection(*(one.traits for one in shown))
            common -= self._worked
            telling = any(one.startswith(_TELLING) for one in common)
            if len(shown) >= SCENARIOS_TO_SUSPECT and common <= traits and telling:
                return self._suspected(shown[0].awaited, shown, common)
        return None

    def _suspected(self, waited_for: str, shown: list[Silent], common: frozenset[str]) -> Suspicion:
        short = max(MIN_SHORT_SECONDS, round(SHORT_OVER_LONGEST * self._longest, 1))
        if waited_for not in self._suspicions:
            names = tuple(one.name for one in shown)
            self._suspicions[waited_for] = Suspicion(waited_for, names, common, short)
        found = self._suspicions[waited_for]
        found.short = max(found.short, short)
        return found

    def take_hurrying(self) -> list[Suspicion]:
        """Return, once, those because of which a scenario failed after a short wait."""
        hurrying = [one for one in self._suspicions.values() if one.hurried]
        self._suspicions.clear()
        return hurrying


def longest_wait(run: Run) -> float:
    """Return how long the longest step took, in seconds, of those that were done.

    A restart is not among them: the start of a process says nothing of how soon it speaks later.
    """
    begun = [(mark.at, mark.body.name) for mark in run.trace.marks_of(StepBegins)]
    ended = [(mark.at, "") for mark in run.trace.marks_of(EndingBegins)]
    steps = pairwise(begun + (ended[:1] if run.unmet is None else []))
    return max((end - start for (start, name), (end, _) in steps if name != "restart"), default=0.0)


def fell_silent(outcome: ScenarioOutcome) -> bool:
    """Return whether something was waited for up to a bound, in vain, and no baseline knows it."""
    return any(one.id in _WAITED and one.counts for one in outcome.findings)


def awaited(run: Run) -> str:
    """Return what a silent run waited for, in words that are equal in other scenarios."""
    unmet = run.unmet
    if unmet is None:
        return "the server to come to rest"
    if unmet.awaited == ANSWER:
        return f"an answer to {unanswered(run) or 'a request'}"
    return unmet.awaited.kind or "the scenario's end"


def awaited_in(run: Run) -> tuple[str, ...]:
    """Return what a silent run waited for: with all that a message must have, and without."""
    notification = run.awaited_notification
    return (awaited(run), notification) if notification else (awaited(run),)


def notifications_in(run: Run) -> set[str]:
    """Return all that the server told, as `notification_of` has it."""
    found: set[str] = set()
    for frame in run.trace.frames:
        if frame.kind is Kind.NOTIFICATION and frame.from_target:
            found.add(notification_of(frame.method))
            found.add(notification_of(frame.method, dig(frame.params, "item", "type")))
    return found


def traits_of(loaded: Loaded) -> frozenset[str]:
    """Return the traits of a scenario: needs, settings, steps, methods, what the model says."""
    scenario = loaded.scenario
    found = {f"the need {need}" for need in scenario.needs}
    settings = scenario.settings.model_dump(exclude_none=True)
    found |= {f"{name} {value}" for name, value in settings.items() if isinstance(value, str)}
    found |= {"a configuration"} if scenario.config else set()
    found |= {"a name of the client"} if scenario.client_name else set()
    names: list[str] = []
    for step in scenario.steps:
        kind = next(iter(type(step).model_fields))
        names.append(kind)
        match step:
            case RequestStep(request=body):
                found.add(f"the request {body.method}")
            case NotifyStep(notify=body):
                found.add(f"the notification {body.method}")
            case AnswerStep(answer=body):
                found.add(f"an answer to {body.to}")
            case WaitStep(wait=body):
                found.add(f"a wait for {body.what[0]}")
                if isinstance(body.notification, str):
                    wanted = notification_wanted(body.notification, body.where)
                    found.add(f"{_NOTIFICATION}{wanted}")
            case _:
                found.add(
                    f"the request {_METHODS[kind]}" if kind in _METHODS else f"the step {kind}"
                )
    found |= {f"several {kind}" for kind in ("start_thread", "start_turn") if names.count(kind) > 1}
    for script in scenario.scripts().values():
        for model_step in script:
            found |= {f"the model's {kind}" for kind in model_step.model_fields_set}
            parts = model_step.reply or ()
            found |= {f"the model's {next(iter(type(part).model_fields))}" for part in parts}
    return frozenset(found)


def _listed(traits: Iterable[str]) -> str:
    """The traits, those that say most first."""
    ranked = sorted(traits, key=lambda one: (not one.startswith(_TELLING), one))
    more = f" and {len(ranked) - 3} more" if len(ranked) > 3 else ""
    return ", ".join(ranked[:3]) + more
