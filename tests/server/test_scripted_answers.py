"""`answers:` of a scenario: the answers that a client under test gets to further requests."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from staged import BOUND, Client, staged
from test_default_script import Talk
from test_stage_process import agent, ended

pytestmark = [pytest.mark.socket, pytest.mark.slow, pytest.mark.anyio]

MODELS = """\
title: A client that lists models
default_script: true
answers:
  model/list:
    - error: {code: -32001, message: try again, data: {seconds: 1}}
    - result: {data: [{id: some}], nextCursor: null}
      notifications:
        - {method: model/rerouted, params: {to: other}}
        - {method: skills/changed}
    - result: {data: []}
  thread/list: {result: {data: [], nextCursor: null}}
  account/read: {result: null, delay: {seconds: 0.01}}
  turn/start: {result: {odd: true}}
  fuzzyFileSearch: {hold: never}
"""


async def request(client: Client, method: str, **params: Any) -> dict[str, Any]:
    """Send a request and return the whole answer."""
    client.ids += 1
    await client.say({"id": client.ids, "method": method, "params": params})
    while (message := await client.hear()).get("id") != client.ids:
        pass
    return message


async def test_answers_are_given_in_turn_and_the_last_one_again(tmp_path: Path) -> None:
    async with staged(tmp_path, {"models": MODELS}) as stage:
        for number in (1, 2):
            async with stage.client() as client:
                thread = await client.begin()
                first = await request(client, "model/list")
                error = {"code": -32001, "message": "try again", "data": {"seconds": 1}}
                assert first["error"] == error, "each connection begins with the first one"
                second = await request(client, "model/list")
                assert second["result"] == {"data": [{"id": "some"}], "nextCursor": None}
                assert await client.hear() == {
                    "method": "model/rerouted",
                    "params": {"to": "other"},
                }
                assert await client.hear() == {"method": "skills/changed", "params": {}}
                for _ in range(2):
                    assert (await request(client, "model/list"))["result"] == {"data": []}
                assert (await request(client, "account/read"))["result"] is None
                assert (await request(client, "thread/list"))["result"]["data"] == []
                said = {"threadId": thread, "input": [{"type": "text", "text": "hi"}]}
                assert (await request(client, "turn/start", **said))["result"] == {"odd": True}
                assert (await request(client, "no/method"))["error"]["code"] == -32601
            result = await stage.result(number)
            assert not result.is_red, result


async def test_a_held_request_has_no_answer_and_does_not_keep_a_client(tmp_path: Path) -> None:
    async with staged(tmp_path, {"models": MODELS}) as stage:
        async with stage.client() as client:
            await client.begin()
            await client.say({"id": "held", "method": "fuzzyFileSearch", "params": {}})
            await request(client, "thread/list")
            assert all(message.get("id") != "held" for message in client.heard)
        with anyio.fail_after(BOUND):
            assert not (await stage.result()).is_red


def test_a_plain_server_gives_them_and_a_leaving_client_gets_them_all(tmp_path: Path) -> None:
    (tmp_path / "models.scenario.yaml").write_text(MODELS, "utf-8")
    with agent(tmp_path, "--scenario", "models.scenario.yaml") as process:
        Talk(process)
        methods = ("account/read", "fuzzyFileSearch", "model/list")
        lines = [json.dumps({"id": name, "method": name, "params": {}}) for name in methods]
        out, err = process.communicate("\n".join([*lines, ""]).encode(), timeout=BOUND)
        assert (process.returncode, err) == (0, b"")
    answers = {each["id"]: each for each in map(json.loads, out.splitlines())}
    assert answers.keys() == {"account/read", "model/list"}


def test_answers_come_before_those_of_a_dialect(tmp_path: Path) -> None:
    (tmp_path / "models.scenario.yaml").write_text(MODELS, "utf-8")
    words = ("--dialect", "codex-0.169", "--scenario", "models.scenario.yaml", "--listen", "stdio")
    with agent(tmp_path, *words) as process:
        client = Talk(process)
        assert client.ask("account/read") is None
        assert client.ask("config/read")
        assert ended(process)[0] == 0
