"""Placements of a race: the positions of each action, and the derived play."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.suite.selection import ALL, Selection, selection
from harness.client.target.profile import Deviation
from harness.errors import UsageError
from harness.judge.verdict import Level, Row, Verdict
from harness.report.results.baseline import mark_known_row
from harness.scenario.client_steps import AnswerStep, OpenStep
from harness.scenario.loader import Loaded, load_text
from harness.scenario.model import ACTIONS, Action
from harness.scenario.races import Placement, derive_race, placements

ASKS = """
title: asked once
races: all
covers: []
model:
  - expect: {input_contains: ["go"]}
    reply: [{run: "ls"}]
  - reply: [{message: "a"}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: "go", as: u}
  - answer: {to: item/commandExecution/requestApproval, decision: accept}
  - wait: {turn: u, status: completed}
expect: {turns: {u: completed}, model_calls: 2}
"""


@pytest.fixture(scope="module")
def asks() -> Loaded:
    return load_text(ASKS, name="some/asks")


def placed(loaded: Loaded, action: Action, position: str) -> Placement:
    found = placements(loaded.scenario, action)
    return next(one for one in found if one.position.name == position)


def steps_of(loaded: Loaded) -> list[str]:
    return [next(iter(type(step).model_fields)) for step in loaded.scenario.client]


def first(loaded: Loaded, action: Action) -> str:
    return placements(loaded.scenario, action)[0].name


@pytest.mark.parametrize("action", ["interrupt", "steer"])
def test_action_that_names_the_turn_begins_where_its_id_is_known(
    asks: Loaded, action: Action
) -> None:
    assert first(asks, action) == f"{action}@turn-start:answered"


@pytest.mark.parametrize(
    "action", ["second-turn", "disconnect", "kill", "slices", "reset", "reconnect"]
)
def test_action_that_names_no_turn_begins_at_once(asks: Loaded, action: Action) -> None:
    assert first(asks, action) == f"{action}@turn-start:sent"


def test_answer_begins_where_something_is_asked(asks: Loaded) -> None:
    assert first(asks, "answer") == "answer@approval:asked"


def test_answer_has_no_position_where_nothing_is_asked() -> None:
    text = ASKS.replace("  - answer: {to: item/commandExecution/requestApproval", "  #")
    assert placements(load_text(text).scenario, "answer") == []


def test_every_action_ends_after_the_turn(asks: Loaded) -> None:
    ends = {placements(asks.scenario, action)[-1].position.name for action in ACTIONS}
    assert ends == {"turn:completed"}


def test_interrupt_is_placed_before_the_answer_and_the_rest_follows(asks: Loaded) -> None:
    raced = derive_race(asks, placed(asks, "interrupt", "approval:asked"))
    before = ["start_thread", "start_turn", "reach", "act"]
    after = ["answer", "open", "settle", "start_turn", "wait", "read_thread"]
    assert steps_of(raced) == [*before, *after]
    answer = raced.scenario.client[4]
    assert isinstance(answer, AnswerStep)
    assert answer.answer.standing


def test_answer_of_the_file_comes_before_what_it_leads_to(asks: Loaded) -> None:
    raced = derive_race(asks, placed(asks, "steer", "approval:answered"))
    assert steps_of(raced)[:5] == ["start_thread", "start_turn", "answer", "reach", "act"]


PIPED = """
title: held by a pipe
races: all
workspace: {pipes: [go-on]}
model: [{reply: [{run: "read line < go-on"}]}, {reply: [{message: "a"}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: "go", as: u}
  - open: go-on
"""


@pytest.mark.parametrize(
    ("position", "opened"),
    [("item:1:running", ["go-on", "race"]), ("model:2:called", ["race"]), ("turn:completed", [])],
)
def test_pipe_is_opened_after_the_action_only_where_it_holds(
    position: str, opened: list[str]
) -> None:
    loaded = load_text(PIPED)
    steps = derive_race(loaded, placed(loaded, "steer", position)).scenario.client
    act = next(at for at, step in enumerate(steps) if "act" in type(step).model_fields)
    before, after = steps[:act], steps[act:]
    assert [one.open for one in after if isinstance(one, OpenStep)] == opened
    rest = [] if "go-on" in opened else ["go-on"]
    assert [one.open for one in before if isinstance(one, OpenStep)] == rest


def test_nothing_follows_the_end_of_the_connection(asks: Loaded) -> None:
    raced = derive_race(asks, placed(asks, "disconnect", "model:1:called"))
    assert steps_of(raced) == ["start_thread", "start_turn", "reach", "act"]
    assert raced.scenario.needs_fresh_server


def test_client_of_a_server_that_listens_comes_back(asks: Loaded) -> None:
    raced = derive_race(asks, placed(asks, "disconnect", "model:1:called"), server_listens=True)
    began = ["start_thread", "start_turn", "reach", "act", "connect"]
    new = ["answer", "open", "start_thread", "start_turn", "wait", "read_thread"]
    assert steps_of(raced) == [*began, *new]
    assert raced.scenario.needs_fresh_server


@pytest.mark.parametrize("listens", [False, True])
def test_client_that_is_back_at_once_goes_on_with_its_thread(asks: Loaded, listens: bool) -> None:
    placement = placed(asks, "reconnect", "model:1:called")
    raced = derive_race(asks, placement, server_listens=listens)
    began = ["start_thread", "start_turn", "reach", "act"]
    new = ["answer", "open", "start_thread", "start_turn", "wait", "read_thread", "revive"]
    assert steps_of(raced) == [*began, *new]
    assert raced.scenario.needs_fresh_server


def test_slices_change_no_step(asks: Loaded) -> None:
    sliced, second = (
        derive_race(asks, placed(asks, action, "model:1:called"))
        for action in ("slices", "second-turn")
    )
    assert steps_of(sliced) == steps_of(second)


def test_server_that_is_killed_is_started_again_before_the_gate_opens(asks: Loaded) -> None:
    raced = derive_race(asks, placed(asks, "kill", "turn-start:sent"))
    began = ["start_thread", "begin", "reach", "act", "again"]
    new = ["answer", "open", "start_thread", "start_turn", "wait", "read_thread", "revive"]
    assert steps_of(raced) == [*began, *new]


def test_demands_on_the_files_own_play_are_left_out_of_races(asks: Loaded) -> None:
    raced = derive_race(asks, placed(asks, "interrupt", "delta:1")).scenario
    assert raced.expect.turns == {}
    assert [step.expect for step in raced.model if not isinstance(step, str)] == [None] * 6


def test_play_has_an_id_that_names_the_placement_and_lines_of_the_file(asks: Loaded) -> None:
    raced = derive_race(asks, placed(asks, "interrupt", "item:1:started"))
    assert raced.id == "some/asks@interrupt@item:1:started"
    turn = asks.line_of("client", 1)
    lines = [raced.line_of("client", index) for index in range(len(raced.scenario.client))]
    assert lines == [asks.line_of("client", 0), *[turn] * (len(lines) - 1)]
    assert raced.path == Path("some/asks")


def test_deviation_of_a_scenario_is_one_of_its_races_too() -> None:
    row = Row("turn.completes", "turn 1", Verdict.FAIL, Level.MUST)
    entry = Deviation(rule="turn.completes", scenario="some/*", reason="it is so")
    assert mark_known_row(row, "some/asks@kill@turn:started", [entry]).verdict is Verdict.KNOWN
    assert mark_known_row(row, "other/asks@kill@turn:started", [entry]).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("race", "markers", "expected"),
    [
        ("", "", Selection()),
        ("", "race", Selection(races=ALL)),
        ("all", "", Selection(scenarios=False, races=ALL)),
        ("kill", "", Selection(scenarios=False, races=(("kill", ""),))),
        (
            "interrupt,steer",
            "",
            Selection(scenarios=False, races=(("interrupt", ""), ("steer", ""))),
        ),
        (
            "kill@item:1:started, steer",
            "",
            Selection(scenarios=False, races=(("kill", "item:1:started"), ("steer", ""))),
        ),
    ],
)
def test_requested_races_are_made(race: str, markers: str, expected: Selection) -> None:
    assert selection(race, markers) == expected


def test_unknown_action_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match=r"--race steal: .*'steer'"):
        selection("steal", "")
