"""Output of the model's side other than text: reroutes, searches, images, output schemas."""

import base64
from dataclasses import replace
from typing import Any

import pytest
from model_side import CREATED, PIXEL, Reply, calls, completed, done, event, message, says
from session_peer import Peer, config, session

from harness.protocol.wire.item import WebSearchItem


def answered_by(model: str, *deltas: str) -> Reply:
    return Reply([CREATED, *message(*deltas), completed()], headers={"OpenAI-Model": model})


async def test_another_model_that_answers_is_told_before_its_answer(tmp_path) -> None:
    async with session(tmp_path, [answered_by("other", "hi")]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.turn_end(turn)
    [told] = peer.params_of("model/rerouted")
    assert told == {
        "threadId": thread,
        "turnId": turn,
        "fromModel": "test-model",
        "toModel": "other",
        "reason": "providerChoice",
    }
    methods = peer.methods()
    assert methods.index("model/rerouted") < methods.index("item/agentMessage/delta")


async def test_the_model_that_was_asked_is_no_reroute(tmp_path) -> None:
    async with session(tmp_path, [answered_by("test-model", "hi")]) as peer:
        await peer.run_turn(await peer.start_thread())
    assert peer.params_of("model/rerouted") == []


async def test_a_reroute_is_told_once_until_it_changes(tmp_path) -> None:
    def calling(model: str, call_id: str) -> Reply:
        return Reply(calls("fly", call_id).parts, headers={"openai-model": model})

    replies = [
        calling("b", "call_1"),
        calling("b", "call_2"),
        calling("test-model", "call_3"),
        calling("b", "call_4"),
        answered_by("c", "hi"),
        answered_by("c", "again"),
    ]
    async with session(tmp_path, replies) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        await peer.run_turn(thread)
    told = [(p["turnId"], p["toModel"]) for p in peer.params_of("model/rerouted")]
    assert told == [("turn_1", "b"), ("turn_1", "b"), ("turn_1", "c"), ("turn_2", "c")]


def search(action: Any, item_id: str = "ws_1") -> list[bytes]:
    begun = {"type": "web_search_call", "id": item_id, "status": "in_progress"}
    added = event("response.output_item.added", output_index=0, item=begun)
    return [added, done({**begun, "status": "completed", "action": action})]


ACTIONS: dict[str, tuple[Any, str, Any]] = {
    "search": ({"type": "search", "query": "sun"}, "sun", {"type": "search", "query": "sun"}),
    "page": (
        {"type": "open_page", "url": "http://x.invalid/"},
        "http://x.invalid/",
        {"type": "open_page", "url": "http://x.invalid/"},
    ),
    "find": (
        {"type": "find_in_page", "url": "http://x.invalid/", "pattern": "a"},
        "'a' in http://x.invalid/",
        {"type": "find_in_page", "url": "http://x.invalid/", "pattern": "a"},
    ),
    "unheard of": ({"type": "dream"}, "", None),
    "nothing": (None, "", None),
}


@pytest.mark.parametrize("name", ACTIONS)
async def test_a_search_of_the_providers_is_an_item(tmp_path, name: str) -> None:
    action, query, shown = ACTIONS[name]
    parts = [CREATED, *search(action), *message("Sunny."), completed()]
    async with session(tmp_path, [Reply(parts), says("on")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        await peer.run_turn(thread)
    [item] = peer.completed_items("webSearch")
    assert (item["query"], item.get("action")) == (query, shown)
    WebSearchItem.parse(item)
    begun = [p["item"] for p in peer.params_of("item/started")]
    assert {"type": "webSearch", "id": item["id"], "query": ""} in begun
    [kept] = [i for i in peer.side.bodies[1]["input"] if i["type"] == "web_search_call"]
    assert kept == {"type": "web_search_call", "status": "completed", "action": action}


async def test_a_search_that_is_not_finished_is_completed_with_the_answer(tmp_path) -> None:
    parts = [CREATED, search(None)[0], *message("Sunny.", index=1), completed()]
    async with session(tmp_path, [Reply(parts)]) as peer:
        await peer.run_turn(await peer.start_thread())
    assert [i["query"] for i in peer.completed_items("webSearch")] == [""]


@pytest.mark.parametrize(("word", "offered"), [("live", True), ("disabled", False)])
async def test_the_providers_search_is_offered_where_the_configuration_says_so(
    tmp_path, word: Any, offered: bool
) -> None:
    settings = replace(config(), web_search=word)
    async with session(tmp_path, [says("a")], settings=settings) as peer:
        await peer.run_turn(await peer.start_thread())
    assert ({"type": "web_search"} in peer.side.bodies[0]["tools"]) is offered


async def test_an_image_is_an_item_and_goes_to_the_model(tmp_path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.png").write_bytes(PIXEL)
    replies = [calls("view_image", path="sub/../a.png"), says("seen")]
    async with session(tmp_path / "home", replies) as peer:
        await peer.run_turn(await peer.start_thread(cwd=str(tmp_path)))
    [item] = peer.completed_items("imageView")
    assert item == {"type": "imageView", "id": item["id"], "path": str(tmp_path / "a.png")}
    assert item in [p["item"] for p in peer.params_of("item/started")]
    [part] = peer.side.bodies[1]["input"][-1]["output"]
    kind, _, data = part["image_url"].partition(";base64,")
    assert (part["type"], kind) == ("input_image", "data:image/png")
    assert base64.b64decode(data) == PIXEL


UNSEEN = {"missing": "none.png", "a folder": ".", "a text": "a.txt", "no path": None, "empty": ""}


@pytest.mark.parametrize("name", UNSEEN)
async def test_an_unreadable_image_makes_no_item(tmp_path, name: str) -> None:
    (tmp_path / "a.txt").write_text("x")
    async with session(
        tmp_path / "home", [calls("view_image", path=UNSEEN[name]), says("")]
    ) as peer:
        end = await peer.run_turn(await peer.start_thread(cwd=str(tmp_path)))
    assert end["status"] == "completed"
    assert peer.completed_items("imageView") == []
    assert peer.told_model().startswith("view_image: ")


SCHEMA = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}


async def schema_turn(peer: Peer, schema: Any = SCHEMA) -> Any:
    return await peer.run_turn(await peer.start_thread(), outputSchema=schema)


async def test_a_final_message_that_fits_its_schema_ends_the_turn(tmp_path) -> None:
    async with session(tmp_path, [says('{"n": 1}')]) as peer:
        end = await schema_turn(peer)
    assert (end["status"], peer.params_of("error")) == ("completed", [])


MISFITS = {
    "no JSON": ("in words", "not JSON"),
    "of another type": ("[1]", "at /: "),
    "with a wrong member": ('{"n": "one"}', "at /n: "),
    "nothing": ("", "not JSON"),
}


@pytest.mark.parametrize("name", MISFITS)
async def test_a_message_that_does_not_fit_is_asked_for_again(tmp_path, name: str) -> None:
    text, words = MISFITS[name]
    async with session(tmp_path, [says(text), says('{"n": 1}')]) as peer:
        end = await schema_turn(peer)
    assert end["status"] == "completed"
    [told] = peer.params_of("error")
    assert told["willRetry"] is True
    assert words in told["error"]["additionalDetails"]
    last = peer.side.bodies[1]["input"][-1]
    assert last["role"] == "developer"
    assert words in last["content"][0]["text"]
    assert len(peer.completed_items("agentMessage")) == 2


async def test_a_turn_whose_message_never_fits_fails(tmp_path) -> None:
    async with session(tmp_path, [says("in words"), says("[]")]) as peer:
        end = await schema_turn(peer)
    assert end["status"] == "failed"
    assert "outputSchema" in end["error"]["message"]
    assert [p["willRetry"] for p in peer.params_of("error")] == [True, False]


async def test_only_the_final_message_must_fit(tmp_path) -> None:
    early = Reply([CREATED, *message("I look."), *calls("fly").parts[1:]])
    async with session(tmp_path, [early, says('{"n": 1}')]) as peer:
        end = await schema_turn(peer)
    assert (end["status"], peer.params_of("error")) == ("completed", [])


BAD_SCHEMAS = {
    "a wrong keyword": {"type": 12},
    "another document": {"$ref": "http://127.0.0.1:1/schema.json"},
    "nothing there": {"$ref": "#/nowhere"},
}


@pytest.mark.parametrize("name", BAD_SCHEMAS)
async def test_an_object_that_is_no_schema_is_refused(tmp_path, name: str) -> None:
    async with session(tmp_path) as peer:
        thread = await peer.start_thread()
        given = {
            "threadId": thread,
            "input": [{"type": "text", "text": "x"}],
            "outputSchema": BAD_SCHEMAS[name],
        }
        error = (await peer.request("turn/start", given))["error"]
    assert error["code"] == -32602
    assert error["message"].startswith("outputSchema: ")
    assert "\n" not in error["message"]
    assert peer.params_of("turn/started") == []


async def test_the_service_and_the_personality_reach_the_model_in_every_turn(tmp_path) -> None:
    async with session(tmp_path, [says("a"), says("b"), says("c")]) as peer:
        plain = await peer.start_thread()
        await peer.run_turn(plain)
        thread = await peer.start_thread(serviceName="tests", personality="friendly")
        await peer.run_turn(thread)
        await peer.run_turn(thread)
    none, first, second = peer.side.bodies
    assert "metadata" not in none
    assert first["metadata"] == second["metadata"] == {"service_name": "tests"}
    assert first["instructions"] == second["instructions"]
    assert first["instructions"].startswith(none["instructions"])
    assert "warm" in first["instructions"].removeprefix(none["instructions"])
