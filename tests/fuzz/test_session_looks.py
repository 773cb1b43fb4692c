"""Checks of generated sessions on hand-made conversations, and the cases that they leave open."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.judge.verdict import Level
from harness.play.run import Run
from harness.scenario.player import Cast, FailureKind, StepFailure
from harness.search.fuzz.replay import problem_in
from harness.search.fuzz.sessions.checks import (
    COUNTED,
    LOST,
    MIXED,
    NAMED,
    REFUSED,
    Observation,
    find_observations,
)
from harness.search.fuzz.sessions.habits import MIN_TIMES_KEPT, MIN_TIMES_SEEN, Habits
from harness.search.fuzz.sessions.play import Played, Problem
from harness.trace.trace import Trace
from tests.rules.traces import THREAD, Talk, command, thread_object, turn_object, user_message


@dataclass
class OfTrace:
    """Stub of a run with the parts that the checks read."""

    trace: Trace
    cast: Cast = field(default_factory=lambda: Cast(threads={"t": THREAD}))
    model: Any = field(default_factory=lambda: SimpleNamespace(calls=[]))


def seen(talk: Talk) -> list[Observation]:
    return list(find_observations(cast("Run", OfTrace(talk.trace()))))


def causes(talk: Talk) -> list[str]:
    return [one.cause for one in seen(talk)]


def stored(*texts: str) -> list[dict[str, Any]]:
    """Completed turns; "" stands for one that the server began by itself."""
    return [
        turn_object(
            f"turn_{at}",
            "completed",
            items=[user_message("m", said)] if said else [{"type": "contextCompaction", "id": "c"}],
        )
        for at, said in enumerate(texts, 1)
    ]


def looked(talk: Talk, *texts: str) -> Talk:
    return talk.read(*stored(*texts))


def rolls_back(talk: Talk, number: int, *texts: str) -> Talk:
    talk.asks("thread/rollback", threadId=THREAD, numTurns=number)
    return talk.answers({"thread": thread_object(turns=stored(*texts))})


def test_a_rollback_that_drops_one_too_many() -> None:
    found = seen(rolls_back(looked(Talk().start_thread(), "q01", "q02"), 1))
    assert [one.cause for one in found] == [LOST]
    assert found[0].where == {"thread.turns.*.items.*.content.*.text": "q01"}
    assert "q01" in found[0].text


@pytest.mark.parametrize("left", [("q01",), ("q01", "q02")])
def test_a_rollback_that_drops_no_more_than_was_asked_for(left: tuple[str, ...]) -> None:
    assert causes(rolls_back(looked(Talk().start_thread(), "q01", "q02"), 1, *left)) == []


def test_a_turn_that_another_request_loses() -> None:
    talk = looked(Talk().start_thread(), "q01", "q02")
    talk.asks("thread/name/set", threadId=THREAD, name="n").answers({})
    assert causes(looked(talk, "q01")) == [LOST]


def test_a_fork_that_lacks_a_turn() -> None:
    talk = looked(Talk().start_thread(), "q01", "q02").asks("thread/fork", threadId=THREAD)
    assert causes(talk.answers({"thread": thread_object("thr_2", turns=stored("q02"))})) == [LOST]


def test_after_a_compaction_nothing_is_known_of_the_history() -> None:
    talk = looked(Talk().start_thread(), "q01", "q02")
    talk.asks("thread/compact/start", threadId=THREAD).answers({})
    assert causes(looked(talk, "q02")) == []


def test_where_requests_overlap_nothing_is_known() -> None:
    talk = looked(Talk().start_thread(), "q01", "q02")
    first = talk.asks("thread/rollback", threadId=THREAD, numTurns=1).last.id
    second = talk.asks("thread/read", threadId=THREAD, includeTurns=True).last.id
    talk.answers({"thread": thread_object(turns=stored("q01"))}, to=cast("int", second))
    talk.answers({"thread": thread_object(turns=stored("q01"))}, to=cast("int", first))
    assert causes(looked(talk, "q01")) == []


@pytest.mark.parametrize("method", ["thread/read", "thread/resume"])
def test_an_answer_across_a_rollback_does_not_show_the_state(method: str) -> None:
    """The server showed the turns first; its answer came after that of another client's cut."""
    talk = looked(Talk().start_thread(), "q01", "q02")
    read = talk.asks(method, threadId=THREAD, includeTurns=True).last.id
    cut = talk.on("c2").asks("thread/rollback", threadId=THREAD, numTurns=1).last.id
    talk.answers({"thread": thread_object(turns=stored("q01"))}, to=cast("int", cut))
    talk.on("c1").answers(
        {"thread": thread_object(turns=stored("q01", "q02"))}, to=cast("int", read)
    )
    assert causes(looked(talk, "q01")) == []
    assert causes(looked(looked(talk, "q01"))) == [LOST]


def test_an_answer_across_a_harmless_request_shows_the_state() -> None:
    talk = Talk().start_thread()
    read = talk.asks("thread/read", threadId=THREAD, includeTurns=True).last.id
    talk.on("c2").asks("thread/name/set", threadId=THREAD, name="n").answers({})
    talk.on("c1").answers({"thread": thread_object(turns=stored("q01"))}, to=cast("int", read))
    assert causes(looked(talk)) == [LOST]


def test_turns_without_items_are_counted() -> None:
    plain = [turn_object("turn_1", "completed"), turn_object("turn_2", "completed")]
    talk = Talk().start_thread().read(*plain)
    assert causes(talk.read(plain[0])) == [LOST]
    assert causes(Talk().start_thread().read(*plain).read(*plain)) == []


@pytest.mark.parametrize(("left", "counted"), [(("q01", "q02"), "True"), (("q01",), "False")])
def test_the_count_of_a_rollback_is_no_problem_by_itself(
    left: tuple[str, ...], counted: str
) -> None:
    found = seen(rolls_back(looked(Talk().start_thread(), "q01", "q02", ""), 1, *left))
    assert [(one.cause, one.habit) for one in found] == [(COUNTED, counted)]


def test_an_idle_thread_takes_a_turn() -> None:
    assert causes(Talk().start_thread().plain_turn().ask_turn().refuses("busy")) == [REFUSED]


def test_a_thread_of_another_connection_may_refuse_a_turn() -> None:
    talk = Talk().start_thread().plain_turn().on("c2").ask_turn().refuses("no such thread")
    assert causes(talk) == []


def test_a_thread_with_a_turn_may_refuse_another() -> None:
    assert causes(Talk().start_thread().start_turn().ask_turn().refuses("busy")) == []


def test_a_thread_that_was_put_away_may_refuse_a_turn() -> None:
    talk = Talk().start_thread().plain_turn().asks("thread/archive", threadId=THREAD).answers({})
    assert causes(talk.ask_turn().refuses("archived")) == []


def test_an_output_of_another_command() -> None:
    def ran(output: str) -> Talk:
        item = command("i", "completed", command="echo q01n002", aggregatedOutput=output)
        return Talk().start_thread().start_turn().completed(item)

    assert causes(ran("q01n003\n")) == [MIXED]
    assert causes(ran("q01n002\n")) == causes(ran("")) == causes(ran("no such command")) == []


def searched(talk: Talk, *found: str) -> list[str]:
    talk.asks("thread/list", searchTerm="n")
    talk.answers({"data": [thread_object(one) for one in found], "nextCursor": None})
    return [one.habit for one in seen(talk) if one.cause == NAMED]


def test_a_search_for_a_name_finds_it_or_not() -> None:
    def named(*, turns: bool = True) -> Talk:
        talk = Talk().start_thread()
        talk = talk.start_turn().end_turn() if turns else talk
        return talk.asks("thread/name/set", threadId=THREAD, name="n").answers({})

    assert searched(named(), THREAD) == ["True"]
    assert searched(named(), "thr_9") == ["False"]
    assert searched(named().asks("thread/archive", threadId=THREAD).answers({}), "thr_9") == []
    # Of a thread without a turn there may be nothing to list.
    assert searched(named(turns=False), "thr_9") == []


def played(*problems: Problem, kept: dict[str, int] | None = None) -> Played:
    nothing: Any = None
    return Played({}, nothing, nothing, list(problems), kept or {})


def test_a_should_rule_counts_once_it_is_a_habit() -> None:
    broken = Problem("name.shown", "shown otherwise", Level.SHOULD)
    always, rarely = Habits(), Habits()
    assert rarely.serious_problems(played(broken)) == []
    assert rarely.serious_problems(played(kept={"name.shown": MIN_TIMES_KEPT})) == []
    assert rarely.serious_problems(played(broken)) == []
    assert always.serious_problems(played(kept={"name.shown": MIN_TIMES_KEPT})) == []
    assert always.serious_problems(played(broken)) == [broken]
    # Also when it is tried again.
    assert always.serious_problems(played(broken)) == [broken]


def test_a_breach_of_the_text_counts_at_once() -> None:
    broken = Problem("turn.completes", "never ended")
    assert Habits().serious_problems(played(broken, broken)) == [broken]


def test_a_choice_counts_where_the_server_mostly_chose_otherwise() -> None:
    habits, where = Habits(), {"data.*.id": "thr_1"}
    usual = Problem(COUNTED, "it counts", Level.INFO, habit="True")
    unusual = Problem(COUNTED, "it does not", Level.INFO, habit="False", where=where)
    for _ in range(MIN_TIMES_SEEN):
        assert habits.serious_problems(played(usual)) == []
    for _ in range(2 * MIN_TIMES_SEEN):
        assert habits.serious_problems(played(unusual)) == [unusual]
    assert Habits().serious_problems(played(unusual)) == []


def test_a_choice_that_no_step_can_demand_is_no_finding() -> None:
    habits = Habits()
    for _ in range(MIN_TIMES_SEEN):
        habits.serious_problems(played(Problem(COUNTED, "it does not", Level.INFO, habit="False")))
    unusual = Problem(COUNTED, "it counts", Level.INFO, habit="True")
    assert habits.serious_problems(played(unusual)) == []


def test_a_choice_is_wrong_in_a_replay_where_a_step_demanded_the_other() -> None:
    found = Problem(NAMED, "it finds it: True", Level.INFO, habit="True")
    step = StepFailure(FailureKind.OTHER_END, "request", 4, "it does not show the thread")
    sound, broken = played(found), played(found)
    sound.run = cast("Run", SimpleNamespace(unmet=None))
    broken.run = cast("Run", SimpleNamespace(unmet=step))
    assert problem_in(sound, NAMED) == ""
    assert problem_in(broken, NAMED) == found.text
