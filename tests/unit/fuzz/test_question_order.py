"""The order in which a play went wrong, written into its document; in hand-made conversations."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.scenario.player import FailureKind, StepFailure
from harness.scenario.steps.context import Cast
from harness.search.fuzz.sessions.cuts import is_loadable, split_step
from harness.search.fuzz.sessions.play import Played
from harness.search.fuzz.sessions.question_order import pin_order
from harness.search.fuzz.sessions.turns import COMMAND, FILE
from harness.trace.marks import EndingBegins, StepBegins
from tests.rules.traces import THREAD, TURN, Talk

Json = dict[str, Any]
STEPS: list[Json] = [
    {"start_thread": {"as": "t"}},
    {"start_turn": {"thread": "t", "text": "go", "as": "u"}},
    {"request": {"method": "thread/loaded/list", "expect": "any"}},
    {"request": {"method": "thread/list", "expect": "any"}},
]
WHERE = {"turnId": "$u.turn.id", "threadId": "$t.thread.id"}
WAIT: Json = {"wait": {"request": COMMAND, "where": WHERE}}
ANSWER: Json = {"answer": {"to": COMMAND, "where": WHERE, "decision": "accept"}}


def asks(talk: Talk, method: str = COMMAND, turn: str = TURN) -> Talk:
    params = {"threadId": THREAD, "turnId": turn, "itemId": "i"}
    return talk.says({"method": method, "id": 1, "params": params})


def play(
    steps: list[Json], at: int, *questions: str, turn: str = TURN, unmet: StepFailure | None = None
) -> Played:
    """A play in which the questions came when so many steps were begun."""
    talk = Talk()
    for number, step in enumerate(steps, 1):
        kind, body = split_step(step)
        talk.mark(StepBegins(kind, number))
        if kind == "start_thread":
            talk.start_thread()
        elif kind == "start_turn" or "turn/start" in str(body):
            talk.ask_turn().reply_turn()
        elif kind == "request":
            talk.asks("thread/loaded/list").answers({})
        for method in questions if number == at else ():
            asks(talk, method, turn)
    talk.mark(EndingBegins())
    told = {"cast": Cast({"t": THREAD}, {"u": TURN}), "unmet": unmet}
    run = SimpleNamespace(trace=talk.trace(), **told)
    return cast("Played", SimpleNamespace(document={"title": "x", "client": steps}, run=run))


def kinds(played: Played) -> list[str]:
    document = pin_order(played)
    assert is_loadable({**document, "model": {}})
    return [split_step(step)[0] for step in document["client"]]


@pytest.mark.parametrize("at", [2, 3])
def test_the_step_after_a_question_waits_for_it(at: int) -> None:
    found = pin_order(play(STEPS, at, COMMAND))["client"]
    assert found == [*STEPS[:at], WAIT, *STEPS[at:]]


def test_the_same_client_waits_that_began_the_turn() -> None:
    steps = [{"connect": "b"}, *STEPS]
    steps[2] = {"start_turn": {**split_step(STEPS[1])[1], "on": "b"}}
    (wait,) = [step for step in pin_order(play(steps, 3, COMMAND))["client"] if "wait" in step]
    assert wait["wait"]["on"] == "b"


def test_at_the_end_questions_are_refused_so_that_it_waits_too() -> None:
    assert pin_order(play(STEPS, 4, COMMAND))["client"] == [*STEPS, WAIT]


def test_steps_that_waited_in_vain_are_dropped() -> None:
    steps = [*STEPS, {"wait": {"turn": "u"}}, {"wait": {"idle": "t"}}]
    unmet = StepFailure(FailureKind.TIMEOUT, "wait", 5, "in vain")
    assert pin_order(play(steps, 5, COMMAND, unmet=unmet))["client"] == [*STEPS, WAIT]
    assert pin_order(play(steps, 0, unmet=unmet))["client"] == STEPS
    refused = play(steps, 0, unmet=StepFailure(FailureKind.REFUSED, "request", 4, "refused"))
    assert pin_order(refused) is refused.document


@pytest.mark.parametrize("step", [WAIT, ANSWER])
def test_questions_waited_for_or_answered_are_left_alone(step: Json) -> None:
    played = play([*STEPS[:2], step, *STEPS[2:]], 2, COMMAND)
    assert pin_order(played) is played.document


@pytest.mark.parametrize("step", [WAIT, ANSWER])
def test_questions_waited_for_or_answered_later_are_waited_for_at_once(step: Json) -> None:
    steps = [*STEPS[:3], step, *STEPS[3:]]
    assert pin_order(play(steps, 2, COMMAND))["client"] == [*steps[:2], WAIT, *steps[2:]]


def test_a_wait_for_any_question_is_none_for_a_turn_that_was_not_begun() -> None:
    steps = [STEPS[0], {"wait": {"request": COMMAND}}, *STEPS[1:]]
    assert pin_order(play(steps, 3, COMMAND))["client"] == [*steps[:3], WAIT, *steps[3:]]


def test_the_second_question_is_waited_for_after_the_first_was_answered() -> None:
    steps = [*STEPS[:2], ANSWER, *STEPS[2:]]
    assert kinds(play(steps, 3, COMMAND, COMMAND)).index("wait") == 3
    assert kinds(play(steps, 3, FILE)).index("wait") == 3


def test_a_turn_may_be_begun_by_a_request() -> None:
    params = {"threadId": "$t.thread.id", "input": [{"type": "text", "text": "go"}]}
    begins = {"request": {"method": "turn/start", "params": params, "as": "u"}}
    played = play([STEPS[0], begins, *STEPS[2:]], 2, COMMAND)
    assert pin_order(played)["client"][2] == WAIT
    assert (
        pin_order(play([STEPS[0], begins, WAIT, *STEPS[2:]], 2, COMMAND))["client"].count(WAIT) == 1
    )


def test_questions_of_turns_that_no_step_names_are_left_alone() -> None:
    steps = [STEPS[0], {"start_turn": {"thread": "t", "text": "go", "as": "v"}}, *STEPS[2:]]
    played = play(steps, 2, COMMAND)
    assert pin_order(played) is played.document


def test_questions_of_turns_that_no_step_began_are_left_alone() -> None:
    played = play(STEPS, 2, COMMAND, turn="another")
    assert pin_order(played) is played.document
