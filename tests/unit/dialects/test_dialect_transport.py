"""The edge between a connection and its transport: what goes in, comes out, and is added."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.protocol.dialects.table import DropRow, MethodRow, OrderRow, load_dialect
from reference_server.dialect.ids import to_uuid
from reference_server.dialect.transport import DialectTransport
from reference_server.transport.base import Incoming, Oversized

pytestmark = pytest.mark.anyio

THREAD, TURN = to_uuid("thr_1"), to_uuid("turn_1")
NEWEST = load_dialect("codex")


class Lines:
    """A transport of given messages, which keeps what is sent."""

    amount_read = 0

    def __init__(self) -> None:
        self.unread: list[Incoming] = []
        self.sent: list[bytes] = []

    async def receive(self) -> list[Incoming]:
        messages, self.unread = self.unread, []
        return messages

    async def wait_for_end(self) -> None: ...

    async def send(self, messages: list[bytes]) -> None:
        self.sent += messages


class Wire:
    """A server's side and a client's side with the dialect between them."""

    def __init__(self, **rows: Any) -> None:
        self.lines = Lines()
        self.edge = DialectTransport(self.lines, NEWEST._replace(**rows), "/home")

    async def received(self, message: Any) -> Any:
        """Send a message as the client and return what the server reads."""
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.lines.unread = [raw]
        (line,) = await self.edge.receive()
        assert isinstance(line, bytes)
        return line if isinstance(message, bytes) else json.loads(line)

    async def written(self, *messages: Any) -> list[Any]:
        """Send messages as the server, in one batch, and return what the client reads."""
        self.lines.sent.clear()
        await self.edge.send([json.dumps(message).encode() for message in messages])
        return [json.loads(line) for line in self.lines.sent]


@pytest.mark.parametrize(
    "line",
    [b"", b"no JSON", b"[]", b"7", b'{"id":[],"method":"turn/start"}', b'{"id":{}}', b"\xff"],
)
async def test_a_line_that_is_no_message_passes_as_it_is(line: bytes) -> None:
    assert await Wire().received(line) == line


async def test_half_of_a_surrogate_pair_passes_as_the_client_wrote_it() -> None:
    line = b'{"id":1,"method":"turn/start","params":{"input":[{"text":"\\ud800"}]}}'
    assert b"\\ud800" in await Wire().received(line)


async def test_a_message_that_was_too_long_is_passed_on() -> None:
    wire = Wire()
    wire.lines.unread = [Oversized(7)]
    assert await wire.edge.receive() == [Oversized(7)]


async def test_ids_of_params_results_and_errors_are_mapped() -> None:
    wire = Wire()
    params = {"threadId": THREAD, "turnId": TURN}
    request = await wire.received({"id": 1, "method": "turn/interrupt", "params": params})
    assert request["params"] == {"threadId": "thr_1", "turnId": "turn_1"}
    error = {"code": -32600, "message": "no turn turn_1 in thr_1"}
    (answer,) = await wire.written({"id": 1, "error": error})
    assert answer["error"]["message"] == f"no turn {TURN} in {THREAD}"


async def test_the_answer_to_a_server_request_is_read_by_its_method() -> None:
    wire = Wire()
    params = {"threadId": "thr_1", "turnId": "turn_1", "itemId": "i", "command": ["a", "b c"]}
    (asked,) = await wire.written(
        {"method": "item/commandExecution/requestApproval", "id": 0, "params": params}
    )
    assert (asked["params"]["threadId"], asked["params"]["command"]) == (THREAD, "a 'b c'")
    assert "emittedAtMs" not in asked
    answer = await wire.received({"id": 0, "result": {"decision": "accept"}})
    assert answer == {"id": 0, "result": {"decision": "accept"}}


async def test_a_request_that_the_text_lacks_has_the_answer_of_its_row() -> None:
    row = MethodRow("x/list", {"data": ["{params.kind}"]}, None, "", (("x/told", {"n": 1}),))
    wire = Wire(methods={"x/list": row})
    await wire.received({"id": "a", "method": "x/list", "params": {"kind": "k"}})
    unknown = {"code": -32601, "message": "there is no method 'x/list'"}
    answer, told = await wire.written({"id": "a", "error": unknown})
    assert answer == {"id": "a", "result": {"data": ["k"]}}
    assert (told["method"], told["params"]) == ("x/told", {"n": 1})


async def test_an_answer_that_the_server_has_itself_comes_first() -> None:
    wire = Wire(methods={"x/list": MethodRow("x/list", {"data": []})})
    await wire.received({"id": 1, "method": "x/list", "params": {}})
    assert await wire.written({"id": 1, "result": {"own": True}}) == [
        {"id": 1, "result": {"own": True}}
    ]


async def test_an_error_that_a_scenario_gives_is_not_replaced_by_the_row() -> None:
    wire = Wire(methods={"x/list": MethodRow("x/list", {"data": []})})
    await wire.received({"id": 1, "method": "x/list", "params": {}})
    error = {"code": -32601, "message": "not here, says the scenario"}
    (answer,) = await wire.written({"id": 1, "error": error})
    assert answer["error"]["message"] == "not here, says the scenario"


async def test_a_method_that_the_release_removed_never_reaches_the_server() -> None:
    row = MethodRow("thread/rollback", None, (-32600, "unknown variant"))
    wire = Wire(methods={"thread/rollback": row})
    params = {"threadId": THREAD, "numTurns": 1}
    request = await wire.received({"id": 1, "method": "thread/rollback", "params": params})
    assert request["method"] != "thread/rollback"
    (answer,) = await wire.written(
        {"id": 1, "error": {"code": -32601, "message": "there is no method"}}
    )
    assert answer["error"] == {"code": -32600, "message": "unknown variant"}


async def test_a_row_can_take_its_values_from_a_method_of_the_text() -> None:
    row = MethodRow("thread/turns/list", {"data": "{result.thread.turns}"}, None, "thread/read")
    wire = Wire(methods={"thread/turns/list": row})
    params = {"threadId": THREAD, "includeTurns": True}
    request = await wire.received({"id": 1, "method": "thread/turns/list", "params": params})
    assert request["method"] == "thread/read"
    assert request["params"]["threadId"] == "thr_1"
    turn = {"id": "turn_1", "items": [], "status": "completed", "error": None}
    (answer,) = await wire.written(
        {"id": 1, "result": {"thread": {"id": "thr_1", "turns": [turn]}}}
    )
    assert answer["result"]["data"][0]["id"] == TURN


async def test_notifications_that_the_client_or_the_release_does_not_want_are_left_out() -> None:
    wire = Wire(drops=(DropRow(method="thread/closed"),), notifications=())
    capabilities = {"optOutNotificationMethods": ["turn/started", 7]}
    handshake = {"clientInfo": {"name": "me", "version": "2"}, "capabilities": capabilities}
    await wire.received({"id": 1, "method": "initialize", "params": handshake})
    turn = {"id": "turn_1", "items": [], "status": "inProgress", "error": None}
    written = await wire.written(
        {"id": 1, "result": {"userAgent": "agent"}},
        {"method": "turn/started", "params": {"threadId": "thr_1", "turn": turn}},
        {"method": "thread/closed", "params": {"threadId": "thr_1"}},
        {"method": "thread/archived", "params": {"threadId": "thr_1"}},
    )
    assert [one.get("method") for one in written] == [None, "thread/archived"]
    assert written[0]["result"]["userAgent"].startswith("me/0.169.0 ")


async def test_neighbours_are_written_in_the_order_of_the_release() -> None:
    wire = Wire(orders=(OrderRow("thread/status/changed", "turn/started"),))
    turn = {"id": "turn_1", "items": [], "status": "inProgress", "error": None}
    written = await wire.written(
        {"method": "turn/started", "params": {"threadId": "thr_1", "turn": turn}},
        {
            "method": "thread/status/changed",
            "params": {"threadId": "thr_1", "status": {"type": "active", "activeFlags": []}},
        },
    )
    assert [one["method"] for one in written] == ["thread/status/changed", "turn/started"]


def started(turn: str) -> dict[str, Any]:
    body = {"id": turn, "items": [], "status": "inProgress", "error": None}
    return {"method": "turn/started", "params": {"threadId": "thr_1", "turn": body}}


async def test_a_turn_start_while_a_turn_runs_adds_to_it() -> None:
    wire = Wire()
    await wire.written(started("turn_1"))
    params = {"threadId": THREAD, "input": [{"type": "text", "text": "and hurry"}]}
    request = await wire.received({"id": 2, "method": "turn/start", "params": params})
    assert request["method"] == "turn/steer"
    wanted = {"threadId": "thr_1", "expectedTurnId": "turn_1", "input": params["input"]}
    assert request["params"] == wanted
    (answer,) = await wire.written({"id": 2, "result": {"turnId": "turn_1"}})
    assert (answer["result"]["turn"]["id"], answer["result"]["turn"]["items"]) == (TURN, [])


async def test_a_turn_that_begins_and_ends_in_one_batch_has_its_message() -> None:
    item = {"type": "agentMessage", "id": "i", "text": "Done."}
    params = {"threadId": "thr_1", "turnId": "turn_1", "item": item}
    done = {"id": "turn_1", "items": [], "status": "completed", "error": None}
    written = await Wire().written(
        started("turn_1"),
        {"method": "item/completed", "params": params},
        {"method": "turn/completed", "params": {"threadId": "thr_1", "turn": done}},
    )
    turn = written[-1]["params"]["turn"]
    assert ([item["text"] for item in turn["items"]], turn["itemsView"]) == (["Done."], "summary")


async def test_a_refused_model_call_is_reported_in_the_words_of_the_model() -> None:
    error = {
        "message": "The model answered with HTTP status 400",
        "agentErrorInfo": "BadRequest",
        "additionalDetails": "invalid_prompt: no such thing",
    }
    params = {"threadId": "thr_1", "turnId": "turn_1", "willRetry": False, "error": error}
    written = await Wire().written({"method": "error", "params": params})
    told = written[-1]["params"]["error"]
    assert (told["message"], told["additionalDetails"]) == ("no such thing", None)


async def test_settings_of_the_home_are_part_of_the_answer(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('model = "gpt-5.5"\n', encoding="utf-8")
    edge = DialectTransport(lines := Lines(), NEWEST, str(tmp_path))
    lines.unread = [b'{"id":1,"method":"config/read","params":{}}']
    await edge.receive()
    await edge.send([b'{"id":1,"error":{"code":-32601,"message":"there is no method"}}'])
    config = json.loads(lines.sent[0])["result"]["config"]
    assert (config["model"], config["sandbox_mode"]) == ("gpt-5.5", None)


async def test_items_of_a_thread_are_listed_by_a_read_of_its_turns() -> None:
    wire = Wire()
    params = {"threadId": THREAD, "limit": 100, "sortDirection": "asc"}
    request = await wire.received({"id": 1, "method": "thread/items/list", "params": params})
    assert request["method"] == "thread/read"
    assert request["params"] == {"threadId": "thr_1", "includeTurns": True}
    items = [{"type": "agentMessage", "id": name, "text": name} for name in ("a", "b")]
    turn = {"id": "turn_1", "items": items, "status": "completed", "error": None}
    (answer,) = await wire.written(
        {"id": 1, "result": {"thread": {"id": "thr_1", "turns": [turn]}}}
    )
    listed = [(entry["turnId"], entry["item"]["text"]) for entry in answer["result"]["data"]]
    assert listed == [(TURN, "a"), (TURN, "b")]


async def test_an_error_whose_request_names_a_thread_by_a_list_is_written() -> None:
    wire = Wire()
    await wire.received({"id": 1, "method": "thread/fork", "params": {"threadId": [THREAD]}})
    error = {"code": -32600, "message": "threadId is a string"}
    assert await wire.written({"id": 1, "error": error}) == [{"id": 1, "error": error}]


async def test_names_that_a_client_makes_up_fill_no_memory() -> None:
    wire = Wire()
    for number in range(100):
        await wire.received({"id": number, "method": f"made/up/{number}", "params": {}})
        error = {"code": -32601, "message": "there is no method"}
        assert await wire.written({"id": number, "error": error})
    steps = wire.edge._sequencer._plans  # pyright: ignore[reportPrivateUsage]
    assert len(steps) == 1
