"""The positions of a race, against lists that were written by hand from the files' texts."""

from __future__ import annotations

import pytest

from harness.model.parts import Hold
from harness.model.script import Script
from harness.scenario.loader import Loaded, ScenarioError, load_text
from harness.scenario.positions import RACE_GATE, Position, insert_gate, positions, unroll_script

CLIENT = """
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: "go", as: u}
"""
WAIT = "  - wait: {turn: u}\n"


def scenario(model: str, *, answers: str = "", more: str = "") -> Loaded:
    return load_text(f"title: raced\nraces: all\n{more}model:\n{model}{CLIENT}{answers}{WAIT}")


def told(loaded: Loaded) -> list[str]:
    """Each position by its name; a `!` where a gate, or a question of the server, holds it."""
    return [f"{one.name}{'!' if one.is_settled else ''}" for one in positions(loaded.scenario)]


def at(loaded: Loaded, name: str) -> Position:
    return next(one for one in positions(loaded.scenario) if one.name == name)


BEGIN = ["turn-start:sent", "turn-start:answered", "turn:started"]
END = ["model:done", "turn:completed!"]


def test_plain_turn() -> None:
    loaded = scenario('  - reply: [{message: {deltas: ["a", "b"]}}]\n')
    call = ["model:1:called!", "item:1:started!", "delta:1!", "delta:2!", "item:1:completed!"]
    assert told(loaded) == [*BEGIN, *call, *END]


def test_message_without_deltas_is_one_delta() -> None:
    loaded = scenario('  - reply: [{message: "a"}]\n')
    call = ["model:1:called!", "item:1:started!", "delta:1!", "item:1:completed!"]
    assert told(loaded) == [*BEGIN, *call, *END]


def test_reasoning_in_blocks_and_a_message_after_it() -> None:
    loaded = scenario(
        '  - reply: [{reasoning: {summary: [["a", "b"], "c"], raw: ["d"]}}, {message: "e"}]\n'
    )
    first = ["item:1:started!", "delta:1!", "delta:2!", "delta:3!", "delta:4!", "item:1:completed!"]
    second = ["item:2:started!", "delta:5!", "item:2:completed!"]
    assert told(loaded) == [*BEGIN, "model:1:called!", *first, *second, *END]


def test_command_is_on_its_way_until_the_model_is_asked_again() -> None:
    loaded = scenario('  - reply: [{run: "ls"}]\n  - reply: [{message: "a"}]\n')
    first = ["model:1:called!", "item:1:started", "item:1:completed"]
    second = ["model:2:called!", "item:2:started!", "delta:1!", "item:2:completed!"]
    assert told(loaded) == [*BEGIN, *first, *second, *END]


def test_command_that_reads_from_a_pipe_is_held_there() -> None:
    text = (
        "title: raced\nraces: all\nworkspace: {pipes: [begun, go-on]}\nmodel:\n"
        '  - reply: [{run: "echo a > begun; read line < go-on; ls"}]\n'
        f'  - reply: [{{message: "a"}}]\n{CLIENT}  - wait: {{gate: begun}}\n  - open: go-on\n'
    )
    loaded = load_text(text)
    first = ["model:1:called!", "item:1:started", "item:1:running!", "item:1:completed"]
    second = ["model:2:called!", "item:2:started!", "delta:1!", "item:2:completed!"]
    assert told(loaded) == [*BEGIN, *first, *second, *END]
    running = at(loaded, "item:1:running")
    assert running.pipe == "go-on"
    assert [(one.kind, one.method) for one in running.sights] == [
        ("started", "commandExecution"),
        ("pipe", "begun"),
    ]


def test_answers_of_the_file_are_the_questions_of_its_positions() -> None:
    answer = "  - answer: {to: item/commandExecution/requestApproval, decision: accept}\n"
    model = '  - reply: [{run: "ls"}]\n  - reply: [{patch: {add: {x: "y"}}}]\n'
    loaded = scenario(model, answers=answer)
    first = ["item:1:started", "approval:asked!", "approval:answered", "item:1:completed"]
    second = ["model:2:called!", "item:2:started", "item:2:completed"]
    assert told(loaded) == [*BEGIN, "model:1:called!", *first, *second, *END]
    assert at(loaded, "approval:asked").answers == 0
    assert at(loaded, "approval:answered").answers == 1


def test_cancel_is_the_end_of_what_the_turn_comes_to() -> None:
    answer = "  - answer: {to: item/commandExecution/requestApproval, decision: cancel}\n"
    model = '  - reply: [{run: "ls"}, {run: "rm x"}]\n  - reply: [{message: "b"}]\n'
    called = ["model:1:called!", "item:1:started", "approval:asked!", "approval:answered"]
    expected = [*BEGIN, *called, "item:1:completed", "turn:completed!"]
    assert told(scenario(model, answers=answer)) == expected


def test_second_question_has_a_number() -> None:
    answers = (
        "  - answer: {to: item/commandExecution/requestApproval, decision: accept}\n"
        "  - answer: {to: item/fileChange/requestApproval, decision: decline}\n"
    )
    model = '  - reply: [{run: "ls"}]\n  - reply: [{patch: {add: {x: "y"}}}]\n'
    names = [one.name for one in positions(scenario(model, answers=answers).scenario)]
    asked = [name for name in names if name.startswith("approval")]
    assert asked == [
        "approval:asked",
        "approval:answered",
        "approval:2:asked",
        "approval:2:answered",
    ]


def test_stream_that_is_cut_twice_is_called_three_times() -> None:
    loaded = scenario(
        '  - reply: [{message: {deltas: ["a", {disconnect: {times: 2}}]}}]\n'
        '  - reply: [{message: "b"}]\n'
    )
    assert told(loaded) == [
        *BEGIN,
        *("model:1:called!", "item:1:started!", "delta:1!", "retry:1"),
        *("model:2:called!", "item:2:started!", "delta:2!", "retry:2"),
        *("model:3:called!", "item:3:started!", "delta:3!", "item:3:completed!"),
        *END,
    ]


def test_failed_call_cannot_be_held_and_the_next_one_can() -> None:
    loaded = scenario('  - fail: {status: 500, times: 2}\n  - reply: [{message: "b"}]\n')
    third = ["model:3:called!", "item:1:started!", "delta:1!", "item:1:completed!"]
    assert told(loaded) == [*BEGIN, "retry:1", "retry:2", *third, *END]
    assert at(loaded, "turn:started").hold == (2, "reply", 0)
    assert at(loaded, "retry:1").hold == (2, "reply", 0)


def test_reply_that_is_cut_at_a_named_event_has_no_positions_of_its_own() -> None:
    loaded = scenario(
        '  - reply: [{message: "a"}, {disconnect: {before: response.completed}}]\n'
        '  - reply: [{message: "b"}]\n'
    )
    second = ["model:2:called!", "item:1:started!", "delta:1!", "item:1:completed!"]
    assert told(loaded) == [*BEGIN, "model:1:called!", "retry:1", *second, *END]


def test_gates_of_the_file_are_no_part_of_a_race() -> None:
    loaded = scenario('  - reply: [{hold: g}, {message: {deltas: ["a", {hold: h}, "b"]}}]\n')
    script = unroll_script(loaded.scenario)
    assert [gate for step in script for gate in step.gates()] == []
    call = ["model:1:called!", "item:1:started!", "delta:1!", "delta:2!", "item:1:completed!"]
    assert told(loaded) == [*BEGIN, *call, *END]


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("model:1:called", [], ["reasoning a", "reasoning b", "message c", "message d"]),
        ("item:1:started", [], ["reasoning a", "reasoning b", "message c", "message d"]),
        ("delta:1", ["reasoning a"], ["reasoning b", "message c", "message d"]),
        ("item:1:completed", ["reasoning a", "reasoning b"], ["message c", "message d"]),
        ("delta:3", ["reasoning a", "reasoning b", "message c"], ["message d"]),
        ("item:2:completed", ["reasoning a", "reasoning b", "message c", "message d"], []),
    ],
)
def test_gate_stands_between_what_came_before_and_what_comes_after(
    name: str, before: list[str], after: list[str]
) -> None:
    loaded = scenario(
        '  - reply: [{reasoning: {summary: ["a", "b"]}}, {message: {deltas: ["c", "d"]}}]\n'
    )
    held = insert_gate(unroll_script(loaded.scenario), at(loaded, name).hold)
    said = _said(held)
    gate = said.index(RACE_GATE)
    assert said[:gate] == before
    assert said[gate + 1 :] == after


def _said(script: Script) -> list[str]:
    found: list[str] = []
    for step in script:
        for path, entry in step.entries():
            if isinstance(entry, Hold):
                found.append(entry.hold)
            elif isinstance(entry, str):
                found.append(f"{path[2]} {entry}")
    return found


MODELS = {
    "two turns": (
        '  - reply: [{message: "a"}]\n',
        '  - start_turn: {thread: t, text: "again", as: v}\n',
        "races need exactly one start_turn step, in client",
    ),
    "a model for each thread": (
        '  t:\n    - reply: [{message: "a"}]\n',
        "",
        "races need the model's side of one thread, a list",
    ),
    "a model without an end": (
        "  - fail: {status: 500, times: until-turn-ends}\n",
        "",
        "races need a model's side of known length; times: until-turn-ends has none",
    ),
}


@pytest.mark.parametrize("what", MODELS)
def test_scenario_that_cannot_be_raced_is_refused_where_it_says_races(what: str) -> None:
    model, more, message = MODELS[what]
    with pytest.raises(ScenarioError) as refused:
        scenario(model, answers=more)
    assert refused.value.message == message
    assert refused.value.place[0] == 2


def test_action_that_does_not_exist_is_refused_by_name() -> None:
    text = 'title: x\nraces: [interupt]\nmodel: [{reply: [{message: "a"}]}]\n'
    with pytest.raises(ScenarioError, match=r"found 'interupt'.*did you mean 'interrupt'"):
        load_text(f"{text}{CLIENT}{WAIT}")
