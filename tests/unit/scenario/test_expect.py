"""A scenario's own expectations: partial, with alternatives, each unmet one in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.model.model import ScriptedModel
from harness.model.wire.responses import ResponsesEncoder
from harness.scenario.expect import Problem, SessionReading, unmet_expectations
from harness.scenario.loader import load_text
from harness.scenario.player import Cast
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder
from harness.trace.views import conversation_of

from .fake_server import THREAD, TURN, completed, started

HEAD = """
title: a scenario
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: hello, as: u}
"""


def item(kind: str, **fields: Any) -> list[dict[str, Any]]:
    body = {"id": f"item_{kind}_{len(fields)}", "type": kind}
    about = {"threadId": THREAD, "turnId": TURN}
    return [
        {"method": "item/started", "params": {**about, "item": body}},
        {"method": "item/completed", "params": {**about, "item": {**body, **fields}}},
    ]


SAID = [*item("userMessage", content=[]), *item("agentMessage", text="Hello.", phase=None)]


def problems(
    expect: str,
    *,
    said: list[dict[str, Any]] | None = None,
    end: str = "completed",
    model: str = "[]",
    calls: int = 0,
    cwd: Path = Path("/nowhere"),
) -> list[Problem]:
    """Return the unmet part of `expect` after a turn with these messages."""
    text = f"{HEAD}model: {model}\nexpect: {expect}\n"
    loaded = load_text(text)
    recorder = Recorder()
    ask = {"method": "turn/start", "id": 1, "params": {"threadId": THREAD, "input": []}}
    recorder.record(json.dumps(ask).encode(), Direction.TO_TARGET)
    answer = {"id": 1, "result": {"turn": {"id": TURN, "status": "inProgress", "items": []}}}
    for message in [answer, started(), *(SAID if said is None else said), completed(status=end)]:
        recorder.record(json.dumps(message).encode(), Direction.FROM_TARGET)
    script = ScriptedModel(loaded.scenario.scripts(), ResponsesEncoder())
    for _ in range(calls):
        script.answer(b'{"input": [{"role": "user", "content": "hello"}]}')
    cast = Cast(threads={"t": THREAD}, turns={"u": TURN}, thread_of={"u": THREAD})
    return unmet_expectations(
        loaded.scenario, SessionReading(cast, conversation_of(recorder.trace)), script, cwd
    )


def sentences(expect: str, **given: Any) -> list[str]:
    return [problem.message for problem in problems(expect, **given)]


@pytest.mark.parametrize(
    "expect",
    [
        "{}",
        "{items: [userMessage, agentMessage]}",
        "{items: [agentMessage]}",
        "{items: [{agentMessage: {text: Hello.}}]}",
        "{items: [{agentMessage: {phase: null}}]}",
        "{items: [{agentMessage: {text: {contains: ello}}}]}",
        "{turns: {u: completed}}",
        "{turns: {u: [failed, completed]}}",
        "{model_calls: 0}",
        "{any_of: [{items: [plan]}, {items: [agentMessage]}]}",
        "{workspace: {gone.txt: absent}}",
    ],
)
def test_met(expect: str) -> None:
    assert problems(expect) == []


@pytest.mark.parametrize(
    ("expect", "sentence"),
    [
        (
            "{items: [agentMessage, userMessage]}",
            "items[1]: no userMessage in its place; one came before items[0]; "
            "found: userMessage, agentMessage",
        ),
        (
            "{items: [{agentMessage: {text: Bye.}}]}",
            'items[0]: no agentMessage with text: "Bye." in its place; the nearest, item '
            'item_agentMessage_2, has params.item.text: "Hello.", expected "Bye."; '
            "found: userMessage, agentMessage",
        ),
        (
            "{items: [{agentMessage: {text: {contains: Bye}}}]}",
            'items[0]: no agentMessage with text: {"contains": "Bye"} in its place; the nearest, '
            'item item_agentMessage_2, has params.item.text: "Hello.", expected a text with "Bye" '
            "in it; found: userMessage, agentMessage",
        ),
        (
            "{items: [{agentMessage: {phase: {contains: final}}}]}",
            'items[0]: no agentMessage with phase: {"contains": "final"} in its place; the '
            "nearest, item item_agentMessage_2, has params.item.phase: null, expected a text with "
            '"final" in it; found: userMessage, agentMessage',
        ),
        ("{items: [plan]}", "items[0]: no plan in its place; found: userMessage, agentMessage"),
        ("{turns: {u: failed}}", 'turn u: expected failed; found params.turn.status: "completed"'),
        ("{model_calls: 2}", "model calls: expected 2; found 0 (the model was never called)"),
        (
            "{any_of: [{items: [plan], model_calls: 3}, {model_calls: 1}]}",
            "none of 2 accepted outcomes; the nearest: model calls: expected 1; found 0 "
            "(the model was never called)",
        ),
        ("{workspace: {made.txt: hello}}", 'workspace: made.txt is absent; expected "hello"'),
    ],
)
def test_unmet(expect: str, sentence: str) -> None:
    assert sentences(expect) == [sentence]


def test_member_that_is_missing_is_not_null() -> None:
    said = item("agentMessage", text="Hello.")
    expect = "{items: [{agentMessage: {phase: null}}]}"
    assert sentences(expect, said=said) == [
        "items[0]: no agentMessage with phase: null in its place; the nearest, item "
        "item_agentMessage_1, has params.item.phase: nothing, expected null; found: agentMessage"
    ]


def test_last_form_of_an_item_counts_at_the_place_of_its_first() -> None:
    first, second = item("reasoning"), item("agentMessage", text="x")
    said = [first[0], second[0], second[1], first[1]]
    assert problems("{items: [reasoning, {agentMessage: {text: x}}]}", said=said) == []


def test_workspace_is_compared_by_content(tmp_path: Path) -> None:
    (tmp_path / "made.txt").write_text("other\n")
    (tmp_path / "bad.txt").write_bytes(b"\xff")
    expect = '{workspace: {made.txt: "hello\\n", bad.txt: x, kept.txt: absent}}'
    found = sentences(expect, cwd=tmp_path)
    assert found[0] == (
        'workspace: made.txt: line 1, byte 0: expected "hello\\n"; found "other\\n"'
    )
    assert found[1] == ("workspace: bad.txt: line 1, byte 0: expected bytes 78; found bytes ff")
    assert len(found) == 2
    (tmp_path / "kept.txt").touch()
    (tmp_path / "kept.txt").write_text("there")
    exists = 'workspace: kept.txt exists; expected absent; it has "there"'
    assert exists in sentences(expect, cwd=tmp_path)


def test_a_file_that_differs_is_shown_as_a_bounded_difference(tmp_path: Path) -> None:
    lines = [f"line {number}\n" for number in range(100)]
    (tmp_path / "made.txt").write_text("".join([*lines[:60], "another\n", *lines[61:]]))
    wanted = json.dumps("".join(lines))
    [problem] = problems(f"{{workspace: {{made.txt: {wanted}}}}}", cwd=tmp_path)
    assert problem.place == ("expect", "workspace", "made.txt")
    assert "line 61, byte 470: expected …" in problem.message
    assert "another" in problem.message
    assert {"-line 60", "+another"} <= set(problem.detail)
    (tmp_path / "made.txt").write_text("\x1b[31m" * 3000)
    [problem] = problems(f"{{workspace: {{made.txt: {wanted}}}}}", cwd=tmp_path)
    assert len(problem.detail) <= 21
    assert all(line.isprintable() and len(line) <= 161 for line in problem.detail)


def test_an_item_that_differs_names_its_message_and_its_line_of_the_file() -> None:
    [problem] = problems("{items: [userMessage, {agentMessage: {text: Bye.}}]}")
    [(seq, spot)] = problem.spots
    assert problem.place == ("expect", "items", 1, "agentMessage", "text")
    assert spot.path == ("params", "item", "text")
    assert seq == 6


def test_a_turn_that_failed_tells_its_error() -> None:
    [sentence] = sentences("{turns: {u: interrupted}}", end="failed")
    assert sentence.startswith('turn u: expected interrupted; found params.turn.status: "failed"')


def test_step_of_the_model_that_was_never_asked_for_is_a_problem() -> None:
    model = "[{reply: [{message: x}]}, {reply: [{message: y}]}]"
    assert sentences("{}", model=model, calls=1) == [
        "1 model step(s) were never asked for; call 1: open"
    ]
    assert problems("{}", model=model, calls=2) == []
    assert problems("{model_calls: 1}", model=model, calls=1) == []


def test_call_beyond_the_script_is_a_problem() -> None:
    assert sentences("{}", model="[]", calls=1) == ["call 1 is not in the script"]


def told_diff(diff: str) -> dict[str, Any]:
    params = {"threadId": THREAD, "turnId": TURN, "diff": diff}
    return {"method": "turn/diff/updated", "params": params}


@pytest.mark.parametrize(
    ("expect", "sentences"),
    [
        ("{diffs: {u: {contains: [b.txt], lacks: [a.txt]}}}", []),
        (
            "{diffs: {u: {contains: [a.txt, b.txt], lacks: [b.t]}}}",
            [
                "diff of turn u: the last one lacks 'a.txt': \"+++ b.txt\"",
                "diff of turn u: the last one has 'b.t': \"+++ b.txt\"",
            ],
        ),
    ],
)
def test_the_last_diff_of_a_turn_counts(expect: str, sentences: list[str]) -> None:
    said = [*SAID, told_diff("+++ a.txt"), told_diff("+++ b.txt")]
    assert [one.message for one in problems(expect, said=said)] == sentences


def test_a_turn_without_a_diff_lacks_what_it_must_have_and_nothing_else() -> None:
    (missing,) = problems("{diffs: {u: {contains: [a.txt]}}}")
    assert missing.message == "diff of turn u: found no turn/diff/updated"
    assert problems("{diffs: {u: {lacks: [a.txt]}}}") == []


RAN = item("commandExecution", status="completed", exitCode=7)
SILENT = item("commandExecution", status="completed")
NULL = item("commandExecution", status="completed", exitCode=None)


@pytest.mark.parametrize("said", [RAN, SILENT, NULL])
def test_member_may_have_one_of_several_values_or_be_absent(said: list[dict[str, Any]]) -> None:
    wanted = "{items: [{commandExecution: {exitCode: {any_of: [7, absent]}}}]}"
    assert sentences(wanted, said=said) == []


def test_member_that_has_none_of_its_values_is_told_with_all_of_them() -> None:
    wanted = "{items: [{commandExecution: {exitCode: {any_of: [3, absent]}}}]}"
    (problem,) = sentences(wanted, said=RAN)
    assert "has params.item.exitCode: 7, expected 3 or absent" in problem
    both = "{items: [{commandExecution: {status: {any_of: [declined, failed]}}}]}"
    (problem,) = sentences(both, said=RAN)
    assert 'params.item.status: "completed"' in problem
    assert 'expected "declined" or "failed"; found' in problem
    assert sentences("{items: [{commandExecution: {exitCode: 7}}]}", said=SILENT) != []


def test_number_of_model_calls_may_be_one_of_several() -> None:
    three = "[{reply: [{message: a}]}, {reply: [{message: b}]}, {reply: [{message: c}]}]"
    assert sentences("{model_calls: [1, 2]}", model=three, calls=2) == []
    (problem,) = sentences("{model_calls: [1, 2]}", model=three, calls=3)
    assert problem.startswith("model calls: expected 1 or 2; found 3 ")


def test_step_for_certain_calls_is_not_missed() -> None:
    certain = '[{when: {input_contains: ["good bye"]}, reply: [{message: x}]}]'
    assert sentences("{}", model=certain) == []
    assert sentences("{}", model="[{reply: [{message: x}]}]") != []
