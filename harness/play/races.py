"""Races: one action played at every position of a scenario, with the most severe outcome."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.client.target.process import ProcessExit
from harness.client.target.profile import Profile
from harness.judge.verdict import GRAVITY, Level, Verdict
from harness.play.capability_evidence import offers
from harness.play.hygiene import Hygiene
from harness.play.run import Run
from harness.play.session.repeated_timeouts import traits_of
from harness.play.session.servers import SetupFailed
from harness.report.results.outcome import Finding, RaceOutcome, ScenarioOutcome, broken_must_rules
from harness.report.results.report import NOT_OFFERED
from harness.scenario.loader import Loaded
from harness.scenario.model import Action
from harness.scenario.race_id import RaceId
from harness.scenario.races import (
    CAPABILITY_OF_ACTION,
    LEAVING_ACTIONS,
    Placement,
    derive_race,
    placements,
)
from harness.scenario.steps.context import FailureKind
from harness.trace.views import conversation_of

PLAYS_PER_PLACEMENT = 5
"""Maximum plays of a placement at which no gate holds the server."""


@dataclass(frozen=True, slots=True)
class RaceContext:
    """Functions and data of a worker's session that a race needs.

    `play_plain` plays the scenario as its file has it, once for all actions; `run` plays a derived
    scenario with the given traits (raises `SetupFailed`), `judge` judges that run, `keep` stores
    its trace and records the path; `last_exit` returns how the last server process ended; `note`
    remembers the traits that worked, and those that timed out.
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
    """A race: one action in one scenario."""

    def __init__(self, loaded: Loaded, action: Action, context: RaceContext) -> None:
        self._loaded = loaded
        self._action: Action = action
        self._context = context

    def outcome(self, only: str = "") -> RaceOutcome:
        """Play every placement, or only the one at position `only`; return the race's outcome."""
        race_outcome = RaceOutcome(
            id=str(RaceId(self._loaded.id, self._action)),
            scenario=self._loaded.id,
            path=str(self._loaded.path),
            title=self._loaded.scenario.title,
            action=self._action,
            verdict=Verdict.NOT_EXERCISED,
        )
        missing_need = self._undeclared_need()
        if missing_need:
            return _not_applicable(race_outcome, missing_need)
        plainly = self._context.play_plain(self._loaded)
        race_outcome.before = plainly.before
        if plainly.verdict not in (Verdict.PASS, Verdict.KNOWN):
            race_outcome.findings = [
                finding for finding in plainly.findings if finding.id.startswith("setup.")
            ]
            race_outcome.reason = f"the scenario itself does not pass: {plainly.reason}"
            if plainly.verdict is Verdict.NOT_APPLICABLE:
                race_outcome.verdict, race_outcome.reason = plainly.verdict, plainly.reason
                race_outcome.missing, race_outcome.withheld = plainly.missing, plainly.withheld
            return race_outcome
        for placement in placements(self._loaded.scenario, self._action):
            if only not in ("", placement.position.name):
                continue
            try:
                outcome = self._play_placement(placement)
            except SetupFailed as failed:
                race_outcome.findings.append(failed.finding)
                race_outcome.reason = (
                    f"{placement.name}: {failed.finding.id}: {failed.finding.message}"
                )
                return race_outcome
            if outcome is None:
                return _not_applicable(race_outcome, CAPABILITY_OF_ACTION[self._action])
            race_outcome.placements.append(outcome)
        return _summarize(race_outcome)

    def _undeclared_need(self) -> str:
        declared, need = (
            self._context.profile.capabilities,
            CAPABILITY_OF_ACTION.get(self._action, ""),
        )
        return need if need and declared != "probe" and need not in declared else ""

    def _play_placement(self, placement: Placement) -> ScenarioOutcome | None:
        """Return the most severe run of a placement; None if the action is not offered."""
        listens = self._context.profile.listening_kind() is not None
        raced = derive_race(self._loaded, placement, server_listens=listens)
        times = 1 if placement.position.is_settled else PLAYS_PER_PLACEMENT
        gravest: tuple[Run, ScenarioOutcome] | None = None
        played = 0
        for _ in range(times):
            run, outcome, in_vain = self._play_once(raced, placement)
            need = CAPABILITY_OF_ACTION.get(self._action)
            if need is not None and not self._is_offered(need, run):
                return None
            played += 1
            if gravest is None or _weight(outcome) > _weight(gravest[1]):
                gravest = run, outcome
            if in_vain or outcome.verdict in (Verdict.FAIL, Verdict.ERROR):
                break  # It cannot get more severe, and each hang takes its whole bound.
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
        """Play a placement once; the last result is True if reaching its position timed out."""
        hygiene = self._context.hygiene
        findings_before = len(hygiene.findings)
        traits = self._traits(placement)
        run = self._context.run(raced, traits)
        unreached, in_vain = "", False
        if (
            run.unmet is not None
            and run.unmet.step == "reach"
            and run.unmet.kind is not FailureKind.CRASH
        ):
            in_vain = run.unmet.kind is FailureKind.TIMEOUT
            unreached, run.unmet = run.unmet.message, None
        if placement.action in LEAVING_ACTIONS:
            # The end of the process may cut a call in the middle, and the calls of a new process
            # lack the requests of the old one's thread, so problems with calls do not count here.
            for call in run.model.calls:
                call.problems.clear()
        outcome = self._context.judge(run, raced)
        if not unreached:
            self._context.note(raced, traits, run, outcome)
        if placement.action in LEAVING_ACTIONS:
            # The process ended during the play, so its findings belong to the placement.
            findings = hygiene.findings[findings_before:]
            del hygiene.findings[findings_before:]
            ends_input = placement.action in ("disconnect", "reset")
            if ends_input and not unreached and run.unmet is None:
                findings += self._after_end_of_input(placement.action)
            outcome.findings += [
                replace(finding, message=f"{raced.id}: {finding.message}") for finding in findings
            ]
        if unreached and outcome.verdict in (Verdict.PASS, Verdict.KNOWN):
            outcome.verdict = Verdict.NOT_EXERCISED
            outcome.reason = f"the position was not reached: {unreached}"
        elif (
            any(finding.counts for finding in outcome.findings) and outcome.verdict is Verdict.PASS
        ):
            outcome.verdict = Verdict.FAIL
            outcome.reason = next(finding.message for finding in outcome.findings if finding.counts)
        return run, outcome, in_vain

    def _after_end_of_input(self, action: Action) -> list[Finding]:
        """Return a finding unless the server exited with status 0 when its input ended.

        After a reset any status will do: it may have been writing.
        """
        ending = self._context.last_exit()
        level = Level(self._context.profile.hygiene)
        if ending is None or self._context.profile.listening_kind() is not None:
            return []
        if ending.push != "none":
            message = f"the end of its input did not end the server: it took {ending.push}"
            return [Finding("hygiene.outlives-input", message, level=level)]
        if ending.returncode != 0 and action != "reset":
            message = f"at the end of its input the server ended with status {ending.returncode}"
            return [Finding("hygiene.exit-status", message, level=level)]
        return []


def _not_applicable(outcome: RaceOutcome, need: str) -> RaceOutcome:
    outcome.verdict = Verdict.NOT_APPLICABLE
    outcome.reason, outcome.missing = f"{NOT_OFFERED}{need}", (need,)
    outcome.placements = []
    return outcome


def _summarize(outcome: RaceOutcome) -> RaceOutcome:
    """Set a race's verdict to that of its most severe placement, and return the race."""
    if not outcome.placements:
        outcome.reason = "the scenario has no position for this action"
        return outcome
    gravest = max(outcome.placements, key=lambda placement: GRAVITY[placement.verdict])
    outcome.verdict = gravest.verdict
    outcome.reason = f"{gravest.race}: {gravest.reason}" if gravest.reason else ""
    return outcome


def _weight(outcome: ScenarioOutcome) -> tuple[int, int, int]:
    failed = sum(row.verdict is Verdict.FAIL for row in outcome.rows)
    return GRAVITY[outcome.verdict], len(broken_must_rules(outcome)), failed
