"""SHOULD rules of sequences: a break counts if the rule is usually kept in the plan."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.judge.verdict import Level
from harness.search.fuzz.sessions.play import Played, Problem
from harness.search.sequences.search import KEPT_PER_BROKEN, SequenceHabits, SequenceSearcher

RULE = "steer.input-arrives"


def played(kept: int, broken: int) -> Played:
    problems = [Problem(RULE, "broken", Level.SHOULD) for _ in range(broken)]
    return Played({}, cast("Any", None), cast("Any", None), problems, {RULE: kept})


@pytest.mark.parametrize(
    ("kept", "broken", "counts"), [(12, 1, True), (11, 1, False), (30, 10, True), (29, 10, False)]
)
def test_break_counts_if_the_rule_is_usually_kept(kept: int, broken: int, counts: bool) -> None:
    assert KEPT_PER_BROKEN == 3
    habits = SequenceHabits()
    assert habits.serious_problems(played(0, broken)) == []
    assert habits.serious_problems(played(kept, 0)) == []
    assert habits.is_usual(RULE) is counts
    assert bool(habits.serious_problems(played(0, 1))) is counts


def test_broken_must_counts_at_once() -> None:
    problem = Problem(RULE, "broken", Level.MUST)
    play = Played({}, cast("Any", None), cast("Any", None), [problem], {})
    assert SequenceHabits().serious_problems(play) == [problem]


def test_rule_that_is_rarely_kept_is_told_with_its_counts() -> None:
    habits = SequenceHabits()
    habits.serious_problems(played(3, 2))
    assert not habits.is_usual(RULE)
    assert habits.counts(RULE) == "broken 2 times, kept 3 times"


@pytest.mark.parametrize(
    ("kept", "known", "lines", "leads"), [(3, "", 1, 0), (12, "", 0, 1), (3, RULE, 0, 0)]
)
def test_search_tells_of_a_rule_that_is_rarely_kept_and_follows_up_others(
    kept: int, known: str, lines: int, leads: int
) -> None:
    entries = [SimpleNamespace(rule=known)] if known else []
    searcher = SequenceSearcher(SimpleNamespace(entries=entries), None, None, None, 0)
    habits: Any = getattr(searcher, "_habits")  # noqa: B009 - its parts are private
    habits.serious_problems(played(kept, 1))
    problem = Problem(RULE, "it did not arrive", Level.SHOULD)
    for plan in ("alone", "across"):
        seen = SimpleNamespace(plan=plan, sequence=None, problem=problem)
        getattr(searcher, "_doubtful")[plan, RULE, ""] = seen  # noqa: B009
    getattr(searcher, "_judge_doubtful")()  # noqa: B009
    told = searcher.campaign.broken_should
    assert told == [f"broken 1 times, kept {kept} times: it did not arrive"] * lines
    plans = [set(lead.in_plans) for lead in getattr(searcher, "_leads")]  # noqa: B009
    assert plans == [{"alone", "across"}] * leads
