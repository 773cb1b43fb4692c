"""Choice of a scenario for a connection, and the end of a stage."""

import anyio
import pytest
import websockets
from staged import BOUND, GREETING, staged

from harness.errors import UsageError
from harness.play.client_tests.scenario_choice import load_choice
from reference_server.client_tests.stage import Bounds

pytestmark = [pytest.mark.anyio, pytest.mark.socket, pytest.mark.slow]

TWO = {
    "a": GREETING.replace("Hel", "A").replace("lo", "!"),
    "b": GREETING.replace("Hel", "B").replace("lo", "!"),
}


async def text_of(client) -> str:
    await client.play()
    return "".join(
        one["params"]["delta"]
        for one in client.heard
        if one.get("method") == "item/agentMessage/delta"
    )


@pytest.mark.parametrize("kind", ["ws", "ws+unix"])
async def test_a_client_names_its_scenario_by_the_path_as_often_as_it_likes(
    tmp_path, kind: str
) -> None:
    async with staged(tmp_path, TWO, kind=kind) as stage:
        for name, text in (("b", "B!"), ("b", "B!"), ("a", "A!")):
            async with stage.client(name) as client:
                assert await text_of(client) == text
        assert [(await stage.result(n)).scenario for n in (1, 2, 3)] == ["b", "b", "a"]
        assert not any(one.is_red for one in stage.ended)


@pytest.mark.parametrize("kind", ["ws", "unix"])
async def test_clients_that_name_none_get_each_once_and_then_nothing(tmp_path, kind: str) -> None:
    async with staged(tmp_path, TWO, kind=kind) as stage:
        for text in ("A!", "B!"):
            async with stage.client() as client:
                assert await text_of(client) == text
        async with stage.client() as client:
            await client.say({"id": 1, "method": "initialize", "params": {}})
            answer = await client.hear()
        assert (answer["id"], answer["error"]["code"]) == (None, -32001)
        assert "no scenario is left: each was begun once" in answer["error"]["message"]
        ended = await stage.result(3)
        assert (ended.scenario, ended.is_red) == ("", True)


async def test_one_scenario_alone_is_for_everybody(tmp_path) -> None:
    async with staged(tmp_path, {"a": TWO["a"]}) as stage:
        for _ in range(3):
            async with stage.client() as client:
                assert await text_of(client) == "A!"


async def test_an_unknown_name_is_refused_with_the_nearest_one(tmp_path) -> None:
    async with staged(tmp_path, {"greeting": GREETING, "other": GREETING}) as stage:
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with stage.client("mine/greting"):
                pass
        assert refused.value.response.status_code == 404
        assert b"did you mean 'greeting'?" in (refused.value.response.body or b"")
        assert stage.choice.unused_ids == ["greeting", "other"]
        assert stage.said == [
            "a connection was refused (404): unknown scenario 'mine/greting'; "
            "did you mean 'greeting'?"
        ]


async def test_a_refused_path_cannot_flood_or_act_on_a_terminal(tmp_path) -> None:
    async with staged(tmp_path, {"greeting": GREETING}) as stage:
        with pytest.raises(websockets.InvalidStatus):
            async with stage.client("%1b[2J" + "x" * 5000):
                pass
        [line] = stage.said
        assert len(line) < 500
        assert line.isprintable()


async def test_who_only_looks_whether_somebody_listens_begins_nothing(tmp_path) -> None:
    async with staged(tmp_path, TWO, kind="unix") as stage:
        for _ in range(3):
            async with stage.client():
                pass
        async with stage.client() as client:
            assert await text_of(client) == "A!"
        assert (await stage.result()).scenario == "a"


@pytest.mark.parametrize("bounds", [Bounds(once=True), Bounds(connections=2)], ids=["once", "two"])
async def test_it_ends_by_itself_when_it_is_told_to(tmp_path, bounds: Bounds) -> None:
    async with staged(tmp_path, TWO, bounds=bounds) as stage:
        async with stage.client() as client:
            await client.play()
        await stage.result()
        assert not stage.over.is_set()
        async with stage.client() as client:
            await client.play()
        with anyio.fail_after(BOUND):
            await stage.over.wait()


async def test_no_more_connections_are_played_than_were_asked_for(tmp_path) -> None:
    async with staged(tmp_path, {"a": TWO["a"]}, bounds=Bounds(connections=1)) as stage:
        async with stage.client() as first:
            await first.play()
            async with stage.client() as second:
                await second.say({"id": 1, "method": "initialize", "params": {}})
                assert "no scenario is left" in (await second.hear())["error"]["message"]
        assert not (await stage.result()).is_red


def test_scenarios_that_cannot_be_played_to_a_client_are_reported(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text, told in (
        ("bad", "titel: x\n", "bad.scenario.yaml:1:1"),
        ("exec", f"{GREETING}surfaces: [exec]\nclient:\n  - start_thread: {{as: t}}\n", "of exec"),
    ):
        path = tmp_path / f"{name}.scenario.yaml"
        path.write_text(text, "utf-8")
        with pytest.raises(UsageError) as caught:
            load_choice([str(path)])
        assert told in str(caught.value)
        path.unlink()
    with pytest.raises(UsageError, match=r"--scenario nope: no such file"):
        load_choice(["nope"])
