"""Repetitions of a failed scenario and the conclusions from them; a table plays the server."""

from __future__ import annotations

import pytest

from harness.judge.verdict import Level, Verdict
from harness.play.repeats import MAX_REPLAYED, SCENARIOS_TO_CONFIRM, Attempt, Repeats, failures
from harness.report.results.outcome import LEAKS, UNSTEADY, Finding
from harness.scenario.loader import Loaded, load_text
from tests.unit.results.outcomes import LAST, ONCE, failed, outcome, passed

TEXT = "title: x\nclient: [{start_thread: {as: t}}]"
A, B, MINE = (load_text(TEXT, name=name) for name in ("a", "b", "mine"))
BAD, GOOD = frozenset({ONCE}), frozenset[str]()


class Table:
    """Player that plays `mine` as the next row says; the others serve a process and never fail."""

    def __init__(self, *rows: frozenset[str]) -> None:
        self.rows = list(rows)
        self.played: list[str] = []
        self.served: list[Loaded] = []

    def retire(self) -> None:
        self.played.append("|")
        self.served = []

    def play(self, loaded: Loaded) -> Attempt:
        self.played.append(loaded.id)
        before = tuple(self.served)
        self.served.append(loaded)
        return Attempt(self.rows.pop(0) if loaded is MINE else GOOD, before)

    def look(
        self, first: frozenset[str], *before: Loaded, level: Level = Level.INFO
    ) -> list[Finding]:
        return self.repeats(level).repeat(MINE, Attempt(first, before))

    def repeats(self, level: Level = Level.INFO) -> Repeats:
        return Repeats(self.play, self.retire, level)

    @property
    def order(self) -> str:
        return " ".join(self.played)


def ids(findings: list[Finding]) -> list[str]:
    return [finding.id for finding in findings]


@pytest.mark.parametrize("before", [(), (A, B)])
def test_a_failure_is_steady_after_one_repetition(before: tuple[Loaded, ...]) -> None:
    table = Table(BAD)
    assert table.look(BAD, *before) == []
    assert table.order == "| mine"


def test_failing_reused_and_passing_fresh_twice_each_leaks_state() -> None:
    table = Table(GOOD, BAD, GOOD)
    (finding,) = table.look(BAD, A, B)
    assert finding.id == LEAKS
    assert finding.level is Level.INFO
    assert f"mine fails ({ONCE}) on a process that served a, b before" in finding.message
    assert table.order == "| mine | a b mine | mine"


def test_level_is_the_profiles() -> None:
    assert Table(GOOD, BAD, GOOD).look(BAD, A, level=Level.MUST)[0].level is Level.MUST


@pytest.mark.parametrize(
    "rows", [(GOOD, GOOD, GOOD), (GOOD, BAD, BAD), (GOOD, GOOD, BAD)], ids=["pp", "ff", "pf"]
)
def test_every_other_outcome_of_both_ways_is_unsteady(rows: tuple[frozenset[str], ...]) -> None:
    (finding,) = Table(*rows).look(BAD, A)
    assert finding.id == UNSTEADY
    assert f"{ONCE} (at first)" in finding.message


def test_first_failure_on_a_fresh_process_cannot_be_a_leak() -> None:
    table = Table(GOOD)
    assert ids(table.look(BAD)) == [UNSTEADY]
    assert table.order == "| mine"


def test_failing_only_when_repeated_is_unsteady_too() -> None:
    (finding,) = Table(BAD | {LAST}).look(BAD)
    assert finding.id == UNSTEADY
    assert f"{LAST} (when it was repeated)" in finding.message
    assert ONCE not in finding.message


def test_a_leak_is_told_from_what_the_server_always_does() -> None:
    always = frozenset({LAST})
    (finding,) = Table(always, BAD | always, always).look(BAD | always, A)
    assert finding.id == LEAKS
    assert f"fails ({ONCE}) on" in finding.message


def test_process_that_the_others_did_not_leave_usable_proves_no_leak() -> None:
    class Retiring(Table):
        def play(self, loaded: Loaded) -> Attempt:
            attempt = super().play(loaded)
            if loaded is A:
                self.retire()
            return attempt

    assert ids(Retiring(GOOD, BAD, GOOD).look(BAD, A)) == [UNSTEADY]


def test_of_a_long_history_the_end_is_played() -> None:
    table = Table(GOOD, BAD, GOOD)
    (finding,) = table.look(BAD, *[A] * 30, B)
    assert table.played.count("a") + table.played.count("b") == MAX_REPLAYED
    assert "served a, a, b and 28 more before" in finding.message


def test_finding_that_was_confirmed_often_enough_is_believed() -> None:
    table = Table(*[BAD] * SCENARIOS_TO_CONFIRM)
    repeats = table.repeats()
    for _ in range(SCENARIOS_TO_CONFIRM + 3):
        assert repeats.repeat(MINE, Attempt(BAD)) == []
    assert table.played.count("mine") == SCENARIOS_TO_CONFIRM


def test_one_new_finding_beside_believed_ones_is_repeated() -> None:
    table = Table(*[BAD] * SCENARIOS_TO_CONFIRM, BAD | {LAST})
    repeats = table.repeats()
    for _ in range(SCENARIOS_TO_CONFIRM):
        repeats.repeat(MINE, Attempt(BAD))
    assert repeats.repeat(MINE, Attempt(BAD | {LAST})) == []
    assert table.rows == []


def test_only_rules_that_were_confirmed_often_enough_are_steady() -> None:
    repeats = Table(*[BAD] * SCENARIOS_TO_CONFIRM).repeats()
    broken = outcome("s", failed(ONCE))
    assert repeats.is_steady(outcome("s"))
    assert not repeats.is_steady(broken)
    for _ in range(SCENARIOS_TO_CONFIRM):
        repeats.repeat(MINE, Attempt(BAD))
    assert repeats.is_steady(broken)
    assert not repeats.is_steady(outcome("s", failed(ONCE), failed(LAST)))
    timeout = Finding("scenario.timeout", "waited 5 s")
    assert not repeats.is_steady(outcome("s", failed(ONCE), findings=[timeout]))


def test_belief_ends_where_a_finding_turns_out_unsteady() -> None:
    table = Table(BAD, GOOD, BAD, BAD)
    repeats = table.repeats()
    assert repeats.repeat(MINE, Attempt(BAD)) == []
    assert ids(repeats.repeat(MINE, Attempt(BAD))) == [UNSTEADY]
    for _ in range(SCENARIOS_TO_CONFIRM):
        repeats.repeat(MINE, Attempt(BAD))
    assert table.rows == []


def test_unknown_findings_and_must_rules_count_as_failed() -> None:
    known = Finding("scenario.crash", "x", known="as it is")
    info = Finding("scenario.timeout", "x", level=Level.INFO)
    new = Finding("scenario.expectation", "x")
    rows = (passed(LAST), failed(ONCE), failed("a.b", level=Level.SHOULD))
    made = outcome("a", *rows, findings=[known, info, new], verdict=Verdict.FAIL)
    assert failures(made) == {ONCE, "scenario.expectation"}
    assert failures(outcome("a", passed(LAST))) == frozenset()


def test_a_crash_on_a_used_process_is_looked_at_however_often_one_was_confirmed() -> None:
    crash = frozenset({"scenario.crash"})
    table = Table(*[crash] * SCENARIOS_TO_CONFIRM, GOOD, crash, GOOD)
    repeats = table.repeats()
    for _ in range(SCENARIOS_TO_CONFIRM + 1):
        assert repeats.repeat(MINE, Attempt(crash)) == []
    assert ids(repeats.repeat(MINE, Attempt(crash, (A, B)))) == [LEAKS]
    assert table.rows == []
