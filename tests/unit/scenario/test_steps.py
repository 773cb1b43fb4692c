"""Steps for arbitrary messages: they send, wait for and name them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness.client.peer import Peer
from harness.client.target.profile import Bounds
from harness.model.model import ScriptedModel
from harness.model.wire.responses import ResponsesEncoder
from harness.scenario.loader import load_text
from harness.scenario.player import Player, StepFailure
from harness.scenario.steps.context import FailureKind
from harness.scenario.yaml12 import ScenarioError

from .fake_server import THREAD, TURN, FakeServer, completed, connected

HEAD = """
title: a scenario
client:
  - start_thread: {as: t}
"""
TURN_STEP = '  - start_turn: {thread: t, text: "hello", as: u}\n'
APPROVAL = "item/commandExecution/requestApproval"
SHORT, LONG = Bounds(step=0.5), Bounds(step=10)


def player(text: str, peer: Peer, bounds: Bounds = LONG) -> Player:
    loaded = load_text(text)
    model = ScriptedModel(loaded.scenario.scripts(), ResponsesEncoder())
    return Player(loaded, peer, model, cwd=Path("/x"), bounds=bounds, thread_params={})


async def play(
    steps: str, prepare: Any = None, bounds: Bounds = LONG
) -> tuple[StepFailure | None, FakeServer]:
    with anyio.fail_after(20):
        async with connected() as (peer, server, _):
            if prepare:
                prepare(server)
            return await player(HEAD + steps, peer, bounds).play(), server
    raise AssertionError("a bounded block was left without a result")


def asking(identifier: int, **params: Any) -> dict[str, Any]:
    return {"id": identifier, "method": APPROVAL, "params": {"threadId": THREAD, **params}}


def _two_threads(server: FakeServer) -> None:
    data = [{"id": "thr_8", "ephemeral": True}, {"id": "thr_9"}]
    server.answers["thread/list"] = lambda _: {"data": data, "nextCursor": None}


@pytest.mark.parametrize(
    "where",
    [
        "nextCursor: null",
        "data.1.id: thr_9",
        "data.*.id: thr_9",
        "data.*.ephemeral: true",
        "data.0.id: $page.data.0.id",
    ],
)
async def test_result_has_what_the_request_says(where: str) -> None:
    unmet, _ = await play(
        "  - request: {method: thread/list, params: {}, as: page}\n"
        f"  - request: {{method: thread/list, params: {{}}, where: {{{where}}}}}\n",
        _two_threads,
    )
    assert unmet is None


@pytest.mark.parametrize(
    ("where", "seen"),
    [
        ("data.0.id: thr_9", 'data.0.id: "thr_9"; 1 came, with data[0].id: "thr_8"'),
        ("data.2.id: thr_9", 'data.2.id: "thr_9"; 1 came, with data[2].id: nothing'),
        ("data: []", "data: []; 1 came, with data: ["),
        ("data.*.id: thr_7", 'data.*.id: "thr_7"; 1 came, with data: ['),
        ("data.*.*.id: thr_8", 'data.*.*.id: "thr_8"; 1 came, with data: ['),
    ],
)
async def test_result_that_is_another_is_unmet(where: str, seen: str) -> None:
    unmet, _ = await play(
        f"  - request: {{method: thread/list, params: {{}}, where: {{{where}}}}}\n", _two_threads
    )
    assert unmet is not None
    assert (unmet.step, unmet.kind) == ("request", FailureKind.REFUSED)
    words = "thread/list was answered by a result; expected one where "
    assert unmet.message.startswith(words + seen)


@pytest.mark.parametrize("beside", ["expect: error", "expect: any", "wait: false, as: late"])
def test_where_of_a_request_is_about_a_result_that_is_waited_for(beside: str) -> None:
    step = f"  - request: {{method: thread/list, where: {{nextCursor: null}}, {beside}}}\n"
    with pytest.raises(ScenarioError, match="where is about a result that the step waits for"):
        load_text(HEAD + step)


async def test_request_sends_any_method_and_names_what_came_back() -> None:
    def list_of_two(server: FakeServer) -> None:
        server.answers["thread/list"] = lambda _: {"data": [{"id": "thr_8"}, {"id": "thr_9"}]}

    unmet, server = await play(
        "  - request: {method: thread/list, params: {limit: 2}, as: page}\n"
        "  - request: {method: thread/read, params: {threadId: $page.data.1.id, x: $$page}}\n"
        "  - request: {method: thread/read, params: {threadId: $t.thread.id}}\n",
        list_of_two,
    )
    assert unmet is None
    assert server.asked("thread/list") == [{"limit": 2}]
    assert server.asked("thread/read") == [
        {"threadId": "thr_9", "x": "$page"},
        {"threadId": THREAD},
    ]


async def test_reference_that_leads_nowhere_says_what_there_is() -> None:
    unmet, _ = await play("  - request: {method: x, params: {a: $t.thread.nmae}}\n")
    assert unmet is not None
    assert unmet.kind is FailureKind.REFUSED
    assert unmet.message == "$t.thread.nmae: there is no 'nmae'; there is: id"


async def test_error_is_right_where_an_error_is_expected() -> None:
    def refuse(server: FakeServer) -> None:
        server.answers["x/y"] = lambda _: {"code": -32600, "message": "no"}

    step = "  - request: {method: x/y, expect: EXPECT, as: r}\n"
    use = "  - request: {method: thread/read, params: {code: $r.code}}\n"
    for expected in ("error", "any"):
        unmet, server = await play(step.replace("EXPECT", expected) + use, refuse)
        assert unmet is None
        assert server.asked("thread/read") == [{"code": -32600}]
    unmet, _ = await play(step.replace("EXPECT", "result"), refuse)
    assert unmet is not None
    assert unmet.message == "x/y was answered by an error: no"


async def test_result_is_wrong_where_an_error_is_expected() -> None:
    unmet, _ = await play("  - request: {method: thread/read, params: {}, expect: error}\n")
    assert unmet is not None
    assert unmet.kind is FailureKind.REFUSED
    assert unmet.message == "thread/read was answered by a result; expected an error"


async def test_answer_of_a_request_left_alone_is_waited_for_later() -> None:
    def held(server: FakeServer) -> None:
        server.answers["slow"] = lambda _: None
        server.then["thread/read"] = [{"id": 2, "result": {"name": "x"}}]

    unmet, server = await play(
        "  - request: {method: slow, as: r, wait: false}\n"
        "  - request: {method: thread/read, params: {}}\n"
        "  - wait: {answer: r}\n"
        "  - request: {method: thread/read, params: {name: $r.name}}\n",
        held,
    )
    assert unmet is None
    assert server.asked("thread/read")[1] == {"name": "x"}


async def test_deliberate_message_is_marked_so_and_another_is_not() -> None:
    with anyio.fail_after(20):
        async with connected() as (peer, server, _):
            server.answers["x"] = lambda _: {}
            steps = (
                "  - request: {method: x, params: [1], deliberate: true}\n"
                "  - notify: {method: n, params: {a: 1}, deliberate: true}\n"
                "  - notify: {method: m}\n"
                '  - send_raw: {line: "{}"}\n'
            )
            assert await player(HEAD + steps, peer).play() is None
            sent = [f for f in peer.recorder.trace.frames if not f.from_target]
            assert [f.deliberate for f in sent] == [False, True, True, False, True]
            assert json.loads(sent[3].raw) == {"method": "m"}
            assert sent[4].raw == b"{}"
            assert server.asked("n") == [{"a": 1}]


async def test_answer_that_is_wrong_on_purpose_is_marked_so() -> None:
    with anyio.fail_after(20):
        async with connected() as (peer, server, _):
            ask = {"method": APPROVAL, "id": 7, "params": {"itemId": "i"}}
            server.then["x"] = [ask, {**ask, "id": 8}]
            server.answers["x"] = lambda _: {}
            steps = (
                "  - request: {method: x, params: {}}\n"
                f"  - answer: {{to: {APPROVAL}, decision: perhaps, deliberate: true}}\n"
                f"  - answer: {{to: {APPROVAL}, decision: accept}}\n"
            )
            assert await player(HEAD + steps, peer).play() is None
            sent = [f for f in peer.recorder.trace.frames if not f.from_target][-2:]
            assert [f.deliberate for f in sent] == [True, False]
            assert json.loads(sent[0].raw) == {"id": 7, "result": {"decision": "perhaps"}}


async def test_raw_bytes_are_sent_as_they_stand() -> None:
    unmet, server = await play(
        '  - send_raw: {bytes: "{\\"method\\": "}\n'
        "  - send_raw: {hex: '2272617722'}\n"
        '  - send_raw: {line: "}"}\n'
        "  - request: {method: thread/read, params: {}}\n"
    )
    assert unmet is None
    assert server.received[1] == {"method": "raw"}


async def test_server_request_is_answered_by_the_first_that_fits() -> None:
    def ask(server: FakeServer) -> None:
        server.then["turn/start"] = [asking(7, itemId="a"), asking(8, itemId="b")]

    unmet, server = await play(
        TURN_STEP + f"  - wait: {{request: {APPROVAL}, where: {{itemId: b}}, as: q}}\n"
        f"  - answer: {{to: {APPROVAL}, where: {{itemId: $q.itemId}}, decision: decline}}\n"
        f"  - answer: {{to: {APPROVAL}, error: {{code: 5, message: no}}}}\n"
        "  - request: {method: thread/read, params: {}}\n",
        ask,
    )
    assert unmet is None
    answers = [one for one in server.received if "method" not in one]
    assert answers == [
        {"id": 8, "result": {"decision": "decline"}},
        {"id": 7, "error": {"code": 5, "message": "no"}},
    ]


async def test_result_as_an_answer_is_sent_whole() -> None:
    def ask(server: FakeServer) -> None:
        server.then["turn/start"] = [{"id": 1, "method": "item/tool/call", "params": {"tool": "x"}}]

    unmet, server = await play(
        TURN_STEP + "  - answer: {to: item/tool/call, result: {success: true, t: $u.turn.id}}\n"
        "  - request: {method: thread/read, params: {}}\n",
        ask,
    )
    assert unmet is None
    assert {"id": 1, "result": {"success": True, "t": TURN}} in server.received


async def test_server_request_that_does_not_come_is_named() -> None:
    unmet, _ = await play(f"  - answer: {{to: {APPROVAL}, decision: accept}}\n", None, SHORT)
    assert unmet is not None
    assert unmet.message == f"waited 0.5 s for the server request {APPROVAL}; it did not come"


async def test_one_notification_satisfies_one_wait() -> None:
    def say_once(server: FakeServer) -> None:
        server.then["thread/start"] = [{"method": "n", "params": {}}]

    once = "  - wait: {notification: n}\n"
    assert (await play(once, say_once))[0] is None
    unmet, _ = await play(once * 2, say_once, SHORT)
    assert unmet is not None
    assert (unmet.kind, unmet.line) == (FailureKind.TIMEOUT, 6)


async def test_whole_message_is_waited_for() -> None:
    def refuse_line(server: FakeServer) -> None:
        server.then["thread/start"] = [{"id": None, "error": {"code": -32700, "message": "no"}}]

    step = "  - wait: {message: {error.code: -32700}, as: m}\n"
    use = "  - request: {method: thread/read, params: {said: $m.error.message}}\n"
    unmet, server = await play(step + use, refuse_line)
    assert unmet is None
    assert server.asked("thread/read") == [{"said": "no"}]


async def test_steer_names_its_turn_unless_it_is_told_otherwise() -> None:
    def steered(server: FakeServer) -> None:
        server.answers["turn/steer"] = lambda params: (
            {"turnId": TURN}
            if params["expectedTurnId"] == TURN
            else {"code": -32600, "message": "another turn"}
        )
        server.then["turn/start"] = [completed()]

    wrong = "params: {expectedTurnId: turn_404}"
    unmet, server = await play(
        TURN_STEP + "  - steer: {turn: u, text: more, as: s}\n"
        f"  - steer: {{turn: u, text: late, {wrong}, expect: error}}\n"
        "  - wait: {notification: turn/completed, where: {turn.id: $s.turnId}}\n",
        steered,
    )
    assert unmet is None
    right, other = server.asked("turn/steer")
    assert right == {
        "threadId": THREAD,
        "input": [{"type": "text", "text": "more"}],
        "expectedTurnId": TURN,
    }
    assert other["expectedTurnId"] == "turn_404"


async def test_slow_reader_sees_nothing_until_it_reads_on() -> None:
    with anyio.fail_after(20):
        async with connected() as (peer, server, _):
            steps = "  - slow_reader: {reading: false}\n  - notify: {method: n}\n"
            assert await player(HEAD + steps, peer).play() is None
            frames = len(peer.inbox.frames)
            await server.say({"method": "unread"})
            await anyio.wait_all_tasks_blocked()
            assert len(peer.inbox.frames) == frames
            peer.set_reading(active=True)
            await peer.inbox.wait(lambda frame: frame.method == "unread")


async def test_second_connection_is_not_offered_where_there_is_one_only() -> None:
    unmet, _ = await play("  - connect: other\n")
    assert unmet is not None
    assert (unmet.kind, unmet.capability) == (FailureKind.NOT_OFFERED, "several-clients")


async def test_kill_without_a_process_is_refused() -> None:
    for step in ("kill", "restart"):
        unmet, _ = await play(f"  - {step}: true\n")
        assert unmet is not None
        assert unmet.message == "there is no process behind this connection"


async def test_disconnect_closes_our_side() -> None:
    with anyio.fail_after(20):
        async with connected() as (peer, server, _):
            server.answers["thread/start"] = lambda _: {"thread": {"id": THREAD}}
            assert await player(HEAD + "  - disconnect: true\n", peer).play() is None
            with anyio.fail_after(1):
                await server.leave()
                await peer.ended.wait()


async def test_step_ends_when_the_model_side_wants_a_tool_that_is_not_offered() -> None:
    text = HEAD + TURN_STEP + "  - wait: {turn: u}\nmodel: [{reply: [{run: ls}]}]\n"
    unmet = None
    with anyio.fail_after(20):
        async with connected() as (peer, _, _):
            loaded = load_text(text)
            model = ScriptedModel(loaded.scenario.scripts(), ResponsesEncoder())
            one = Player(loaded, peer, model, cwd=Path("/x"), bounds=LONG, thread_params={})
            body = json.dumps({"input": [], "tools": [{"type": "function", "name": "walk"}]})

            async def call_model() -> None:
                await peer.inbox.wait(lambda frame: frame.id == 2)
                await anyio.wait_all_tasks_blocked()
                chunks = model.answer(body.encode()).chunks
                assert chunks is not None
                async for _ in chunks:
                    pass

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call_model)
                unmet = await one.play()
    assert unmet is not None
    assert (unmet.kind, unmet.step, unmet.capability) == (
        FailureKind.NOT_OFFERED,
        "wait",
        "command-execution",
    )
    assert "offered: walk" in unmet.message
    assert '[[tools]] intent = "run"' in unmet.message


async def test_a_standing_answer_waits_for_nothing_and_answers_whatever_comes() -> None:
    def asks_twice(server: FakeServer) -> None:
        server.then["turn/start"] = [asking(71, itemId="a")]
        server.answered = {71: [asking(72, itemId="b")], 72: [completed()]}

    answering = f"  - answer: {{to: {APPROVAL}, standing: true, decision: decline}}\n"
    turn = TURN_STEP + "  - wait: {turn: u}\n"
    unmet, server = await play(answering + turn, asks_twice)
    assert unmet is None
    answers = [one for one in server.received if "result" in one]
    assert answers == [{"id": number, "result": {"decision": "decline"}} for number in (71, 72)]
    unmet, server = await play(
        answering + turn, lambda server: server.then.update({"turn/start": [completed()]})
    )
    assert unmet is None


def says_an_item(server: FakeServer) -> None:
    content = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    item = {"type": "userMessage", "content": content}
    server.then["thread/start"] = [
        {"method": "item/started", "params": {"item": {"type": "reasoning"}}},
        {"method": "item/completed", "params": {"item": item}},
    ]


async def test_a_number_in_a_path_is_the_index_of_a_list() -> None:
    found = (
        "  - wait: {notification: item/completed, where: {item.content.1.text: b}}\n",
        "  - wait: {message: {method: item/completed, params.item.content.0.text: a}}\n",
    )
    for step in found:
        unmet, _ = await play(step, says_an_item)
        assert unmet is None


NOT_FOUND = {
    "{notification: item/completed, where: {item.content.1.text: c}}": (
        'item/completed where item.content.1.text: "c"; 1 came, with params.item.content[1].text: '
        '"b"'
    ),
    "{notification: item/completed, where: {item.type: userMessage, item.content.2.text: c}}": (
        'item/completed where item.type: "userMessage" and item.content.2.text: "c"; 1 came, with '
        "params.item.content[2].text: nothing"
    ),
    "{notification: [item/completed, item/started], where: {item.type: x, item.content: []}}": (
        'item/completed or item/started where item.type: "x" and item.content: []; 2 came, the '
        'nearest with params.item.type: "userMessage"'
    ),
    "{notification: turn/completed, where: {turn.status: failed}}": (
        'turn/completed where turn.status: "failed"; it did not come'
    ),
    "{message: {method: item/completed, params.item.type: x}}": (
        'a message where method: "item/completed" and params.item.type: "x"; 3 came, the nearest '
        'with params.item.type: "userMessage"'
    ),
}


async def test_a_message_that_nearly_fits_is_reported_with_the_member_that_differs() -> None:
    for step, told in NOT_FOUND.items():
        unmet, _ = await play(f"  - wait: {step}\n", says_an_item, SHORT)
        assert unmet is not None
        assert unmet.message == f"waited 0.5 s for {told}"


async def test_a_fitting_message_taken_before_is_reported() -> None:
    step = "  - wait: {notification: item/started}\n"
    unmet, _ = await play(step + step, says_an_item, SHORT)
    assert unmet is not None
    told = "item/started; 1 came, and what fits was taken by an earlier step"
    assert unmet.message == f"waited 0.5 s for {told}"


async def test_a_request_that_was_answered_already_is_told() -> None:
    def ask(server: FakeServer) -> None:
        server.then["turn/start"] = [asking(7, itemId="a")]

    step = f"  - answer: {{to: {APPROVAL}, decision: decline}}\n"
    unmet, _ = await play(TURN_STEP + step + step, ask, SHORT)
    assert unmet is not None
    assert unmet.message == (
        f"waited 0.5 s for the server request {APPROVAL}; 1 came, and what fits was answered "
        "already"
    )
    other = f"  - answer: {{to: {APPROVAL}, where: {{itemId: b}}, decision: decline}}\n"
    unmet, _ = await play(TURN_STEP + other, ask, SHORT)
    assert unmet is not None
    assert unmet.message == (
        f'waited 0.5 s for the server request {APPROVAL} where itemId: "b"; 1 came, with '
        'params.itemId: "a"'
    )
