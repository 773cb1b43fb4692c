"""Results of MCP tools: unchanged for the client, in the model's own form for the model."""

import base64
import json
from typing import Any

import pytest
from mcp_side import odd, with_servers
from model_side import PIXEL, calls, says
from session_peer import session

from reference_server.limits import MAX_DEPTH
from reference_server.mcp.results import MAX_BLOCKS, RESULT_LIMIT, limit_result

pytestmark = [pytest.mark.slow, pytest.mark.socket, pytest.mark.usefixtures("mcp_sdk")]


async def called(home, tool: str, **arguments: Any) -> tuple[dict[str, Any], Any]:
    """Call a tool of the odd server; gives its item and what the model was told."""
    replies = [calls(f"mcp__odd__{tool}", **arguments), says("ok")]
    async with session(home, replies, settings=with_servers(odd())) as peer:
        await peer.run_turn(await peer.start_thread())
        [item] = peer.completed_items("mcpToolCall")
        return item, peer.told_model()


async def test_arguments_arrive_as_the_model_gave_them(tmp_path) -> None:
    given = {"a": [1, None, {"b": "ü\u2028"}], "empty": {}}
    item, told = await called(tmp_path, "echo", **given)
    assert item["arguments"] == given
    assert json.loads(told) == given


async def test_an_image_reaches_the_model_as_an_image(tmp_path) -> None:
    data = base64.b64encode(PIXEL).decode()
    item, told = await called(tmp_path, "image", data=data)
    assert item["result"]["content"] == [{"type": "image", "mimeType": "image/png", "data": data}]
    assert told == [{"type": "input_image", "image_url": f"data:image/png;base64,{data}"}]


@pytest.mark.parametrize(
    ("data", "why"), [("%%%", "no base64"), ("aGVsbG8=", "no PNG, JPEG, GIF or WebP")]
)
async def test_invalid_images_never_reach_the_model(tmp_path, data, why) -> None:
    item, told = await called(tmp_path, "image", data=data)
    assert item["status"] == "completed"
    assert told.startswith("[an image that cannot be shown: ")
    assert why in told


async def test_structured_content_without_text_is_told_as_json(tmp_path) -> None:
    item, told = await called(tmp_path, "structured")
    assert item["result"] == {"content": [], "structuredContent": {"five": 5}}
    assert json.loads(told) == {"five": 5}


async def test_other_content_is_told_without_its_data(tmp_path) -> None:
    item, told = await called(tmp_path, "mixed")
    assert [block["type"] for block in item["result"]["content"]] == [
        "text",
        "audio",
        "resource_link",
        "resource",
    ]
    text, sound, link, inside = told.splitlines()
    assert (text, inside) == ("a sound:", "inside")
    assert json.loads(sound)["data"] == "[12 characters]"
    assert json.loads(link)["uri"] == "file:///x"


async def test_a_long_result_is_cut_for_both_and_says_so(tmp_path) -> None:
    size = 20 * 2**20
    item, told = await called(tmp_path, "long", size=size)
    [block] = item["result"]["content"]
    assert len(block["text"]) < RESULT_LIMIT
    assert len(told) < 41_000
    assert " more… " in block["text"]
    assert " more… " in told


async def test_a_message_beyond_all_bounds_fails_the_call_alone(tmp_path) -> None:
    replies = [
        calls("mcp__odd__long", size=100 * 2**20),
        calls("mcp__odd__echo", "call_2", again=1),
        says("ok"),
    ]
    async with session(tmp_path, replies, settings=with_servers(odd())) as peer:
        turn = await peer.run_turn(await peer.start_thread())
    assert turn["status"] == "completed"
    first, second = peer.completed_items("mcpToolCall")
    assert first["error"] == {"message": "it sent a message of more than 32 MiB"}
    assert second["result"]["content"] == [{"type": "text", "text": '{"again": 1}'}]


def test_a_result_of_many_blocks_keeps_the_first_and_counts_the_others() -> None:
    content = [{"type": "text", "text": str(at)} for at in range(MAX_BLOCKS + 5)]
    kept, _ = limit_result(content, None)
    assert kept[:-1] == content[:MAX_BLOCKS]
    assert kept[-1]["text"] == "[5 more blocks: left out]"


def test_content_that_does_not_fit_is_replaced_by_a_note() -> None:
    large = {"type": "image", "mimeType": "image/png", "data": "x" * RESULT_LIMIT}
    kept, structured = limit_result([large, {"type": "text", "text": "after"}], {"a": "y" * 100})
    assert structured == {"a": "y" * 100}
    assert kept[0]["text"].startswith("[image of 4,19")
    kept, structured = limit_result([], "z" * RESULT_LIMIT)
    assert structured is None
    assert kept[0]["text"].startswith("[structured content of 4,19")


@pytest.mark.parametrize("raw", ['"\\ud800"', "[" * 900 + "]" * 900], ids=["surrogate", "deep"])
async def test_an_answer_that_cannot_be_read_fails_its_call_at_once(tmp_path, raw) -> None:
    item, told = await called(tmp_path, "raw", raw=raw)
    assert item["error"] == {"message": "its answer is no message that can be read"}
    assert told == "failed: its answer is no message that can be read"


async def test_content_with_which_no_thread_could_be_read_is_left_out(tmp_path) -> None:
    replies = [
        calls("mcp__odd__raw", raw="[" * 150 + "]" * 150),
        calls("mcp__odd__raw", "call_2", raw="[" * 90 + "]" * 90),
        calls("mcp__odd__raw", "call_3", raw="[NaN, 1e999]"),
        says("ok"),
    ]
    async with session(tmp_path, replies, settings=with_servers(odd())) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        items = peer.completed_items("mcpToolCall")
    left_out = "[structured content with too many levels: left out]"
    assert items[0]["result"]["structuredContent"] is None
    assert items[0]["result"]["content"] == [{"type": "text", "text": left_out}]
    assert items[2]["result"]["structuredContent"] == {"it": [None, None]}
    async with session(tmp_path) as peer:
        read = await peer.request("thread/read", {"threadId": thread, "includeTurns": True})
    [turn] = read["result"]["thread"]["turns"]
    assert [one for one in turn["items"] if one["type"] == "mcpToolCall"] == items


async def test_arguments_that_are_nested_too_deeply_make_no_item(tmp_path) -> None:
    deep: list[Any] = []
    for _ in range(150):
        deep = [deep]
    replies = [calls("mcp__odd__echo", deep=deep), says("ok")]
    async with session(tmp_path, replies, settings=with_servers(odd())) as peer:
        await peer.run_turn(await peer.start_thread())
    assert peer.completed_items("mcpToolCall") == []
    assert peer.told_model() == "mcp__odd__echo: the arguments have more than 100 levels"


def test_content_that_is_too_deep_is_left_out() -> None:
    deep: Any = "x"
    for _ in range(MAX_DEPTH):
        deep = [deep]
    text = {"type": "text", "text": "before"}
    assert limit_result([text], {"a": deep[0]}) == ([text], {"a": deep[0]})
    kept, structured = limit_result([text, {"type": "other", "a": deep}], {"a": deep})
    assert structured is None
    assert kept[0] == text
    assert [one["text"] for one in kept[1:]] == [
        "[other with too many levels: left out]",
        "[structured content with too many levels: left out]",
    ]
