"""MCP servers over stdio that fail at their start, in a call, or at their end."""

import json
from typing import Any

import pytest
from mcp_side import TINY, ended, odd, offered, settled, tiny, until_in, with_servers
from model_side import Reply, calls, says
from session_peer import Peer, session

from reference_server.config.mcp import McpServer

pytestmark = [pytest.mark.slow, pytest.mark.socket, pytest.mark.usefixtures("mcp_sdk")]


def errors(peer: Peer) -> list[dict[str, Any]]:
    return peer.params_of("error")


async def failure(home, tool: str, server: McpServer | None = None, **arguments: Any) -> str:
    """Call a tool; gives the message of the failed item, which the model was told too."""
    replies = [calls(f"mcp__odd__{tool}", **arguments), says("ok")]
    settings = with_servers(server or odd())
    async with session(home, replies, settings=settings) as peer:
        turn = await peer.run_turn(await peer.start_thread())
        assert turn["status"] == "completed"
        [item] = peer.completed_items("mcpToolCall")
        assert (item["status"], "result" in item) == ("failed", False)
        assert peer.told_model() == f"failed: {item['error']['message']}"
        return item["error"]["message"]


async def test_a_program_that_is_not_there_is_told_once_and_the_turn_goes_on(tmp_path) -> None:
    none = McpServer("none", command="no-such-program")
    async with session(
        tmp_path, [says("one"), says("two")], settings=with_servers(none, tiny())
    ) as peer:
        thread = await peer.start_thread()
        turn = await peer.run_turn(thread)
        await peer.run_turn(thread)
    [told] = errors(peer)
    words = (
        "The MCP server none is not there: no-such-program: command not found on PATH; "
        "the turn goes on without its tools"
    )
    assert told == {
        "threadId": thread,
        "turnId": turn["id"],
        "willRetry": True,
        "error": {**told["error"], "message": words, "agentErrorInfo": "Other"},
    }
    assert [offered(body) for body in peer.side.bodies] == [
        ["mcp__tiny__add", "mcp__tiny__fail"]
    ] * 2


async def test_a_program_that_goes_and_comes_back_is_told_anew_when_it_goes(tmp_path) -> None:
    script = tmp_path / "now-and-then.py"
    settings = with_servers(tiny(script, name="now"))
    async with session(tmp_path, [says("1")] * 7, settings=settings) as peer:
        thread = await peer.start_thread()
        for _ in range(2):
            await peer.run_turn(thread)
            await settled(peer, "now")
        assert len(errors(peer)) == 1
        script.write_text(TINY.read_text())
        await peer.run_turn(thread)
        await settled(peer, "now")
        await peer.run_turn(thread)
        assert offered(peer.side.bodies[-1]) == ["mcp__now__add", "mcp__now__fail"]
        script.unlink()
        await ended(peer, "now")
        await peer.run_turn(thread)
        assert offered(peer.side.bodies[-1]) == []
    assert len(errors(peer)) == 2


async def test_a_program_that_does_not_start_is_started_once_in_a_turn(tmp_path) -> None:
    log = tmp_path / "log"
    script = tmp_path / "never.py"
    script.write_text(f"open({str(log)!r}, 'a').write('x')")
    settings = with_servers(tiny(script, name="never"))
    plans = [calls("update_plan", f"call_{at}", plan=[]) for at in range(5)]
    async with session(tmp_path, [*plans, says("done")], settings=settings) as peer:
        await peer.run_turn(await peer.start_thread())
    assert log.read_text() == "x"


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("die", "its program ended with status 7, and wrote: no licence"),
        ("hang", "it did not start within 0.5 seconds"),
    ],
)
async def test_a_program_that_does_not_start_is_told_with_the_reason(tmp_path, how, why) -> None:
    settings = with_servers(odd("--start", how, startup_timeout=0.5))
    async with session(tmp_path, [says("one")], settings=settings) as peer:
        turn = await peer.run_turn(await peer.start_thread())
    assert turn["status"] == "completed"
    [told] = errors(peer)
    assert f"is not there: {why}; " in told["error"]["message"]


async def test_a_program_that_did_not_start_is_tried_again_with_the_next_turn(tmp_path) -> None:
    script = tmp_path / "late.py"
    settings = with_servers(tiny(script, name="late"))
    async with session(tmp_path, [says("1")] * 3, settings=settings) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        script.write_text(TINY.read_text())
        await peer.run_turn(thread)
        # It was not waited for a second time.
        await settled(peer, "late")
        await peer.run_turn(thread)
    names = [offered(body) for body in peer.side.bodies]
    assert names == [[], [], ["mcp__late__add", "mcp__late__fail"]]


async def test_a_program_that_greets_the_user_is_used_all_the_same(tmp_path) -> None:
    settings = with_servers(odd("--start", "junk"))
    replies = [calls("mcp__odd__junk"), says("ok")]
    async with session(tmp_path, replies, settings=settings) as peer:
        await peer.run_turn(await peer.start_thread())
    assert peer.told_model() == "after junk"


async def test_a_program_that_dies_in_a_call_is_started_again_for_the_next(tmp_path) -> None:
    replies = [calls("mcp__odd__die"), calls("mcp__odd__echo", "call_2", a=1), says("ok")]
    async with session(tmp_path, replies, settings=with_servers(odd())) as peer:
        await peer.run_turn(await peer.start_thread())
    first, second = peer.completed_items("mcpToolCall")
    assert first["error"] == {
        "message": "its program ended with status 3, and wrote: out of cheese"
    }
    assert second["status"] == "completed"
    assert errors(peer) == []


async def test_half_an_answer_is_none(tmp_path) -> None:
    said = await failure(tmp_path, "half")
    assert said == 'its program ended with status 0, and wrote: {"jsonrpc": "2.0", "id": '


async def test_an_error_of_the_server_is_told_in_its_words(tmp_path) -> None:
    assert await failure(tmp_path, "error") == "it answered with an error: no cheese"


async def test_a_result_that_is_none_is_told(tmp_path) -> None:
    assert await failure(tmp_path, "wrong") == "its answer is not what MCP asks for"


async def test_a_call_is_bounded_in_time_and_the_server_is_told(tmp_path) -> None:
    log = tmp_path / "log"
    server = odd("--log", str(log), call_timeout=0.2)
    replies = [calls("mcp__odd__silent"), calls("mcp__odd__echo", "call_2", a=1), says("ok")]
    async with session(tmp_path, replies, settings=with_servers(server)) as peer:
        await peer.run_turn(await peer.start_thread())
        await until_in(log, "notifications/cancelled")
    first, second = peer.completed_items("mcpToolCall")
    assert first["error"] == {"message": "it gave no answer within 0.2 seconds"}
    assert first["durationMs"] >= 200
    assert second["status"] == "completed"


async def test_an_interrupt_does_not_wait_for_a_program_that_does_not_start(tmp_path) -> None:
    log = tmp_path / "log"
    settings = with_servers(odd("--start", "hang", "--log", str(log)))
    async with session(tmp_path, [], settings=settings) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await until_in(log, "initialize")
        await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        assert (await peer.turn_end(turn))["status"] == "interrupted"
    assert peer.side.bodies == []


async def test_a_thread_starts_and_is_listed_while_a_program_does_not_start(tmp_path) -> None:
    log = tmp_path / "log"
    settings = with_servers(odd("--start", "hang", "--log", str(log)))
    async with session(tmp_path, [], settings=settings) as peer:
        thread = await peer.start_thread()
        await peer.start_turn(thread)
        await until_in(log, "initialize")
        other = await peer.start_thread()
        listed = await peer.request("thread/loaded/list")
    assert sorted(listed["result"]["data"]) == [thread, other]


async def test_an_interrupt_ends_the_call_and_the_server_is_told(tmp_path) -> None:
    log = tmp_path / "log"
    settings = with_servers(odd("--log", str(log)))
    async with session(
        tmp_path, [calls("mcp__odd__silent"), says("later")], settings=settings
    ) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await until_in(log, "tools/call")
        await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        ended = await peer.turn_end(turn)
        await until_in(log, "notifications/cancelled")
        await peer.run_turn(thread, "go on")
    assert ended["status"] == "interrupted"
    [item] = peer.completed_items("mcpToolCall")
    assert (item["status"], item["error"]) == (
        "failed",
        {"message": "the turn was interrupted"},
    )
    outputs = [i for i in peer.side.bodies[-1]["input"] if i["type"] == "function_call_output"]
    assert [one["output"] for one in outputs] == ["aborted: the turn ended"]


async def test_a_program_that_reads_no_more_holds_up_no_interrupt(tmp_path) -> None:
    replies = [calls("mcp__odd__deaf"), calls("mcp__odd__echo", "call_2", long="x" * 2**20)]
    async with session(tmp_path, replies, settings=with_servers(odd())) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.until(lambda m: m.get("method") == "item/started" and "long" in str(m)[:2000])
        await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        assert (await peer.turn_end(turn))["status"] == "interrupted"


async def test_a_request_of_the_server_is_refused_and_the_call_goes_on(tmp_path) -> None:
    replies = [calls("mcp__odd__ask"), says("ok")]
    async with session(tmp_path, replies, settings=with_servers(odd())) as peer:
        await peer.run_turn(await peer.start_thread())
    assert json.loads(peer.told_model()) == "Sampling not supported"


async def test_a_program_that_asks_and_does_not_read_is_ended(tmp_path) -> None:
    said = await failure(tmp_path, "nosy")
    assert said == "it sends requests and does not take their answers"


async def test_arguments_that_are_no_object_make_no_item(tmp_path) -> None:
    plain = calls("mcp__odd__echo")
    broken = Reply([part.replace(b"{}", b"[]") for part in plain.parts if isinstance(part, bytes)])
    async with session(tmp_path, [broken, says("ok")], settings=with_servers(odd())) as peer:
        await peer.run_turn(await peer.start_thread())
    assert peer.completed_items("mcpToolCall") == []
    assert peer.told_model() == "mcp__odd__echo: the arguments are not an object"


async def test_a_tool_that_there_is_not_makes_no_item(tmp_path) -> None:
    replies = [calls("mcp__odd__nothing"), says("ok")]
    async with session(tmp_path, replies, settings=with_servers(odd())) as peer:
        await peer.run_turn(await peer.start_thread())
    assert peer.completed_items("mcpToolCall") == []
    assert peer.told_model() == "unsupported call: mcp__odd__nothing"


async def test_a_server_that_knows_no_handshake_is_spoken_with_in_the_newer_way(tmp_path) -> None:
    settings = with_servers(odd("--start", "modern"))
    replies = [calls("mcp__odd__echo", a=1), says("ok")]
    async with session(tmp_path, replies, settings=settings) as peer:
        await peer.run_turn(await peer.start_thread())
    assert json.loads(peer.told_model()) == {"a": 1}
