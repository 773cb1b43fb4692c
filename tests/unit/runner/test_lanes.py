"""Jobs on several lanes: assignment, repeats alone, and the end of lanes."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from harness.judge.verdict import Level, Verdict
from harness.play.interruption import Interrupted, Interruption
from harness.play.lanes import Job, Lanes, LaneWaits, Outcome, is_settled, lanes_by_default
from harness.play.worker_session import WorkerSession
from harness.report.results.outcome import Finding, ScenarioOutcome
from tests.unit.results.outcomes import LAST, ONCE, outcome
from tests.unit.results.outcomes import failed as broken

BOUND = 20.0


@dataclass
class FakeSession:
    """A session of lane `number`; jobs note here what they played."""

    number: int
    waits: LaneWaits
    start_seconds: float = 0.0


@dataclass
class Plays:
    """Jobs that play nothing, the lanes that play them, and what was played where."""

    number: int
    names: list[str]
    outcomes: dict[str, Callable[[int, bool], ScenarioOutcome]] = field(
        default_factory=dict[str, Callable[[int, bool], ScenarioOutcome]]
    )
    settings: dict[str, str] = field(default_factory=dict[str, str])
    needs: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    played: list[tuple[str, int, bool]] = field(default_factory=list[tuple[str, int, bool]])
    sessions: list[FakeSession] = field(default_factory=list[FakeSession])
    earlier: dict[str, Outcome | None] = field(default_factory=dict[str, Outcome | None])

    def __post_init__(self) -> None:
        self.lanes = self.open()

    def open(self, **options: Any) -> Lanes:
        interruption = Interruption(Path())
        return Lanes(self.number, self._session, self._upcoming, interruption, **options)

    def job(self, name: str) -> Job:
        def play(
            session: WorkerSession, confirms: bool, earlier: Outcome | None
        ) -> ScenarioOutcome:
            self.earlier[name] = earlier
            lane = cast("Any", session).number
            self.played.append((name, lane, confirms))
            return self.outcomes.get(name, lambda _lane, _confirms: outcome(name))(lane, confirms)

        return Job(name, play, self.settings.get(name, ""), self.needs.get(name, ()))

    def run(self) -> dict[str, Verdict]:
        try:
            return {name: self.lanes.outcome(self.job(name)).verdict for name in self.names}
        finally:
            self.lanes.stop()

    def _session(self, number: int, waits: LaneWaits) -> WorkerSession:
        self.sessions.append(FakeSession(number, waits))
        return cast("WorkerSession", self.sessions[-1])

    def _upcoming(self) -> Iterator[Job]:
        return map(self.job, self.names)


def failed(name: str, finding: str = "scenario.timeout") -> ScenarioOutcome:
    return outcome(name, verdict=Verdict.FAIL, findings=[Finding(finding, "wrong")])


def test_each_job_is_played_once_and_told_in_order() -> None:
    plays = Plays(4, [f"s{number}" for number in range(30)])
    assert list(plays.run()) == plays.names
    assert sorted(name for name, _, _ in plays.played) == sorted(plays.names)
    assert len(plays.sessions) == 4


def test_lanes_play_at_the_same_time() -> None:
    plays = Plays(3, ["first", "a", "b", "c"])
    meeting = threading.Barrier(3)

    def meet(lane: int, confirms: bool) -> ScenarioOutcome:
        meeting.wait(BOUND)
        return outcome("met")

    plays.outcomes = {"a": meet, "b": meet, "c": meet}
    assert set(plays.run().values()) == {Verdict.PASS}
    assert {lane for name, lane, _ in plays.played if name != "first"} == {1, 2, 3}


def test_nothing_is_played_ahead_before_a_scenario_has_passed() -> None:
    plays = Plays(4, ["a", "b"])
    plays.outcomes = {name: lambda _lane, _confirms: failed("x") for name in plays.names}
    assert set(plays.run().values()) == {Verdict.FAIL}
    assert plays.played == [("a", 1, True), ("b", 1, True)]


def test_one_lane_plays_everything_where_it_is_asked_for() -> None:
    plays = Plays(1, ["a", "b"])
    plays.run()
    assert plays.played == [("a", 1, True), ("b", 1, True)]


def test_failure_on_a_lane_counts_only_if_it_fails_alone() -> None:
    plays = Plays(4, [f"s{number}" for number in range(20)])
    playing, seen = set[str](), list[set[str]]()

    def busy(name: str, confirms: bool, then: ScenarioOutcome) -> ScenarioOutcome:
        playing.add(name)
        if confirms:
            seen.append(set(playing))
        playing.discard(name)
        return then

    for name in plays.names[1:]:
        plays.outcomes[name] = lambda _l, confirms, name=name: busy(name, confirms, outcome(name))
    plays.outcomes["s5"] = lambda _l, confirms: busy(
        "s5", confirms, outcome("s5") if confirms else failed("s5")
    )
    plays.outcomes["s7"] = lambda _l, confirms: busy("s7", confirms, failed("s7"))
    verdicts = plays.run()
    assert (verdicts["s5"], verdicts["s7"]) == (Verdict.PASS, Verdict.FAIL)
    assert plays.lanes.replayed == 2
    assert [name for name, earlier in plays.earlier.items() if earlier is not None] == ["s5", "s7"]
    assert sorted(map(sorted, seen)) == [["s5"], ["s7"]]


def test_rule_that_was_broken_in_two_plays_alone_needs_no_further_one() -> None:
    plays = Plays(4, [f"s{number}" for number in range(30)])
    for name in plays.names[1:]:
        plays.outcomes[name] = lambda _l, _c, name=name: outcome(name, broken(ONCE))
    # What breaks another rule too, or fails by itself, is still played alone.
    plays.outcomes["s20"] = lambda _l, _c: outcome("s20", broken(ONCE), broken(LAST))
    plays.outcomes["s21"] = lambda _l, _c: outcome("s21", broken(ONCE), verdict=Verdict.FAIL)
    verdicts = plays.run()
    assert verdicts["s21"] is Verdict.FAIL
    alone = [name for name, _, confirms in plays.played if confirms]
    assert {"s20", "s21"} <= set(alone[1:])
    assert plays.lanes.replayed == 4


def test_wait_for_what_never_came_is_played_alone_once() -> None:
    plays = Plays(4, [f"s{number}" for number in range(20)])
    missing = set[str]()
    plays.lanes = plays.open(never_came=missing.__contains__)

    def silent(name: str, confirms: bool) -> ScenarioOutcome:
        vain = outcome(name, broken(ONCE), verdict=Verdict.FAIL)
        vain.findings = [Finding("scenario.timeout", "waited 5 s")]
        vain.awaited = "thread/archived"
        if confirms:
            missing.add(vain.awaited)
        return vain

    for name in plays.names[1:]:
        plays.outcomes[name] = lambda _l, confirms, name=name: silent(name, confirms)
    # What fails in another way too is still played alone.
    plays.outcomes["s9"] = lambda _l, _c: replace(
        silent("s9", confirms=False), findings=[Finding("scenario.crash", "gone")]
    )
    assert set(list(plays.run().values())[1:]) == {Verdict.FAIL}
    alone = [name for name, _, confirms in plays.played if confirms]
    assert len(alone) == 3
    assert "s9" in alone


def lacking(name: str, *missing: str) -> ScenarioOutcome:
    """An outcome of a play that broke off without these capabilities."""
    return outcome(
        name, verdict=Verdict.NOT_APPLICABLE, played=False, trace="t.jsonl", missing=missing
    )


def test_capability_that_two_plays_alone_lacked_needs_no_further_one() -> None:
    plays = Plays(4, [f"s{number}" for number in range(30)])
    for name in plays.names[1:]:
        plays.outcomes[name] = lambda _l, _c, name=name: lacking(name, "review")
    # What lacks another one too, or breaks a rule, is still played alone.
    plays.outcomes["s20"] = lambda _l, _c: lacking("s20", "review", "plan")
    plays.outcomes["s21"] = lambda _l, _c: replace(lacking("s21", "review"), rows=[broken(ONCE)])
    plays.outcomes["s22"] = lambda _l, _c: lacking("s22")
    assert set(list(plays.run().values())[1:]) == {Verdict.NOT_APPLICABLE}
    alone = [name for name, _, confirms in plays.played if confirms]
    assert {"s20", "s21", "s22"} <= set(alone)
    assert plays.lanes.replayed == 5


def test_capability_that_a_scenario_passed_with_is_not_taken_for_absent() -> None:
    plays = Plays(4, [f"s{number}" for number in range(20)])
    plays.needs = dict.fromkeys(plays.names, ("review",))
    for name in plays.names[1:]:
        plays.outcomes[name] = lambda _l, _c, name=name: lacking(name, "review")
    plays.run()
    assert plays.lanes.replayed == 19


def test_lanes_go_on_after_an_error_while_a_failure_was_confirmed() -> None:
    plays = Plays(4, [f"s{number}" for number in range(20)])

    def break_alone(confirms: bool) -> ScenarioOutcome:
        if confirms:
            raise RuntimeError("broken")
        return failed("s5")

    plays.outcomes["s5"] = lambda _l, confirms: break_alone(confirms)
    try:
        for name in plays.names[:5]:
            plays.lanes.outcome(plays.job(name))
        with pytest.raises(RuntimeError, match="broken"):
            plays.lanes.outcome(plays.job("s5"))
        verdicts = [plays.lanes.outcome(plays.job(name)).verdict for name in plays.names[6:]]
    finally:
        plays.lanes.stop()
    assert set(verdicts) == {Verdict.PASS}


def test_only_what_is_asked_for_is_played_alone_where_the_run_stops_at_a_failure() -> None:
    plays = Plays(4, [f"s{number}" for number in range(20)])
    plays.lanes = plays.open(confirms_ahead=False)
    for name in plays.names[1:]:
        plays.outcomes[name] = lambda _l, _c, name=name: failed(name)
    try:
        for name in plays.names[:3]:
            plays.lanes.outcome(plays.job(name))
    finally:
        plays.lanes.stop()
    assert [name for name, _, confirms in plays.played if confirms] == ["s0", "s1", "s2"]


def test_rule_that_lanes_alone_show_to_be_broken_is_played_alone_each_time() -> None:
    plays = Plays(4, [f"s{number}" for number in range(20)])
    for name in plays.names[1:]:
        plays.outcomes[name] = lambda _l, confirms, name=name: outcome(
            name, *([] if confirms else [broken(ONCE)])
        )
    plays.run()
    assert plays.lanes.replayed == 19


def test_an_error_of_a_lane_is_raised_where_the_job_is_asked_for() -> None:
    plays = Plays(2, ["first", "a", "b"])

    def breaks(_lane: int, _confirms: bool) -> ScenarioOutcome:
        raise ValueError("broken")

    plays.outcomes["a"] = breaks
    plays.lanes.outcome(plays.job("first"))
    with pytest.raises(ValueError, match="broken"):
        plays.lanes.outcome(plays.job("a"))
    plays.lanes.stop()


def test_asked_for_a_second_time_it_is_played_a_second_time() -> None:
    plays = Plays(2, ["first", "a"])
    plays.lanes.outcome(plays.job("first"))
    plays.lanes.outcome(plays.job("a"))
    plays.lanes.outcome(plays.job("a"))
    plays.lanes.stop()
    assert [name for name, _, _ in plays.played].count("a") == 2
    assert plays.played[-1] == ("a", 1, True)


def test_lane_whose_server_cannot_start_beside_another_plays_nothing_more() -> None:
    plays = Plays(2, ["first", *(f"s{number}" for number in range(10))])

    def starts(name: str, lane: int) -> ScenarioOutcome:
        return failed(name, "setup.not-started") if lane == 2 else outcome(name)

    for name in plays.names:
        plays.outcomes[name] = lambda lane, _confirms, name=name: starts(name, lane)
    assert set(plays.run().values()) == {Verdict.PASS}
    assert [lane for _, lane, _ in plays.played].count(2) <= 1


def test_jobs_of_the_same_settings_stay_on_one_lane() -> None:
    plays = Plays(3, ["first", *(f"{kind}{at}" for at in range(6) for kind in "xy")])
    plays.settings = {name: name[0] for name in plays.names[1:]}
    both = threading.Barrier(2)

    def together(name: str) -> ScenarioOutcome:
        if name in ("x0", "y0"):
            both.wait(BOUND)
        return outcome(name)

    for name in plays.names[1:]:
        plays.outcomes[name] = lambda _lane, _confirms, name=name: together(name)
    plays.run()
    first_of = {name: lane for name, lane, _ in plays.played if name in ("x0", "y0")}
    assert first_of["x0"] != first_of["y0"]


def test_stopping_ends_what_a_lane_waits_for() -> None:
    plays = Plays(2, ["first", "a", "b", "c"])
    waiting = threading.Semaphore(0)

    def wait(lane: int, _confirms: bool) -> ScenarioOutcome:
        waits = plays.sessions[lane - 1].waits
        waiting.release()
        return waits.wait(Future[ScenarioOutcome]())

    plays.outcomes = dict.fromkeys(("a", "b", "c"), wait)
    plays.lanes.outcome(plays.job("first"))
    with pytest.raises(Interrupted):
        _ask_and_interrupt(plays, waiting)
    plays.lanes.stop()
    assert [one.name for one in threading.enumerate() if "_work" in one.name] == []


def _ask_and_interrupt(plays: Plays, waiting: threading.Semaphore) -> None:
    """Ask for a job that never ends, and let the run be interrupted once both lanes wait."""
    interruption = cast("Any", plays.lanes)._interruption
    plain = interruption.wait

    def wait(future: Future[None]) -> None:
        waiting.acquire(timeout=BOUND)
        interruption.signal = 2
        plain(future)

    interruption.wait = wait
    plays.lanes.outcome(plays.job("a"))


@pytest.mark.parametrize(
    ("outcome_of_play", "settled"),
    [
        (outcome("s"), True),
        (outcome("s", verdict=Verdict.KNOWN), True),
        (outcome("s", verdict=Verdict.NOT_APPLICABLE), True),
        (failed("s"), False),
        (outcome("s", findings=[Finding("x", "only told", level=Level.INFO)]), True),
        (outcome("s", verdict=Verdict.NOT_EXERCISED, findings=[Finding("setup.x", "no")]), False),
    ],
)
def test_settled_outcome_needs_no_second_play(
    outcome_of_play: ScenarioOutcome, settled: bool
) -> None:
    assert is_settled(outcome_of_play) is settled


@pytest.mark.parametrize(("seconds", "lanes"), [(0.0, 5), (0.3, 5), (0.7, 7), (30.0, 8)])
def test_slow_starts_ask_for_more_lanes(seconds: float, lanes: int) -> None:
    assert lanes_by_default(seconds, cores=2) == lanes
