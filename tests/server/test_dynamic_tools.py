"""Tools of the client: their offer to the model, calls, and the client's answers."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from model_side import CREATED, Reply, calls, completed, done, function_call, says
from session_peer import Message, Peer, another_client, session

from harness.protocol.wire.tool import DynamicTool
from reference_server.config.model import Config
from reference_server.engine.client_tools import (
    MAX_TOOLS,
    MAX_TOOLS_CHARACTERS,
    OWN_NAMES,
    check_client_tools,
)
from reference_server.engine.client_tools import offers as client_offers
from reference_server.engine.tools.dynamic import MAX_CONTENT_CHARACTERS as ANSWER
from reference_server.engine.tools.dynamic import MAX_CONTENT_ITEMS, SHOWN_CHARACTERS, read_answer
from reference_server.engine.tools.tool_definitions import offers
from reference_server.limits import MAX_DEPTH
from reference_server.refusal import Refusal

pytestmark = pytest.mark.anyio

LOOKUP: dict[str, Any] = {
    "name": "lookup",
    "description": "Looks a value up",
    "inputSchema": {"type": "object", "properties": {"key": {"type": "string"}}},
}
PIXEL_URL = "data:image/png;base64,iVBORw0KGgo="


def text(words: str) -> dict[str, str]:
    return {"type": "inputText", "text": words}


def told_parts(peer: Peer) -> list[Any]:
    parts: Any = peer.told_model()
    return parts


async def question(peer: Peer, *, after: int = -1) -> Message:
    """Wait for a call of a tool whose request id is greater than `after`."""
    return await peer.until(lambda m: m.get("method") == "item/tool/call" and m["id"] > after)


async def answer(peer: Peer, asked: Message, content: Sequence[Any], *, success: Any) -> None:
    result = {"success": success, "contentItems": content}
    await peer.send_line(json.dumps({"id": asked["id"], "result": result}).encode())


async def asked_once(peer: Peer) -> tuple[str, Message]:
    """Start a turn whose model calls the tool; gives the turn's id and the request."""
    thread = await peer.start_thread(dynamicTools=[LOOKUP])
    turn = await peer.start_turn(thread)
    return turn, await question(peer)


async def test_a_tool_is_offered_to_the_model_after_the_servers_own(tmp_path: Path) -> None:
    bare = {"name": "bare", "description": "", "inputSchema": {}}
    async with session(tmp_path, [says("hi")]) as peer:
        await peer.run_turn(await peer.start_thread(dynamicTools=[LOOKUP, bare]))
        *own, first, second = peer.side.bodies[0]["tools"]
    assert {tool["name"] for tool in own} <= OWN_NAMES
    assert first == {
        "type": "function",
        "name": "lookup",
        "description": "Looks a value up",
        "strict": False,
        "parameters": {"type": "object", "properties": {"key": {"type": "string"}}},
    }
    assert second["parameters"] == {"type": "object", "properties": {}}


async def test_a_call_is_an_item_and_a_request_and_its_result_reaches_the_model(
    tmp_path: Path,
) -> None:
    replies = [calls("lookup", key="colour"), says("It is vermilion.")]
    async with session(tmp_path, replies) as peer:
        thread = await peer.start_thread(dynamicTools=[LOOKUP])
        turn = await peer.start_turn(thread)
        asked = await question(peer)
        begun = peer.params_of("item/started")[-1]["item"]
        assert begun == {
            "type": "dynamicToolCall",
            "id": asked["params"]["callId"],
            "tool": "lookup",
            "arguments": {"key": "colour"},
            "status": "inProgress",
        }
        assert asked["params"] == {
            "threadId": thread,
            "turnId": turn,
            "callId": begun["id"],
            "tool": "lookup",
            "arguments": {"key": "colour"},
        }
        await answer(peer, asked, [text("vermilion"), text("red")], success=True)
        assert (await peer.turn_end(turn))["status"] == "completed"
        assert peer.told_model() == "vermilion\nred"
        [ended] = peer.completed_items("dynamicToolCall")
    duration = ended.pop("durationMs")
    assert duration >= 0
    assert ended == {
        **begun,
        "status": "completed",
        "success": True,
        "contentItems": [text("vermilion"), text("red")],
    }
    told = peer.methods()
    assert told.index("serverRequest/resolved") < told.index(
        "item/completed", told.index("item/tool/call")
    )


async def test_images_reach_the_model_as_images(tmp_path: Path) -> None:
    image = {"type": "inputImage", "imageUrl": PIXEL_URL}
    other = {"type": "inputImage", "imageUrl": "file:///etc/passwd"}
    async with session(tmp_path, [calls("lookup"), says("seen")]) as peer:
        turn, asked = await asked_once(peer)
        await answer(peer, asked, [text("look:"), image, other], success=True)
        await peer.turn_end(turn)
        words, shown, refused = told_parts(peer)
        [item] = peer.completed_items("dynamicToolCall")
    assert words == {"type": "input_text", "text": "look:"}
    assert shown == {"type": "input_image", "image_url": PIXEL_URL}
    assert refused["type"] == "input_text"
    assert "file:///etc/passwd cannot be shown" in refused["text"]
    assert item["contentItems"] == [text("look:"), image, other]


@pytest.mark.parametrize(
    ("content", "told"), [([], "failed"), ([text("no such key")], "failed:\nno such key")]
)
async def test_a_tool_that_fails_is_told_to_the_model_and_the_turn_goes_on(
    tmp_path: Path, content: list[Any], told: str
) -> None:
    async with session(tmp_path, [calls("lookup"), says("a pity")]) as peer:
        turn, asked = await asked_once(peer)
        await answer(peer, asked, content, success=False)
        assert (await peer.turn_end(turn))["status"] == "completed"
        assert peer.told_model() == told
        [item] = peer.completed_items("dynamicToolCall")
    assert (item["status"], item["success"], item["contentItems"]) == ("failed", False, content)


NO_RESULTS: dict[str, dict[str, Any]] = {
    "an error": {"error": {"code": -32601, "message": "no such tool"}},
    "an error beside a result": {
        "error": {"code": 1, "message": "no"},
        "result": {"success": True, "contentItems": []},
    },
    "an error of another shape": {"error": "broken"},
    "nothing": {},
    "null": {"result": None},
    "a text": {"result": "vermilion"},
    "no success": {"result": {"contentItems": []}},
    "a word for success": {"result": {"success": "yes", "contentItems": []}},
    "an unknown content": {"result": {"success": True, "contentItems": [{"type": "inputAudio"}]}},
    "too much": {
        "result": {"success": True, "contentItems": [text("x")] * (MAX_CONTENT_ITEMS + 1)}
    },
    "a long text": {"result": {"success": True, "contentItems": [text("x" * (ANSWER + 1))]}},
    "far too much": {"result": {"success": True, "contentItems": [[]] * 20_000}},
}


@pytest.mark.parametrize("name", NO_RESULTS)
def test_whatever_is_no_result_is_a_failure_that_says_why(name: str) -> None:
    found = read_answer({"id": 0, **NO_RESULTS[name]})
    assert not found.success
    [why] = found.content
    assert getattr(why, "text", "").startswith("the client")


async def test_an_error_as_the_answer_fails_the_call_and_not_the_turn(tmp_path: Path) -> None:
    async with session(tmp_path, [calls("lookup"), says("a pity")]) as peer:
        turn, asked = await asked_once(peer)
        error = {"code": -32601, "message": "no such tool"}
        await peer.send_line(json.dumps({"id": asked["id"], "error": error}).encode())
        assert (await peer.turn_end(turn))["status"] == "completed"
        words = "the client answered with an error: no such tool"
        assert peer.told_model() == f"failed:\n{words}"
        [item] = peer.completed_items("dynamicToolCall")
    assert (item["status"], item["success"]) == ("failed", False)
    assert item["contentItems"] == [text(words)]


async def test_an_interrupt_ends_a_call_that_nobody_answers(tmp_path: Path) -> None:
    async with session(tmp_path, [calls("lookup"), says("again")]) as peer:
        turn, asked = await asked_once(peer)
        thread = asked["params"]["threadId"]
        await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        assert (await peer.turn_end(turn))["status"] == "interrupted"
        [item] = peer.completed_items("dynamicToolCall")
        assert item["status"] == "failed"
        assert "success" not in item
        assert peer.params_of("serverRequest/resolved")[-1]["requestId"] == asked["id"]
        # The answer comes too late and changes nothing.
        await answer(peer, asked, [text("vermilion")], success=True)
        assert (await peer.run_turn(thread))["status"] == "completed"
        outputs = [one for one in peer.side.bodies[1]["input"] if "output" in one]
    assert [one["output"] for one in outputs] == ["aborted: the turn ended"]


async def test_a_client_that_leaves_and_comes_back_is_asked_again(tmp_path: Path) -> None:
    async with session(tmp_path, [calls("lookup"), says("fine")]) as first:
        async with another_client(first) as owner:
            _turn, asked = await asked_once(owner)
        thread = asked["params"]["threadId"]
        await first.request("thread/resume", {"threadId": thread})
        again = await question(first)
        assert again == asked
        await answer(first, again, [text("vermilion")], success=True)
        await first.event("turn/completed", threadId=thread)
    assert first.told_model() == "vermilion"


async def test_both_subscribers_are_asked_and_the_first_answer_counts(tmp_path: Path) -> None:
    async with session(tmp_path, [calls("lookup"), says("fine")]) as first:
        thread = await first.start_thread(dynamicTools=[LOOKUP])
        async with another_client(first) as second:
            await second.request("thread/resume", {"threadId": thread})
            turn = await first.start_turn(thread)
            assert await question(first) == await question(second)
            await answer(second, await question(second), [text("of the second")], success=True)
            await first.event("serverRequest/resolved")
            await answer(first, await question(first), [text("of the first")], success=True)
            await first.turn_end(turn)
    assert first.told_model() == "of the second"


async def test_a_client_that_knows_no_such_request_leaves_it_to_the_others(tmp_path: Path) -> None:
    unknown = {"error": {"code": -32601, "message": "no such method"}}
    async with session(tmp_path, [calls("lookup"), says("fine")]) as first:
        thread = await first.start_thread(dynamicTools=[LOOKUP])
        async with another_client(first) as second:
            await second.request("thread/resume", {"threadId": thread})
            turn = await first.start_turn(thread)
            asked = await question(second)
            await second.send_line(json.dumps({"id": asked["id"], **unknown}).encode())
            await second.request("thread/read", {"threadId": thread})
            await answer(first, await question(first), [text("of the owner")], success=True)
            await first.turn_end(turn)
    assert first.told_model() == "of the owner"


async def test_if_no_client_knows_such_a_request_the_call_has_failed(tmp_path: Path) -> None:
    unknown = {"error": {"code": -32601, "message": "no such method"}}
    async with session(tmp_path, [calls("lookup"), says("a pity")]) as first:
        thread = await first.start_thread(dynamicTools=[LOOKUP])
        async with another_client(first) as second:
            await second.request("thread/resume", {"threadId": thread})
            turn = await first.start_turn(thread)
            for peer in (first, second):
                asked = await question(peer)
                await peer.send_line(json.dumps({"id": asked["id"], **unknown}).encode())
            await first.turn_end(turn)
    assert "no such method" in first.told_model()


async def test_two_calls_of_one_reply_are_asked_one_after_the_other(tmp_path: Path) -> None:
    two = [done(function_call("lookup", f"call_{n}", n=n), index=n) for n in (0, 1)]
    async with session(tmp_path, [Reply([CREATED, *two, completed()]), says("both")]) as peer:
        turn, asked = await asked_once(peer)
        await answer(peer, asked, [text("one")], success=True)
        later = await question(peer, after=asked["id"])
        assert peer.completed_items("dynamicToolCall")[0]["contentItems"] == [text("one")]
        await answer(peer, later, [text("two")], success=True)
        await peer.turn_end(turn)
        outputs = [one["output"] for one in peer.side.bodies[1]["input"] if "output" in one]
    assert outputs == ["one", "two"]


async def test_the_model_is_told_the_ends_of_a_long_text_and_the_client_all_of_it(
    tmp_path: Path,
) -> None:
    long = "a" * SHOWN_CHARACTERS + "middle" + "z" * SHOWN_CHARACTERS
    async with session(tmp_path, [calls("lookup"), says("much")]) as peer:
        turn, asked = await asked_once(peer)
        await answer(peer, asked, [text(long)], success=True)
        await peer.turn_end(turn)
        [item] = peer.completed_items("dynamicToolCall")
        told = peer.told_model()
    assert item["contentItems"] == [text(long)]
    assert (
        told == "a" * SHOWN_CHARACTERS + "\n[... 6 characters cut ...]\n" + "z" * SHOWN_CHARACTERS
    )


async def test_after_a_line_that_cannot_be_read_the_client_can_answer_again(tmp_path: Path) -> None:
    async with session(tmp_path, [calls("lookup"), says("odd")]) as peer:
        turn, asked = await asked_once(peer)
        await answer(peer, asked, [text("half a character: \ud800")], success=True)
        refused = await peer.until(lambda m: "error" in m)
        assert "half of a surrogate pair" in refused["error"]["message"]
        await answer(peer, asked, [text("whole ones")], success=True)
        await peer.turn_end(turn)
    assert peer.told_model() == "whole ones"


async def test_arguments_that_are_no_object_and_unknown_names_are_told_to_the_model(
    tmp_path: Path,
) -> None:
    listed = {**function_call("lookup"), "arguments": "[1]"}
    replies = [Reply([CREATED, done(listed), completed()]), calls("other"), says("sorry")]
    async with session(tmp_path, replies) as peer:
        await peer.run_turn(await peer.start_thread(dynamicTools=[LOOKUP]))
        assert peer.told_model(1) == "lookup: the arguments are not an object"
        assert peer.told_model(2) == "unsupported call: other"
    assert "item/tool/call" not in peer.methods()


@pytest.mark.parametrize("ephemeral", [False, True])
async def test_a_fork_has_the_tools_of_its_original(tmp_path: Path, ephemeral: bool) -> None:
    async with session(tmp_path, [says("hi"), says("ho")]) as peer:
        thread = await peer.start_thread(dynamicTools=[LOOKUP], ephemeral=ephemeral)
        await peer.run_turn(thread)
        forked = await peer.request("thread/fork", {"threadId": thread})
        await peer.run_turn(forked["result"]["thread"]["id"])
        assert peer.side.bodies[1]["tools"][-1]["name"] == "lookup"


async def test_arguments_of_many_levels_are_kept_or_refused(tmp_path: Path) -> None:
    """A record that nobody can read back would be lost with what was told of it."""
    kept, refused = (
        json.loads("[" * levels + "]" * levels) for levels in (MAX_DEPTH - 1, MAX_DEPTH)
    )
    replies = [calls("lookup", a=kept), calls("lookup", a=refused), says("deep")]
    async with session(tmp_path, replies) as peer:
        turn, asked = await asked_once(peer)
        thread = asked["params"]["threadId"]
        await answer(peer, asked, [], success=True)
        assert (await peer.turn_end(turn))["status"] == "completed"
        assert peer.told_model() == f"lookup: the arguments have more than {MAX_DEPTH} levels"
        [item] = peer.completed_items("dynamicToolCall")
    async with session(tmp_path) as peer:
        read = await peer.request("thread/read", {"threadId": thread, "includeTurns": True})
    assert item in read["result"]["thread"]["turns"][0]["items"]


async def test_a_resumed_thread_has_its_tools_and_its_calls(tmp_path: Path) -> None:
    async with session(tmp_path, [calls("lookup"), says("hi")]) as peer:
        turn, asked = await asked_once(peer)
        thread = asked["params"]["threadId"]
        await answer(peer, asked, [text("vermilion")], success=True)
        await peer.turn_end(turn)
        [item] = peer.completed_items("dynamicToolCall")
    async with session(tmp_path, [says("ho")]) as peer:
        shown = await peer.request("thread/resume", {"threadId": thread})
        [kept] = shown["result"]["thread"]["turns"]
        assert item in kept["items"]
        await peer.run_turn(thread)
        assert peer.side.bodies[0]["tools"][-1]["name"] == "lookup"


async def test_a_reviewer_is_not_offered_the_tools_of_the_client(tmp_path: Path) -> None:
    async with session(tmp_path, [says("{}")]) as peer:
        thread = await peer.start_thread(dynamicTools=[LOOKUP])
        given = {"threadId": thread, "target": {"type": "uncommittedChanges"}}
        started = await peer.request("review/start", given)
        await peer.turn_end(started["result"]["turn"]["id"])
        assert "lookup" not in [tool["name"] for tool in peer.side.bodies[0]["tools"]]


def named(*names: str) -> list[dict[str, Any]]:
    return [{**LOOKUP, "name": name} for name in names]


REFUSED: dict[str, tuple[Any, str]] = {
    "a name with a space": (named("look up"), "[0].name: 'look up' must be 1 to 64 letters"),
    "no name": (named(""), "[0].name: '' must be 1 to 64 letters"),
    "a long name": (named("x" * 65), "[0].name: "),
    "a name twice": (named("a", "b", "a"), "[2].name: 'a' is there twice"),
    "a tool of ours": (named("exec_command"), "[0].name: 'exec_command' is a name of the server"),
    "an MCP tool's name": (named("mcp__a__b"), "[0].name: 'mcp__a__b' is a name of the server"),
    "a schema of a text": (
        [{**LOOKUP, "inputSchema": {"type": "string"}}],
        "[0].inputSchema.type: must be 'object', not 'string'",
    ),
    "a schema with many levels": (
        [{**LOOKUP, "inputSchema": {"items": json.loads("[" * 100 + "]" * 100)}}],
        f"[0].inputSchema: has more than {MAX_DEPTH} levels",
    ),
    "too many": (named(*map(str, range(MAX_TOOLS + 1))), f": has more than {MAX_TOOLS} tools"),
    "too long": (
        [{**LOOKUP, "description": "x" * MAX_TOOLS_CHARACTERS}],
        f": has more than {MAX_TOOLS_CHARACTERS:,} characters",
    ),
    "no member name": ([{"description": "b"}], "[0].name: Field required"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_tools_that_no_model_takes_are_refused_with_their_place(
    tmp_path: Path, name: str
) -> None:
    tools, words = REFUSED[name]
    async with session(tmp_path) as peer:
        error = (await peer.request("thread/start", {"dynamicTools": tools}))["error"]
        # No tools are none.
        assert await peer.start_thread(dynamicTools=[])
        assert await peer.start_thread(dynamicTools=None)
    assert error["code"] == -32602
    assert error["message"].startswith(f"dynamicTools{words}")


def test_each_tool_that_we_offer_has_a_name_that_clients_may_not_take() -> None:
    config = Config(web_search="live")
    names = {tool.get("name", tool["type"]) for tool in offers(config)}
    assert names == OWN_NAMES
    assert DynamicTool.parse(LOOKUP).name not in names


def test_a_schema_that_is_no_json_is_refused() -> None:
    """`1e999` is such a value: a reader of JSON takes it for infinity."""
    tool = DynamicTool(name="a", description="", input_schema={"maximum": float("inf")})
    with pytest.raises(Refusal, match="dynamicTools: cannot be written as JSON"):
        check_client_tools([tool])


def test_of_two_tools_of_one_name_ours_is_offered() -> None:
    """A thread may be older than the tool of ours."""
    old = DynamicTool(name="update_plan", description="", input_schema={})
    new = DynamicTool.parse(LOOKUP)
    assert [tool["name"] for tool in client_offers([old, new])] == ["lookup"]


async def test_a_server_that_ends_does_not_wait_for_an_answer(tmp_path: Path) -> None:
    with anyio.fail_after(5):
        async with session(tmp_path, [calls("lookup")]) as peer:
            await asked_once(peer)
    assert peer.completed_items("dynamicToolCall")[0]["status"] == "failed"
