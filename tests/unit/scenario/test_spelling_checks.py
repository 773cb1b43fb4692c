"""Checks of protocol names in scenarios: accepted names, and the source of the list.

What is refused, and where, is told by the texts of fixtures/bad_scenarios.txt.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from harness.play.lexicon import protocol_lexicon
from harness.protocol.spec.listed import unlisted_members
from harness.protocol.spec.loading import load_book
from harness.protocol.wire.methods import METHODS
from harness.scenario.bundled import bundled_folder
from harness.scenario.lexicon import Kind
from harness.scenario.loader import Loaded, ScenarioError, find_scenarios, load, load_text
from harness.scenario.words import protocol_words

BOOK, LEXICON = load_book(), protocol_lexicon()
PROBES = Path(__file__).resolve().parents[3] / "harness/play/session/probes"
EVERY = find_scenarios([bundled_folder(), PROBES])
AREAS = sorted({path.relative_to(root).parts[0] for root, path in EVERY})


def scenario(steps: str, more: str = "") -> Loaded:
    text = f"title: one\n{more}client:\n  - start_thread: {{as: t}}\n{steps}"
    return load_text(text, lexicon=LEXICON)


@pytest.mark.parametrize("area", AREAS)
def test_every_word_of_a_bundled_scenario_is_one(area: str) -> None:
    for root, path in EVERY:
        if path.relative_to(root).parts[0] == area:
            assert load(path, root=root, lexicon=LEXICON).scenario.client, path


LEFT_ALONE = {
    "a request that is wrong on purpose": (
        "  - request: {method: thread/strat, params: {thredId: 1}, deliberate: true}\n"
    ),
    "a value that is wrong on purpose": (
        "  - request: {method: thread/list, params: {sortKey: 7}, deliberate: true}\n"
    ),
    "a notification that is wrong on purpose": (
        "  - notify: {method: initialised, deliberate: true}\n"
    ),
    "a decision that is wrong on purpose": (
        "  - answer: {to: item/fileChange/requestApproval, decision: perhaps, deliberate: true}\n"
    ),
    "raw bytes": '  - send_raw: {line: "{\\"method\\": \\"thread/strat\\"}"}\n',
    "a value that comes back later": (
        "  - request: {method: thread/read, params: {threadId: $t.thread.id, includeTurns: $t.x}}"
    ),
    "params that come back later": "  - request: {method: thread/read, params: $t.thread}\n",
    "a reference within a decision": (
        "  - answer: {to: item/fileChange/requestApproval, result: {decision: $t.word}}\n"
    ),
    "a member that only one server has": (
        "  - request: {method: thread/list, params: {experimentalFilter: x}}\n"
    ),
    "an error info that only one server has": (
        "  - wait: {notification: error, where: {error.agentErrorInfo: CyberPolicy}}\n"
    ),
    "a method whose params are not shown": (
        "  - request: {method: thread/name/set, params: {threadId: $t.thread.id, nmae: x}}\n"
    ),
    "a notification that goes with one of two methods": (
        "  - wait: {notification: [error, turn/completed], where: {turn.status: failed}}\n"
    ),
    "an index of a list": (
        "  - wait: {notification: item/started, where: {item.type: userMessage, "
        "item.content.1.text: x, item.content.0.type: text}}\n"
    ),
    "an index of a list whose item has no type": (
        "  - wait: {notification: turn/completed, where: {turn.items.0.type: userMessage}}\n"
    ),
    "a member of one server, by a reference": (
        "  - request: {method: thread/read, params: {threadId: $t.vendorColour.id}}\n"
    ),
    "a phase of one server": (
        "  - start_thread: {as: u}\nexpect: {items: [{agentMessage: {phase: partial_answer}}]}\n"
    ),
    "other braces": "  - start_thread: {as: u, params: {config: {x: '{cmd} {} {{cwd}} {a b}'}}}\n",
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_words_that_may_be_meant_so_are_left_alone(case: str) -> None:
    assert len(scenario(LEFT_ALONE[case]).scenario.client) == 2


EXTENDED = """\
  - request: {method: mine/ping, params: {any: thing}}
  - notify: {method: mine/note}
  - wait: {notification: [mine/pong, turn/completed]}
  - answer: {to: mine/question, decision: whatever}
  - request: {method: thread/list, params: {limits: 3}}
  - wait: {notification: item/started, where: {item.type: myItem}}
  - wait: {notification: turn/completed, where: {turn.status: parked}}
expect: {items: [{myItem: {state: done}}, agentMessage]}
"""
NAMES = ["mine/ping", "mine/note", "mine/pong", "mine/question", "limits", "myItem", "parked"]


def test_further_words_of_a_server_are_named_as_extensions() -> None:
    assert scenario(EXTENDED, f"extensions: [{', '.join(NAMES)}]\n").scenario.extensions == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_of_them_is_refused_without(name: str) -> None:
    others = [one for one in NAMES if one != name]
    with pytest.raises(ScenarioError, match=repr(name)):
        scenario(EXTENDED, f"extensions: [{', '.join(others)}]\n")


USES = {
    "a member of an expected item": "expect: {items: [{agentMessage: {vendorColour: a}}]}",
    "a value of an expected item": "expect: {items: [{agentMessage: {phase: vendorColour}}]}",
    "a step of a reference": (
        "  - request: {method: thread/read, params: {threadId: $t.vendorColour}}"
    ),
    "a member of an item in any_of": (
        "expect: {any_of: [{items: [{agentMessage: {vendorColour: a}}]}]}"
    ),
    "a path of where": "  - wait: {notification: turn/completed, where: {turn.vendorColour: a}}",
    "a whole path of where": "  - wait: {notification: turn/completed, where: {vendorColour: a}}",
    "a value of where": "  - wait: {notification: turn/completed, where: {turn.x: vendorColour}}",
    "a path of an answer's where": (
        "  - answer: {to: item/fileChange/requestApproval, where: {a.vendorColour: 1}, "
        "decision: accept}"
    ),
    "a path of a message": "  - wait: {message: {params.vendorColour: a}}",
    "a member of a request": (
        "  - request: {method: thread/read, params: {threadId: $t.thread.id, vendorColour: 1}}"
    ),
    "a member of start_thread": "  - start_thread: {as: v, params: {vendorColour: 1}}",
    "a member of start_turn": (
        "  - start_turn: {thread: t, text: hi, as: u, params: {vendorColour: 1}}"
    ),
    "a member of an input": (
        "  - start_turn: {thread: t, as: u, input: [{type: text, text: x, vendorColour: 1}]}"
    ),
    "a member of a result": (
        "  - answer: {to: item/fileChange/requestApproval, "
        "result: {decision: accept, vendorColour: 1}}"
    ),
    "a value that is sent on purpose": (
        "  - request: {method: thread/start, params: {sandbox: vendorColour}, deliberate: true}"
    ),
    "a method that is sent on purpose": "  - request: {method: vendorColour, deliberate: true}",
}


@pytest.mark.parametrize("case", USES)
def test_a_name_of_one_server_is_used_wherever_it_stands(case: str) -> None:
    more = "extensions: [vendorColour]\n"
    assert scenario(USES[case], more).scenario.extensions == ["vendorColour"]


TURN = "  - start_turn: {thread: t, text: hi, as: u}\n"
STATUS_USES = {
    "a status of wait": "  - wait: {turn: u, status: cancelled}",
    "one of several": "  - wait: {turn: u, status: [completed, cancelled]}",
    "an expected status": "expect: {turns: {u: cancelled}}",
    "one of several expected": "expect: {any_of: [{turns: {u: [failed, cancelled]}}]}",
}


@pytest.mark.parametrize("case", STATUS_USES)
def test_a_status_of_one_server_stands_where_a_status_may(case: str) -> None:
    steps = TURN + STATUS_USES[case]
    assert scenario(steps, "extensions: [cancelled]\n").scenario.client
    with pytest.raises(ScenarioError) as caught:
        scenario(steps)
    assert caught.value.message == (
        "found 'cancelled'; expected 'completed', 'interrupted' or 'failed'; a status of one "
        "server goes into extensions"
    )


@pytest.mark.parametrize("name", ["completed", "agentMessage"])
def test_words_of_the_protocol_are_not_extensions(name: str) -> None:
    steps = TURN + "  - wait: {turn: u, status: completed}\nexpect: {items: [agentMessage]}\n"
    with pytest.raises(ScenarioError, match="already: leave it out here"):
        scenario(steps, f"extensions: [{name}]\n")


def test_a_value_that_only_one_server_takes_is_sent_on_purpose() -> None:
    step = "  - request: {{method: thread/start, params: {{approvalPolicy: granular}}{more}}}\n"
    with pytest.raises(ScenarioError, match="is sent by a step with deliberate: true"):
        scenario(step.format(more=""), "extensions: [granular]\n")
    assert scenario(step.format(more=", deliberate: true")).scenario.client


def test_a_name_like_no_other_says_where_names_of_one_server_go() -> None:
    with pytest.raises(ScenarioError, match="a name of one server goes into extensions"):
        scenario("  - request: {method: zzz/zzz}\n")


def test_without_a_lexicon_no_word_is_checked() -> None:
    text = "title: one\nclient: [{request: {method: thread/strat}}]\n"
    assert load_text(text).scenario.client


@pytest.mark.parametrize("kind", get_args(Kind))
def test_there_are_words_of_each_kind_and_each_is_of_one_kind(kind: Kind) -> None:
    mine = set(protocol_words(kind, BOOK.schemas))
    assert mine
    for other in get_args(Kind):
        assert kind == other or not mine & set(protocol_words(other, BOOK.schemas))


def test_every_method_of_the_book_is_a_word() -> None:
    methods = {row.method for row in (*BOOK.methods, *BOOK.events)}
    kinds = [kind for kind in get_args(Kind) if kind != "item type"]
    listed = {name for kind in kinds for name in protocol_words(kind, BOOK.schemas)}
    assert methods <= listed == {row.method for row in METHODS}


def test_a_member_is_looked_for_where_its_type_says_that_it_is() -> None:
    message = {"item": {"type": "fileChange", "changes": [{"pth": "x"}], "exitCode": 0, "id": ""}}
    reference = BOOK.reference("item/started", "params")
    assert reference is not None
    found = {
        one.path: one.listed_names for one in unlisted_members(BOOK.schemas, reference, message)
    }
    assert set(found) == {("item", "changes", 0, "pth"), ("item", "exitCode")}
    assert found["item", "changes", 0, "pth"] == {"path", "kind", "diff"}
    assert {"changes", "status", "id", "type"} == found["item", "exitCode"]
