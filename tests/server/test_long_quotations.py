"""Quotations of long foreign text in errors and in the log: shortened."""

import json
from typing import Any

import pytest
from model_side import runs, says
from session_peer import Peer, session

from reference_server.brief import QUOTE_LIMIT, brief, brief_value
from reference_server.config.load import ConfigError, load_config
from reference_server.config.model import Config

HEAP = "begin" + "x" * 2_000_000 + "end"
# A message is a sentence with a quotation, or two.
SHORT = 600


def test_a_short_text_is_quoted_as_it_is() -> None:
    assert brief("a" * QUOTE_LIMIT) == "a" * QUOTE_LIMIT


def test_of_a_long_text_both_ends_are_shown_and_how_much_is_left_out() -> None:
    shown = brief("a" * 1_000_000 + "b")
    assert shown.startswith("aaa")
    assert shown.endswith("ab")
    assert "999,881 more" in shown
    assert len(shown) < QUOTE_LIMIT + 30


def test_a_value_is_quoted_in_one_line() -> None:
    assert brief_value({"a": "b\nc"}) == "{'a': 'b\\nc'}"


REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "a method": (HEAP, {}),
    "a thread that is read": ("thread/read", {"threadId": HEAP}),
    "a thread that is asked": ("turn/start", {"threadId": HEAP, "input": []}),
    "a provider": ("thread/start", {"modelProvider": HEAP}),
    "a word of a list": ("thread/start", {"sandbox": HEAP}),
    "a type": ("turn/start", {"threadId": "t", "input": [{"type": HEAP}]}),
    "a path of an app": (
        "turn/start",
        {"threadId": "t", "input": [{"type": "mention", "name": "a", "path": HEAP}]},
    ),
    "a type of policy": (
        "turn/start",
        {"threadId": "t", "input": [], "sandboxPolicy": {"type": HEAP}},
    ),
    "an unknown member": ("thread/read", {HEAP: 1}),
}


@pytest.mark.parametrize("what", REQUESTS)
async def test_a_refusal_quotes_in_part(tmp_path, what: str) -> None:
    method, params = REQUESTS[what]
    async with session(tmp_path) as peer:
        message = (await peer.request(method, params))["error"]["message"]
    assert len(message) < SHORT


@pytest.mark.parametrize(
    ("method", "parameter"), [("turn/interrupt", "turnId"), ("turn/steer", "expectedTurnId")]
)
async def test_a_turn_that_is_not_active_is_quoted_in_part(
    tmp_path, method: str, parameter: str
) -> None:
    async with session(tmp_path, [runs("touch never"), says("a")]) as peer:
        thread = await peer.start_thread(approvalPolicy="on-request", sandbox="danger-full-access")
        await peer.start_turn(thread)
        question = await peer.asked()
        given = {"threadId": thread, parameter: HEAP, "input": [{"type": "text", "text": "x"}]}
        message = (await peer.request(method, given))["error"]["message"]
        await peer.decide(question, "cancel")
    assert message.startswith(f"{parameter}: ")
    assert len(message) < SHORT


async def test_the_greeting_quotes_in_part(tmp_path) -> None:
    hello = {"clientInfo": {"name": HEAP, "version": HEAP}}
    async with session(tmp_path) as peer:
        answer = await peer.request("initialize", hello)
    assert "begin" in answer["result"]["userAgent"]
    assert len(answer["result"]["userAgent"]) < SHORT


async def _answer(peer: Peer, body: dict[str, Any]) -> None:
    await peer.send_line(json.dumps(body).encode())


@pytest.mark.parametrize("result", [{"decision": HEAP}, HEAP, [HEAP] * 3])
async def test_the_log_quotes_an_answer_in_part(tmp_path, caplog, result: Any) -> None:
    async with session(tmp_path, [runs("touch never"), says("a")]) as peer:
        thread = await peer.start_thread(approvalPolicy="on-request", sandbox="danger-full-access")
        await peer.start_turn(thread)
        question = await peer.asked()
        await _answer(peer, {"id": question["id"], "result": result})
        await peer.event("serverRequest/resolved")
        await _answer(peer, {"id": "n" * 1000, "result": {}})
        await peer.request("thread/read", {"threadId": thread})
    lines = [record.getMessage() for record in caplog.records]
    assert any("declined" in line for line in lines)
    assert any("not open" in line for line in lines)
    assert max(map(len, lines)) < SHORT


async def test_a_provider_without_an_address_is_quoted_in_part(tmp_path) -> None:
    heap = Config(model_provider=HEAP)
    async with session(tmp_path, settings=heap) as peer:
        end = await peer.run_turn(await peer.start_thread())
    assert len(end["error"]["additionalDetails"]) < SHORT


def test_a_mistake_of_the_configuration_quotes_in_part(tmp_path) -> None:
    (tmp_path / "config.toml").write_text(f'sandbox_mode = "{HEAP}"')
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "config.toml", {})
    assert len(str(caught.value)) < SHORT + len(str(tmp_path))
