"""Clients that flood, stall, die or speak no protocol: each is bounded, and the others go on."""

import json
import socket
from urllib.parse import urlsplit

import anyio
import pytest
from staged import BOUND, GREETING, Client, OverLines, staged

from reference_server.client_tests.stage import Bounds

pytestmark = [pytest.mark.anyio, pytest.mark.socket, pytest.mark.slow]

HOLDING = GREETING.replace('"Hel", "lo"', '"Hel", {hold: never}, "lo"')


async def goes_on(stage) -> None:
    async with stage.client("good") as client:
        assert (await client.play())["status"] == "completed"


async def test_one_that_dies_in_its_turn_is_told_of_and_nobody_else_hears(tmp_path) -> None:
    files = {"bad": HOLDING + "expect: {turns: {first: completed}}\n", "good": GREETING}
    async with staged(tmp_path, files) as stage:
        async with stage.client("bad") as client:
            await client.turn(await client.begin())
            await client.until("item/agentMessage/delta")
            client.line.transport.abort()
        [problem] = await stage.problems()
        assert "turn first: expected completed; found" in problem
        await goes_on(stage)


async def test_one_that_says_nothing_more_is_let_go_after_its_time(tmp_path) -> None:
    bounds = Bounds(idle=2.0)
    async with staged(tmp_path, {"bad": HOLDING, "good": GREETING}, bounds=bounds) as stage:
        async with stage.client("bad") as client:
            await client.turn(await client.begin())
            assert (await client.until("turn/completed"))["params"]["turn"]["status"] == (
                "interrupted"
            )
            assert await stage.problems() == [
                "nothing was said for 2 s, so the connection was closed"
            ]
        await goes_on(stage)


async def test_one_that_floods_is_answered_at_its_pace_while_others_play(tmp_path) -> None:
    async with staged(tmp_path, {"bad": GREETING, "good": GREETING}) as stage:
        async with stage.client("bad") as client, anyio.create_task_group() as tasks:
            requests = 3000

            async def flood() -> None:
                for number in range(requests):
                    await client.say({"id": number, "method": "thread/list", "params": {}})

            tasks.start_soon(flood)
            await goes_on(stage)
            while len(client.heard) < requests:
                await client.hear()
        problems = await stage.problems(1)
        assert [one for one in problems if "never played" not in one] == []


async def test_one_that_reads_nothing_keeps_nobody_else_waiting(tmp_path) -> None:
    long = json.dumps("x" * 200_000)
    much = GREETING.replace('"Hel", "lo"', ", ".join([long] * 4))
    async with staged(tmp_path, {"bad": much, "good": GREETING}, kind="unix") as stage:
        with socket.socket(socket.AF_UNIX) as deaf:
            deaf.connect(stage.address.removeprefix("unix:"))
            deaf.sendall(b'{"id":1,"method":"thread/start","params":{}}\n')
            assert b"thr_1" in await anyio.to_thread.run_sync(deaf.recv, 1 << 16)
            turn = {"threadId": "thr_1", "input": [{"type": "text", "text": "hi"}]}
            line = json.dumps({"id": 2, "method": "turn/start", "params": turn})
            deaf.sendall(line.encode() + b"\n")
            async with stage.client() as client:
                assert (await client.play())["status"] == "completed"
            assert (await stage.result(2)).scenario == "good"
        assert (await stage.result(1)).scenario == "bad"


async def test_invalid_json_and_text_are_answered_and_the_client_is_judged(tmp_path) -> None:
    async with staged(tmp_path, {"one": GREETING}) as stage:
        async with stage.client() as client:
            await client.say("{")
            assert (await client.hear())["id"] is None
            await client.line.send(b"\x00binary")
            assert (await client.hear())["error"]["message"].endswith("this was a binary one")
            await client.play()
        ended = await stage.result()
        assert ended.is_red
        assert ended.problems == (
            "the client sent what is no message: a message is a text frame, and this was a binary "
            "one",
        )


async def test_a_hundred_that_never_shake_hands_disturb_nobody(tmp_path) -> None:
    async with staged(tmp_path, {"good": GREETING}) as stage:
        where = urlsplit(stage.address)
        silent = [socket.create_connection((where.hostname, where.port)) for _ in range(100)]
        try:
            await goes_on(stage)
        finally:
            for one in silent:
                one.close()
        assert len(stage.ended) == 1


async def test_the_end_interrupts_what_runs_and_tells_of_everybody(tmp_path) -> None:
    async with staged(tmp_path, {"one": HOLDING}) as stage:
        async with stage.client() as first, stage.client() as second:
            for client in (first, second):
                await client.turn(await client.begin())
                await client.until("item/agentMessage/delta")
            stage.stage.stop()
            for client in (first, second):
                ended = await client.until("turn/completed")
                assert ended["params"]["turn"]["status"] == "interrupted"
        with anyio.fail_after(BOUND):
            await stage.over.wait()
        assert sorted(one.connection for one in stage.ended) == ["1", "2"]


async def test_lines_over_a_socket_are_served_too(tmp_path) -> None:
    async with staged(tmp_path, {"one": GREETING}, kind="unix") as stage:
        async with await anyio.connect_unix(stage.address.removeprefix("unix:")) as stream:
            client = Client(OverLines(stream))
            assert (await client.play())["status"] == "completed"
        assert not (await stage.result()).is_red
