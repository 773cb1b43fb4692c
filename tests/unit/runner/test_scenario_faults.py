"""Faults in scenarios: the effect of each on passing messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.errors import UsageError
from harness.faults.live.chain import FaultChain
from harness.play.scenario_faults import live_faults
from harness.scenario.faults import FaultEntry
from harness.scenario.loader import load_text
from harness.trace.frame import Direction

# Messages by letters: those of the server small, of the client in capitals.
SAID: dict[str, dict[str, Any]] = {
    "a": {"method": "turn/started", "params": {"turn": {"id": "u1"}, "threadId": "t1"}},
    "b": {"method": "item/started", "params": {"item": {"type": "plan", "id": "i"}}},
    "c": {"method": "turn/completed", "params": {"threadId": "t1"}},
    "T": {"method": "turn/start", "id": 1, "params": {}},
    "t": {"id": 1, "result": {}},
    "q": {"method": "item/tool/requestUserInput", "id": 9, "params": {}},
    "Q": {"id": 9, "result": {}},
    "x": {"method": "x/y", "params": {"of": "t1", "list": ["u1", None]}},
}
LETTERS = {json.dumps(message): letter for letter, message in SAID.items()}


def entries(written: str) -> list[FaultEntry]:
    lines = "\n".join(f"  {line}" for line in written.splitlines())
    text = f"title: one\nfaults:\n{lines}\nclient:\n  - start_thread: {{as: t}}\n"
    return load_text(text).scenario.faults


def story(written: str, said: str) -> str:
    """Return the messages that pass at each step, as `a|b|`; a message not in `SAID` is a dot."""
    chain = FaultChain(live_faults(entries(written)))
    steps: list[str] = []
    for letter in said:
        way = Direction.TO_TARGET if letter.isupper() else Direction.FROM_TARGET
        passed = chain.feed(json.dumps(SAID[letter]).encode(), way)
        steps.append("".join(LETTERS.get(one.raw.decode(), ".") for one in passed))
    return "|".join([*steps, "".join(LETTERS[one.raw.decode()] for one in chain.end())])


@pytest.mark.parametrize(
    ("written", "said", "passed"),
    [
        ("- drop: turn/started", "abab", "|b||b|"),
        ("- {drop: turn/started, once: true}", "abab", "|b|a|b|"),
        ("- {drop: turn/started, after: 1}", "aaab", "a|||b|"),
        ("- drop: {method: turn/started, nth: 2}", "aaab", "a||a|b|"),
        ("- drop: {item: plan}", "abc", "a||c|"),
        ("- drop: {answer_to: turn/start}", "Tta", "T||a|"),
        ("- drop: {answer_to: item/tool/requestUserInput, from: client}", "qQ", "q||"),
        ("- drop: {method: turn/start, from: client}", "TtT", "|t||"),
        ("- duplicate: turn/completed", "ac", "a|cc|"),
        ("- {delay: turn/started, until: turn/completed}", "abc", "|b|ca|"),
        ("- {delay: turn/started, until: {method: turn/start, from: client}}", "abTc", "|b|Ta|c|"),
        ("- {delay: turn/started, until: turn/completed}", "ab", "|b|a"),
        ("- {delay: turn/started, messages: 2}", "aTbc", "|T|b|ca|"),
        ("- reorder: turn/started", "abc", "|ba|c|"),
        ("- cut: turn/started", "ab", ".|b|"),
        ('- {inject: "no json", behind: turn/started}', "ab", "a.|b|"),
        ("- drop: turn/started\n- duplicate: turn/completed", "ac", "|cc|"),
    ],
)
def test_an_operation_changes_the_messages_that_it_picks(
    written: str, said: str, passed: str
) -> None:
    assert story(written, said) == passed


def test_an_injected_message_takes_values_of_the_one_before_it() -> None:
    message = "{method: x/y, params: {of: $.params.threadId, list: [$.params.turn.id, $.no.such]}}"
    written = f"- inject: {message}\n  behind: turn/started"
    assert story(written, "ab") == "ax|b|"


def test_a_message_can_be_injected_in_the_name_of_the_client() -> None:
    chain = FaultChain(
        live_faults(entries("- {inject: {method: x}, behind: turn/started, to: server}"))
    )
    passed = chain.feed(json.dumps(SAID["a"]).encode(), Direction.FROM_TARGET)
    assert [one.direction for one in passed] == [Direction.FROM_TARGET, Direction.TO_TARGET]


def test_a_cut_leaves_the_first_half_of_the_line() -> None:
    chain = FaultChain(live_faults(entries("- cut: turn/started")))
    raw = json.dumps(SAID["a"]).encode()
    assert [one.raw for one in chain.feed(raw, Direction.FROM_TARGET)] == [raw[: len(raw) // 2]]


def test_a_fault_by_its_name_is_that_of_the_list() -> None:
    (live,) = live_faults(entries("- {fault: turn-ends-twice, after: 1}"))
    assert live.fault.rule == "turn.completed-once"


def test_a_name_that_no_live_fault_has_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown fault 'schema-kept'"):
        live_faults(entries("- fault: schema-kept"))
