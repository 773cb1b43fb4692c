"""Races: plays one action at every position of a scenario, and sums up what was found."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.client.target.process import ProcessExit
from harness.client.target.profile import Profile
from harness.judge.verdict import GRAVITY, Level, Verdict
from harness.play.capability_evidence import offers
from harness.play.hygiene import Hygiene
from harness.play.run import Run
from harness.play.session.servers import SetupFailed
from harness.play.session.silence import traits_of
from harness.report.results.outcome import Finding, RaceOutcome, ScenarioOutcome, broken
from harness.report.results.report import NOT_OFFERED
from harness.scenario.loader import Loaded
from harness.scenario.model import Action
from harness.scenario.race_id import RaceId
from harness.scenario.races import NEEDS, Placement, derived, placements
from harness.scenario.steps.context import UnmetKind
from harness.trace.views import conversation_of

PLAYS_PER_PLACEMENT = 5
"""How often a placement is played that no gate holds in its place."""


@dataclass(frozen=True, slots=True)
class RaceContext:
    """The parts of a worker's session that a race needs.

    `plainly` plays the scenario as its file has it, once for all actions; `run` plays a derived
    one, by its traits (raises `SetupFailed`), `judged` judges what that gave, `kept` stores its
    trace and notes where; `ending` says how the last server process ended; `noted` remembers what
    worked, and what was waited for in vain.
    """

    profile: Profile
    hygiene: Hygiene
    last_exit: Callable[[], ProcessExit | None]
    play_plain: Callable[[Loaded], ScenarioOutcome]
    run: Callable[[Loaded, frozenset[str]], Run]
    judge: Callable[[Run, Loaded], ScenarioOutcome]
    keep: Callable[[Run, ScenarioOutcome], None]
    note: Callable[[Loaded, frozenset[str], Run, ScenarioOutcome], None]


class Race:
    """One action in one scenario."""

    def __init__(self, loaded: Loaded, action: Action, playing: RaceContext) -> None:
        self._loaded = loaded
        self._action: Action = action
        self._context = playing

    def outcome(self, only: str = "") -> RaceOutcome:
        """Play every placement, or that at the position of the name `only`."""
        found = RaceOutcome(
            id=str(RaceId(self._loaded.id, self._action)),
            scenario=self._loaded.id,
            path=str(self._loaded.path),
            title=self._loaded.scenario.title,
            action=self._action,
            verdict=Verdict.NOT_EXERCISED,
        )
        lacking = self._undeclared_need()
        if lacking:
            return _without(found, lacking)
        plainly = self._context.play_plain(self._loaded)
        found.before = plainly.before
        if plainly.verdict not in (Verdict.PASS, Verdict.KNOWN):
            found.findings = [one for one in plainly.findings if one.id.startswith("setup.")]
            found.reason = f"the scenario itself does not pass: {plainly.reason}"
            if plainly.verdict is Verdict.NOT_APPLICABLE:
                found.verdict, found.reason = plainly.verdict, plainly.reason
                found.missing, found.withheld = plainly.missing, plainly.withheld
            return found
        for placement in placements(self._loaded.scenario, self._action):
            if only not in ("", placement.position.name):
                continue
            try:
                outcome = self._play_placement(placement)
            except SetupFailed as failed:
                found.findings.append(failed.finding)
                found.reason = f"{placement.name}: {failed.finding.id}: {failed.finding.message}"
                return found
            if outcome is None:
                return _without(found, NEEDS[self._action])
            found.placements.append(outcome)
        return _summed_up(found)

    def _undeclared_need(self) -> str:
        declared, need = self._context.profile.capabilities, NEEDS.get(self._action, "")
        return need if need and declared != "probe" and need not in declared else ""

    def _play_placement(self, placement: Placement) -> ScenarioOutcome | None:
        """The gravest of the placement's runs; None where the server does not offer the action."""
        listens = self._context.profile.listening_kind() is not None
        raced = derived(self._loaded, placement, listens=listens)
        times = 1 if placement.position.settled else PLAYS_PER_PLACEMENT
        gravest: tuple[Run, ScenarioOutcome] | None = None
        played = 0
        for _ in range(times):
            run, outcome, in_vain = self._play_once(raced, placement)
            need = NEEDS.get(self._action)
            if need is not None and not self._is_offered(need, run):
                return None
            played += 1
            if gravest is None or _weight(outcome) > _weight(gravest[1]):
                gravest = run, outcome
            if in_vain or outcome.verdict in (Verdict.FAIL, Verdict.ERROR):
                break  # It will not get graver, and a hang takes its bound each time.
        if gravest is None:
            raise RuntimeError("a placement is played at least once")
        run, outcome = gravest
        outcome.race, outcome.racy, outcome.runs = placement.name, times > 1, played
        self._context.keep(run, outcome)
        return outcome

    def _traits(self, placement: Placement) -> frozenset[str]:
        kind = re.sub(r"\d+", "N", placement.name)
        action = {f"the action {placement.action}", f"the action {kind}"}
        return traits_of(self._loaded) | action

    def _is_offered(self, need: str, run: Run) -> bool:
        probed = self._context.profile.capabilities == "probe"
        return not probed or offers(need, run, conversation_of(run.trace))

    def _play_once(self, raced: Loaded, placement: Placement) -> tuple[Run, ScenarioOutcome, bool]:
        """One run, and whether the position was waited for up to the bound in vain."""
        hygiene = self._context.hygiene
        seen = len(hygiene.findings)
        traits = self._traits(placement)
        run = self._context.run(raced, traits)
        unreached, in_vain = "", False
        if (
            run.unmet is not None
            and run.unmet.step == "reach"
            and run.unmet.kind is not UnmetKind.CRASH
        ):
            in_vain = run.unmet.kind is UnmetKind.TIMEOUT
            unreached, run.unmet = run.unmet.message, None
        if placement.action in ("disconnect", "kill"):
            # A call may be cut in the middle by the end of the process, and what the thread of a
            # server that is gone asked for is not in the calls of a new one: the audit says
            # nothing here.
            for call in run.model.calls:
                call.problems.clear()
        outcome = self._context.judge(run, raced)
        if not unreached:
            self._context.note(raced, traits, run, outcome)
        if placement.action in ("disconnect", "kill"):
            # The process ended within the play, so what it left is the placement's.
            found = hygiene.findings[seen:]
            del hygiene.findings[seen:]
            if placement.action == "disconnect" and not unreached and run.unmet is None:
                found += self._after_end_of_input()
            outcome.findings += [
                replace(one, message=f"{raced.id}: {one.message}") for one in found
            ]
        if unreached and outcome.verdict in (Verdict.PASS, Verdict.KNOWN):
            outcome.verdict = Verdict.NOT_EXERCISED
            outcome.reason = f"the position was not reached: {unreached}"
        elif any(one.counts for one in outcome.findings) and outcome.verdict is Verdict.PASS:
            outcome.verdict = Verdict.FAIL
            outcome.reason = next(one.message for one in outcome.findings if one.counts)
        return run, outcome, in_vain

    def _after_end_of_input(self) -> list[Finding]:
        """Over standard streams the end of the input is the end of the server: clean, by itself."""
        ending = self._context.last_exit()
        level = Level(self._context.profile.hygiene)
        if ending is None or self._context.profile.listening_kind() is not None:
            return []
        if ending.push != "none":
            message = f"the end of its input did not end the server: it took {ending.push}"
            return [Finding("hygiene.outlives-input", message, level=level)]
        if ending.returncode != 0:
            message = f"at the end of its input the server ended with status {ending.returncode}"
            return [Finding("hygiene.exit-status", message, level=level)]
        return []


def _without(outcome: RaceOutcome, need: str) -> RaceOutcome:
    outcome.verdict = Verdict.NOT_APPLICABLE
    outcome.reason, outcome.missing = f"{NOT_OFFERED}{need}", (need,)
    outcome.placements = []
    return outcome


def _summed_up(outcome: RaceOutcome) -> RaceOutcome:
    """The gravest placement speaks for the race."""
    if not outcome.placements:
        outcome.reason = "the scenario has no position for this action"
        return outcome
    gravest = max(outcome.placements, key=lambda one: GRAVITY[one.verdict])
    outcome.verdict = gravest.verdict
    outcome.reason = f"{gravest.race}: {gravest.reason}" if gravest.reason else ""
    return outcome


def _weight(outcome: ScenarioOutcome) -> tuple[int, int, int]:
    failed = sum(row.verdict is Verdict.FAIL for row in outcome.rows)
    return GRAVITY[outcome.verdict], len(broken(outcome)), failed
