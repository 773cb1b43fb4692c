"""A connection: malformed lines, unknown methods, bad params, the handshake, the end."""

import json

import anyio
import pytest
from model_side import Reply, says
from session_peer import session

from reference_server.transport.base import Oversized


async def test_a_malformed_line_gets_one_error_and_the_connection_lives_on(tmp_path) -> None:
    async with session(tmp_path) as peer:
        for line in (b"x", b"[]", b'{"id":null,"method":"m"}', b"\xff"):
            await peer.send_line(line)
        await peer.request("thread/start")
    errors = [m for m in peer.seen if "error" in m]
    assert [e["id"] for e in errors] == [None] * 4
    assert [e["error"]["code"] for e in errors] == [-32700, -32600, -32600, -32700]


async def test_an_answer_to_nothing_gets_no_answer(tmp_path) -> None:
    error = {"code": -32601, "message": "unknown"}
    async with session(tmp_path) as peer:
        for identifier in ({}, {"id": None}, {"id": []}, {"id": 4711}):
            for body in ({"error": error}, {"result": {}}):
                await peer.send_line(json.dumps({**identifier, **body}).encode())
        await peer.request("thread/start")
    assert [m for m in peer.seen if "error" in m] == []


@pytest.mark.parametrize("line", [{"id": 5}, {"id": 5, "method": 7}, {"id": 5, "method": None}])
async def test_a_wrong_message_is_answered_under_its_id(tmp_path, line: dict) -> None:
    async with session(tmp_path) as peer:
        await peer.send_line(json.dumps(line).encode())
        message = await peer.receive()
    assert (message["id"], message["error"]["code"]) == (5, -32600)


async def test_a_path_that_is_no_text_is_refused_under_the_id_of_its_request(tmp_path) -> None:
    async with session(tmp_path) as peer:
        await peer.send_line(b'{"id":5,"method":"thread/start","params":{"cwd":"/a\\udc80"}}')
        message = await peer.receive()
        assert await peer.start_thread()
    assert message["id"] == 5
    assert "half of a surrogate pair" in message["error"]["message"]


async def test_an_oversized_line_gets_an_error_that_names_the_limit(tmp_path) -> None:
    async with session(tmp_path) as peer:
        await peer.send_line(Oversized(100))
        message = await peer.receive()
    assert message["id"] is None
    assert "100 bytes" in message["error"]["message"]


async def test_an_unknown_method_is_refused_by_name(tmp_path) -> None:
    async with session(tmp_path) as peer:
        message = await peer.request("thread/explode", {})
    assert message["error"]["code"] == -32601
    assert "thread/explode" in message["error"]["message"]


@pytest.mark.parametrize("method", ["turn/started", "initialized"])
async def test_a_notification_is_not_a_method_to_call(tmp_path, method: str) -> None:
    async with session(tmp_path) as peer:
        assert (await peer.request(method, {}))["error"]["code"] == -32601


async def test_unknown_notifications_and_stray_answers_are_ignored(tmp_path) -> None:
    async with session(tmp_path) as peer:
        await peer.send_line(b'{"method":"what/ever","params":{}}')
        await peer.send_line(b'{"id":99,"result":{}}')
        await peer.request("thread/start")
    assert peer.methods() == ["answer", "thread/started"]


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("turn/start", {"input": []}, "threadId: Field required"),
        ("turn/start", {"threadId": 1, "input": []}, "threadId: "),
        ("turn/start", {"threadId": "t", "input": [{"type": "text"}]}, "input[0].text: "),
        ("turn/start", {"threadId": "t", "input": [{"type": "noise"}]}, "input[0]: "),
        (
            "turn/start",
            {
                "threadId": "t",
                "input": [],
                "sandboxPolicy": {"type": "workspaceWrite", "writableRoots": ["/a", 3]},
            },
            "sandboxPolicy.writableRoots[1]: ",
        ),
        ("thread/start", {"sandbox": "none"}, "sandbox: "),
        ("thread/start", {"cwd": 3}, "cwd: "),
        ("thread/read", [], "params: must be an object"),
    ],
)
async def test_bad_params_are_refused_with_the_path_of_the_field(
    tmp_path, method: str, params: object, words: str
) -> None:
    async with session(tmp_path) as peer:
        error = (await peer.request(method, params))["error"]
    assert error["code"] == -32602
    assert error["message"].startswith(words)


async def test_params_may_be_left_out_or_null(tmp_path) -> None:
    async with session(tmp_path) as peer:
        await peer.send_line(b'{"id":1,"method":"thread/start"}')
        await peer.send_line(b'{"id":2,"method":"thread/start","params":null}')
        assert "result" in await peer.answer(1)
        assert "result" in await peer.answer(2)


async def test_initialize_greets_once_and_is_not_required(tmp_path) -> None:
    async with session(tmp_path) as peer:
        await peer.start_thread()
        hello = {"clientInfo": {"name": "tester", "version": "9"}, "capabilities": {}}
        first = await peer.request("initialize", hello)
        second = await peer.request("initialize", hello)
    assert "tester" in first["result"]["userAgent"]
    assert second["error"]["message"] == "Already initialized"


async def test_notifications_that_a_client_does_not_want_are_told_to_come(tmp_path, caplog) -> None:
    async with session(tmp_path) as peer:
        unwanted = {"optOutNotificationMethods": ["thread/started", "x" * 1_000_000]}
        answer = await peer.request("initialize", {"capabilities": unwanted})
        await peer.start_thread()
        await peer.event("thread/started")
    assert answer["result"]
    [line] = [record.getMessage() for record in caplog.records]
    assert "optOutNotificationMethods has no effect: 'thread/started'" in line
    assert len(line) < 300


@pytest.mark.parametrize("given", [{}, {"capabilities": {}}, {"capabilities": None}])
async def test_a_client_that_wants_everything_is_no_line_in_the_log(
    tmp_path, caplog, given: dict
) -> None:
    async with session(tmp_path) as peer:
        await peer.request("initialize", given)
    assert not caplog.records


async def test_initialize_can_be_required(tmp_path) -> None:
    async with session(tmp_path, requires_initialize=True) as peer:
        before = await peer.request("thread/start")
        await peer.request("initialize", {})
        after = await peer.request("thread/start")
    assert before["error"] == {"code": -32600, "message": "Not initialized"}
    assert "result" in after


async def test_a_defect_of_a_handler_is_an_internal_error_and_not_the_end(
    tmp_path, monkeypatch, caplog
) -> None:
    async with session(tmp_path) as peer:
        monkeypatch.setattr(peer.server.services.threads, "start", lambda *_: 1 / 0)
        failed = await peer.request("thread/start")
        monkeypatch.undo()
        worked = await peer.request("thread/start")
    assert failed["error"]["code"] == -32603
    assert "result" in worked
    assert "ZeroDivisionError" in caplog.text


async def test_requests_of_one_thread_are_answered_in_order(tmp_path) -> None:
    async with session(tmp_path) as peer:
        thread = await peer.start_thread()
        sent = [
            await peer.send("thread/read", {"threadId": thread, "includeTurns": n % 2 == 0})
            for n in range(20)
        ]
        await peer.answer(sent[-1])
    answered = [m["id"] for m in peer.seen if "method" not in m]
    assert answered[-20:] == sent


async def test_a_pipelined_session_works_without_waiting_for_answers(tmp_path) -> None:
    async with session(tmp_path, [says("yes")]) as peer:
        await peer.send("thread/start")
        given = {"threadId": "thr_1", "input": [{"type": "text", "text": "hi"}]}
        await peer.send("turn/start", given)
        assert (await peer.turn_end("turn_1"))["status"] == "completed"


async def test_the_end_of_input_ends_running_turns_and_says_so(tmp_path) -> None:
    held = anyio.Event()
    async with session(tmp_path, [Reply([held])]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.event("item/completed")
    ends = peer.params_of("turn/completed")
    assert [(e["turn"]["id"], e["turn"]["status"]) for e in ends] == [(turn, "interrupted")]


async def test_a_client_that_stops_reading_ends_the_connection_quietly(tmp_path) -> None:
    async with session(tmp_path) as peer:
        await peer.start_thread()
        peer.transport.stop_reading()
        await peer.send_line(json.dumps({"id": 9, "method": "thread/start"}).encode())
    assert peer.side.bodies == []


async def test_advice_on_a_thread_of_an_earlier_server_can_be_followed(
    tmp_path,
) -> None:
    async with session(tmp_path) as peer:
        thread = await peer.start_thread()
    async with session(tmp_path) as peer:
        message = (await peer.request("turn/interrupt", {"threadId": thread, "turnId": "turn_1"}))[
            "error"
        ]["message"]
        assert "thread/resume" in message
        assert (await peer.request("thread/resume", {"threadId": thread}))["result"]
