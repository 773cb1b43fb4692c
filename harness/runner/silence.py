"""What a server waits for nobody to hear: scenarios that end in the same silence, again and again.

A server in which one thing hangs (all approvals, every interrupt) would cost its bounds in each
scenario that needs it. So a worker remembers what each scenario is made of (its traits), and which
traits a scenario had that came to its end. What a silent scenario has and none of those is suspect.
When the same was waited for in vain in three scenarios (`ENOUGH`) that have something suspect in
common, another that has all of it too is not played: it is NOT_EXERCISED, because of one finding.

Nothing is concluded from a trait that has worked anywhere, from silences of different kinds, or
where only waits and the like are common, but no need, no method, no question and no action; as more
scenarios come to their end, less is suspect. A silence that a baseline knows does not count: who
knows it wants the scenarios played.

Which scenario is the third depends on their order and on the worker: that is the one place where
the number of workers changes which scenarios are NOT_EXERCISED. Three of them fail in any case.

Here: traits, what is the same silence, what is blocked. Not here: a server with which no turn can
be had at all (firstturn), playing (session).
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from harness.judge.verdict import Verdict
from harness.results.outcome import Finding, ScenarioOutcome
from harness.runner.first_turn import unanswered
from harness.runner.run import Run
from harness.scenario.client_steps import (
    METHOD_OF_STEP,
    AnswerStep,
    NotifyStep,
    RequestStep,
    WaitStep,
)
from harness.scenario.loader import Loaded
from harness.scenario.steps.awaited import ANSWER
from harness.trace.marks import Settled

SAME_SILENCE = "liveness.same-silence"
# So many scenarios end in the same silence before others are not played because of it.
ENOUGH = 3
# The steps that are requests of one method; nearly every scenario has those that start something.
_METHODS = {step: method for step, method in METHOD_OF_STEP.items() if "start" not in step}
# What several scenarios must have in common, for it to be more than how scenarios are written.
_TELLING = ("the need ", "the request ", "the action ", "an answer to ")
_WAITED = ("scenario.timeout", "liveness.turn-does-not-end")


@dataclass(frozen=True, slots=True)
class Silent:
    """A scenario, or a placement, that ended in silence: what it waited for, what it is made of."""

    name: str
    awaited: str
    traits: frozenset[str]


class Silences:
    """One worker's memory. Tell it each outcome by `note`, ask it by `blocking`."""

    def __init__(self) -> None:
        self._worked: set[str] = set()
        self._silent: list[Silent] = []
        self.found: dict[str, Finding] = {}

    def note(self, name: str, traits: frozenset[str], run: Run, outcome: ScenarioOutcome) -> None:
        """A scenario was played and judged."""
        self.worked(run, traits)
        if outcome.verdict is Verdict.FAIL and fell_silent(outcome):
            self._silent.append(Silent(name, awaited(run), traits))

    def worked(self, run: Run, traits: frozenset[str]) -> None:
        """Where a run came to its end, and nothing was owed then, what it was made of works."""
        if run.unmet is None and run.whole and not any(run.trace.marks_of(Settled)):
            self._worked |= traits

    def blocking(self, traits: frozenset[str]) -> Finding | None:
        """The finding because of which what has these traits need not be played, if any."""
        alike: dict[tuple[str, str], list[Silent]] = defaultdict(list)
        for one in self._silent:
            for trait in (one.traits & traits) - self._worked:
                alike[one.awaited, trait].append(one)
        for shown in alike.values():
            common = frozenset(shown[0].traits).intersection(*(one.traits for one in shown))
            common -= self._worked
            telling = any(one.startswith(_TELLING) for one in common)
            if len(shown) >= ENOUGH and common <= traits and telling:
                return self._finding(shown, common)
        return None

    def _finding(self, shown: list[Silent], common: frozenset[str]) -> Finding:
        """One for each thing waited for; it is worded when it first stops something."""
        waited_for = shown[0].awaited
        if waited_for not in self.found:
            self.found[waited_for] = Finding(
                SAME_SILENCE,
                f"waited in vain for {waited_for}; so in {', '.join(one.name for one in shown)}; "
                f"nothing that has {_listed(common)} came to its end, and what else has it was not "
                "played; --keep-going plays it, --timeout-scale 3 gives a server that is only slow "
                "more time",
                kind=waited_for,
            )
        return self.found[waited_for]


def fell_silent(outcome: ScenarioOutcome) -> bool:
    """Whether something was waited for up to a bound, in vain, and no baseline knows it."""
    return any(one.id in _WAITED and one.counts for one in outcome.findings)


def awaited(run: Run) -> str:
    """What a silent run waited for, in words that are the same for the same in other scenarios."""
    unmet = run.unmet
    if unmet is None:
        return "the server to come to rest"
    if unmet.awaited == ANSWER:
        return f"an answer to {unanswered(run) or 'a request'}"
    return unmet.awaited.kind or "the scenario's end"


def traits_of(loaded: Loaded) -> frozenset[str]:
    """What a scenario is made of: needs, settings, steps, methods, what the model says."""
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
