"""One suite over both ways to reach the scripted model: HTTP on loopback, and in process.

A caller sees the same answers, chunk by chunk as they are released, and the model sees the same
calls. What a fake hides by buffering would show here: a chunk is read before the next gate opens.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest
import yaml
from pydantic import TypeAdapter

from harness.model.inprocess import ScriptedTransport
from harness.model.model import ScriptedModel
from harness.model.script import ModelStep
from harness.model.server import model_server
from harness.model.wire.responses import ResponsesEncoder

pytestmark = [pytest.mark.socket]

BOUND = 20.0
Json = dict[str, Any]
SCRIPT = TypeAdapter(list[ModelStep])


@dataclass(frozen=True)
class Side:
    """A caller and the model that it reaches."""

    caller: httpx.AsyncClient
    model: ScriptedModel


MakeSide = Callable[[list[ModelStep]], AbstractAsyncContextManager[Side]]


@asynccontextmanager
async def in_process(script: list[ModelStep]) -> AsyncGenerator[Side]:
    transport = ScriptedTransport(script)
    url = "http://model.invalid/v1"
    async with httpx.AsyncClient(transport=transport, base_url=url) as caller:
        yield Side(caller, transport.model)


@asynccontextmanager
async def over_http(script: list[ModelStep]) -> AsyncGenerator[Side]:
    model = ScriptedModel(script, ResponsesEncoder())
    async with model_server() as server, httpx.AsyncClient(base_url=server.url) as caller:
        server.set_model(model)
        yield Side(caller, model)


SIDES: dict[str, MakeSide] = {"in-process": in_process, "http": over_http}


@pytest.fixture(params=SIDES)
def side(request: pytest.FixtureRequest) -> Callable[[str], AbstractAsyncContextManager[Side]]:
    """Return a function that makes a side from the YAML of a script."""

    @asynccontextmanager
    async def make(text: str) -> AsyncGenerator[Side]:
        script = SCRIPT.validate_python(yaml.safe_load(text))
        with anyio.fail_after(BOUND):
            async with SIDES[request.param](script) as made:
                yield made

    return make


def body(*texts: str, **more: Any) -> Json:
    return {"input": [{"role": "user", "content": text} for text in texts], **more}


async def ask_into(events: list[Json], side: Side, *texts: str) -> None:
    """Put each event of the answer to one call into a list as soon as it is there."""
    async with side.caller.stream("POST", "responses", json=body(*texts)) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                events.append(json.loads(line[6:]))  # noqa: PERF401 - others read it meanwhile


async def ask(side: Side, *texts: str) -> list[Json]:
    """Every event of the answer to one call."""
    events: list[Json] = []
    await ask_into(events, side, *texts)
    return events


async def until(true: Callable[[], bool]) -> None:
    """Let the others run until something is so; the test's bound is the bound."""
    while not true():
        await anyio.lowlevel.checkpoint()


def said(events: list[Json]) -> str:
    return "".join(event.get("delta", "") for event in events)


async def test_reply_streams_from_created_to_completed(side: Any) -> None:
    async with side("[{reply: [{message: {deltas: [Hello, ' there']}}]}]") as one:
        events = await ask(one, "hi")
    assert [event["type"] for event in events] == [
        "response.created",
        "response.output_item.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_item.done",
        "response.completed",
    ]
    assert events[4]["item"]["content"][0]["text"] == "Hello there"
    assert [event["sequence_number"] for event in events] == [1, 2, 3, 4, 5, 6]
    assert [call.outcome_text for call in one.model.calls] == ["completed"]
    assert one.model.calls[0].problems == []
    assert one.model.unplayed_count == 0


async def test_each_chunk_is_there_before_the_next_gate_opens(side: Any) -> None:
    text = "[{reply: [{message: {deltas: [a, {hold: one}, b, {hold: two}, c]}}, {hold: three}]}]"
    events: list[Json] = []
    async with side(text) as one, anyio.create_task_group() as tasks:
        tasks.start_soon(ask_into, events, one, "hi")
        for gate, so_far in (("one", "a"), ("two", "ab")):
            await one.model.gates.wait_until_reached(gate)
            await until(lambda so_far=so_far: said(events) == so_far)
            assert one.model.open_streams == 1
            one.model.gates.open(gate)
        await one.model.gates.wait_until_reached("three")
        await until(lambda: events[-1]["type"] == "response.output_item.done")
        assert said(events) == "abc"
        one.model.gates.open("three")
    assert events[-1]["type"] == "response.completed"
    assert one.model.calls[0].outcome_text == "completed"
    assert one.model.open_streams == 0


async def test_gate_that_was_opened_before_does_not_hold(side: Any) -> None:
    async with side("[{reply: [{hold: early}, {message: done}]}]") as one:
        one.model.gates.open("early")
        assert said(await ask(one, "hi")) == "done"


async def test_disconnect_is_a_lost_connection_after_what_was_said(side: Any) -> None:
    async with side("[{reply: [{message: {deltas: [half, {disconnect: true}, never]}}]}]") as one:
        events: list[Json] = []
        with pytest.raises(httpx.RemoteProtocolError):
            await ask_into(events, one, "hi")
    assert said(events) == "half"
    assert one.model.calls[0].outcome_text == "disconnected"
    assert one.model.open_streams == 0


async def test_disconnect_is_repeated_as_often_as_the_script_says(side: Any) -> None:
    text = (
        "[{reply: [{message: {deltas: [x, {disconnect: {times: 2}}]}}]}, {reply: [{message: y}]}]"
    )
    async with side(text) as one:
        for _ in range(2):
            with pytest.raises(httpx.RemoteProtocolError):
                await ask(one, "hi")
        assert said(await ask(one, "hi")) == "y"
    assert [call.outcome_text for call in one.model.calls] == ["disconnected"] * 2 + ["completed"]


async def test_hold_that_the_caller_drops_ends_the_stream(side: Any) -> None:
    async with side("[{reply: [{message: {deltas: [a, {hold: never}, b]}}]}]") as one:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, one, "hi")
            await one.model.gates.wait_until_reached("never")
            tasks.cancel_scope.cancel()
        await until(lambda: one.model.open_streams == 0)
        assert one.model.calls[0].outcome_text == "dropped by the caller"
        assert said(await ask(one, "again")) == "(the scenario's script has no further reply)"


async def test_http_failure_has_status_code_and_retry_after(side: Any) -> None:
    text = "[{fail: {status: 429, code: rate_limit_exceeded, message: slow, retry_after: 1.5}}]"
    async with side(text) as one:
        response = await one.caller.post("responses", json=body("hi"))
    assert response.status_code == 429
    assert response.headers["retry-after"] == "1.5"
    error = response.json()["error"]
    assert (error["code"], error["message"]) == ("rate_limit_exceeded", "slow")
    assert one.model.calls[0].outcome_text == "status 429"


async def test_failure_without_a_status_is_an_event_of_the_stream(side: Any) -> None:
    async with side("[{fail: {code: context_length_exceeded, message: too long}}]") as one:
        events = await ask(one, "hi")
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"] == {
        "code": "context_length_exceeded",
        "message": "too long",
    }


async def test_failure_until_the_turn_ends_ends_with_the_next_user_message(side: Any) -> None:
    text = "[{fail: {status: 500, times: until-turn-ends}}, {reply: [{message: better}]}]"
    async with side(text) as one:
        for _ in range(3):
            assert (await one.caller.post("responses", json=body("first"))).status_code == 500
        assert said(await ask(one, "first", "second")) == "better"
    assert [call.index for call in one.model.calls] == [0, 0, 0, 1]
    assert one.model.unplayed_count == 0


async def test_failure_n_times_is_played_n_times(side: Any) -> None:
    async with side("[{fail: {status: 503, times: 2}}, {reply: [{message: up}]}]") as one:
        codes = [(await one.caller.post("responses", json=body("x"))).status_code for _ in "ab"]
        assert codes == [503, 503]
        assert said(await ask(one, "x")) == "up"


async def test_reasoning_streams_summary_parts_and_raw_blocks(side: Any) -> None:
    text = "[{reply: [{reasoning: {summary: [[One, ' and'], Two], raw: [deep]}}]}]"
    async with side(text) as one:
        events = await ask(one, "hi")
    parts = [event["type"].removeprefix("response.") for event in events]
    assert parts == [
        "created",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.delta",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_text.delta",
        "output_item.done",
        "completed",
    ]
    item = events[8]["item"]
    assert [part["text"] for part in item["summary"]] == ["One and", "Two"]
    assert [part["text"] for part in item["content"]] == ["deep"]


async def test_usage_is_what_the_script_says(side: Any) -> None:
    async with side("[{reply: [{message: x}, {usage: {input: 7, output: 3, cached: 2}}]}]") as one:
        usage = (await ask(one, "hi"))[-1]["response"]["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (7, 3, 10)
    assert usage["input_tokens_details"] == {"cached_tokens": 2}


async def test_call_beyond_the_script_is_answered_and_noted(side: Any) -> None:
    async with side("[]") as one:
        assert said(await ask(one, "hi")) == "(the scenario's script has no further reply)"
    assert one.model.calls[0].problems == ["call 1 is not in the script"]


async def test_missing_input_and_orphaned_outputs_are_noted(side: Any) -> None:
    text = "[{expect: {input_contains: ['a \"b\"', gone], input_lacks: [b, z]}, reply: []}]"
    async with side(text) as one:
        orphan = {"type": "function_call_output", "call_id": "c1", "output": "x"}
        await one.caller.post(
            "responses", json={"input": [{"role": "user", "content": 'a "b"'}, orphan]}
        )
    assert one.model.calls[0].problems == [
        "a function_call_output for call 'c1', which the input does not hold",
        "call 1: its input does not contain 'gone'",
        "call 1: its input contains 'b'",
    ]


async def test_body_that_is_no_json_is_noted_and_answered(side: Any) -> None:
    async with side("[{reply: [{message: x}]}]") as one:
        response = await one.caller.post("responses", content=b"{not json")
        assert response.status_code == 200
    assert one.model.calls[0].problems[0] == "the body is no JSON object"


async def test_other_paths_are_refused_and_models_are_listed(side: Any) -> None:
    async with side("[]") as one:
        assert (await one.caller.get("models")).json()["data"][0]["id"] == "mock-model"
        assert (await one.caller.post("completions", json={})).status_code == 404
        assert (await one.caller.get("responses")).status_code == 404
    assert one.model.calls == []


async def test_two_callers_are_streamed_to_at_the_same_time(side: Any) -> None:
    text = "[{reply: [{message: {deltas: [a, {hold: g}]}}]}, {reply: [{message: b}]}]"
    first: list[Json] = []
    async with side(text) as one, anyio.create_task_group() as tasks:
        tasks.start_soon(ask_into, first, one, "x")
        await one.model.gates.wait_until_reached("g")
        assert said(await ask(one, "x")) == "b"
        assert one.model.calls[0].outcome_text != "completed"
        one.model.gates.open("g")
    assert said(first) == "a"
    assert [call.outcome_text for call in one.model.calls] == ["completed", "completed"]


TOOLS = [
    {"type": "function", "name": "exec_command", "parameters": {}},
    {"type": "custom", "name": "apply_patch"},
    {"type": "namespace", "name": "mcp__tiny", "tools": [{"type": "function", "name": "add"}]},
]


async def ask_with_tools(side: Side, *more: Json) -> list[Json]:
    events: list[Json] = []
    given = {**body("hi"), "tools": TOOLS}
    given["input"] += more
    async with side.caller.stream("POST", "responses", json=given) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                events.append(json.loads(line[6:]))  # noqa: PERF401 - a stream
    return events


def done_items(events: list[Json]) -> list[Json]:
    return [one["item"] for one in events if one["type"] == "response.output_item.done"]


async def test_intents_become_calls_of_the_offered_tools(side: Any) -> None:
    text = """
    [{reply: [{run: {command: ls, escalate: true, reason: why}},
              {run: {command: top, tty: true, background_after: 0.3}},
              {patch: {add: {a.txt: "one\\n"}, update: {b.txt: {old: x, new: y}}, delete: [c.txt]}},
              {mcp_call: {server: tiny, tool: add, arguments: {a: 1}}}]}]
    """
    async with side(text) as one:
        run, terminal, patch, mcp = done_items(await ask_with_tools(one))
    assert run["name"] == "exec_command"
    assert json.loads(run["arguments"]) == {
        "cmd": "ls",
        "yield_time_ms": 10000,
        "sandbox_permissions": "require_escalated",
        "justification": "why",
    }
    assert json.loads(terminal["arguments"]) == {"cmd": "top", "yield_time_ms": 300, "tty": True}
    assert (patch["type"], patch["name"]) == ("custom_tool_call", "apply_patch")
    assert patch["input"].splitlines() == [
        "*** Begin Patch",
        "*** Add File: a.txt",
        "+one",
        "*** Delete File: c.txt",
        "*** Update File: b.txt",
        "@@",
        "-x",
        "+y",
        "*** End Patch",
    ]
    assert (mcp["namespace"], mcp["name"], mcp["arguments"]) == ("mcp__tiny", "add", '{"a": 1}')
    called = [item["call_id"] for item in (run, terminal, patch, mcp)]
    assert one.model.calls[0].tool_calls == called


async def test_intent_without_a_tool_is_noted_and_the_reply_ends(side: Any) -> None:
    async with side("[{reply: [{view_image: {path: x.png}}]}]") as one:
        events = await ask_with_tools(one)
    assert events[-1]["type"] == "response.completed"
    (unfit,) = one.model.missing_tools
    assert unfit.intent == "view_image"
    assert [str(tool) for tool in unfit.offered_tools] == [
        "exec_command",
        "apply_patch",
        "mcp__tiny.add",
    ]
    assert one.model.is_stuck.is_set()


@pytest.mark.parametrize(
    ("output", "outcome"),
    [
        ("Process exited with code 0\nOutput:\nx", "ok"),
        ("Process exited with code 3", "failed"),
        ('{"output": "", "metadata": {"exit_code": 1}}', "failed"),
        ([{"type": "input_text", "text": "exec_command failed: rejected by user"}], "declined"),
        ("command refused by approval policy", "refused"),
        ("mumble", ""),
    ],
)
async def test_output_of_a_tool_is_compared_by_its_meaning(
    side: Any, output: Any, outcome: str
) -> None:
    for wanted in ("ok", "failed", "declined", "refused"):
        expected = f"{{tool_output: {{outcome: {wanted}}}}}"
        text = f"[{{reply: [{{run: ls}}]}}, {{expect: {expected}, reply: []}}]"
        async with side(text) as one:
            (call,) = done_items(await ask_with_tools(one))
            answer = {"type": "function_call_output", "call_id": call["call_id"], "output": output}
            await ask_with_tools(one, call, answer)
            problems = one.model.calls[1].problems
        assert (problems == []) == (wanted == outcome)
        if problems:
            assert f"expected {wanted}" in problems[0]


@pytest.mark.parametrize(
    ("cut", "last"),
    [
        ("before: response.created", ""),
        ("after: response.created", "response.created"),
        ("before: response.output_text.delta", "response.output_item.added"),
        ("after: response.output_text.delta", "response.output_text.delta"),
        ("before: response.completed", "response.output_item.done"),
    ],
)
async def test_stream_is_cut_at_a_named_event(side: Any, cut: str, last: str) -> None:
    events: list[Json] = []
    async with side(f"[{{reply: [{{message: a}}, {{disconnect: {{{cut}}}}}]}}]") as one:
        with pytest.raises(httpx.RemoteProtocolError):
            await ask_into(events, one, "hi")
    assert (events[-1]["type"] if events else "") == last


async def test_cut_at_an_event_that_never_comes_is_noted(side: Any) -> None:
    text = "[{reply: [{disconnect: {before: response.reasoning_text.delta}}]}]"
    async with side(text) as one:
        await ask(one, "hi")
    assert one.model.calls[0].problems == ["call 1: no event response.reasoning_text.delta"]


async def test_failure_has_the_body_that_the_script_says(side: Any) -> None:
    text = "[{fail: {status: 500, body: ''}}, {fail: {status: 429, body: {detail: slow}}}]"
    async with side(text) as one:
        empty, other = [await one.caller.post("responses", json=body("hi")) for _ in "ab"]
    assert (empty.status_code, empty.content) == (500, b"")
    assert (other.status_code, other.json()) == (429, {"detail": "slow"})


async def test_another_model_is_named_in_a_header_and_bytes_go_as_they_are(side: Any) -> None:
    parts = "{reroute: {model: other}}, {headers: {X-Left: '12.5'}}, {malformed: {hex: 'ff0a0a'}}"
    text = f"[{{reply: [{parts}]}}]"
    async with side(text) as one:
        response = await one.caller.post("responses", json=body("hi"))
    assert response.headers["openai-model"] == "other"
    assert response.headers["x-left"] == "12.5"
    assert b"\xff\n\n" in response.content


async def test_malformed_reply_is_repeated_until_the_turn_ends(side: Any) -> None:
    text = "[{reply: [{malformed: {bytes: x, times: until-turn-ends}}]}, {reply: [{message: y}]}]"
    async with side(text) as one:
        assert [said(await ask(one, "a")) for _ in "xy"] == ["", ""]
        assert said(await ask(one, "a", "b")) == "y"


async def test_plan_search_and_review_are_what_models_say(side: Any) -> None:
    text = """
    [{reply: [{plan_item: "1. look"}, {web_search: {query: sun}},
              {review: {explanation: fine, findings: [{title: t, path: /x, start: 1, end: 2}]}}]}]
    """
    async with side(text) as one:
        plan, search, review = done_items(await ask(one, "hi"))
    assert plan["content"][0]["text"] == "<proposed_plan>\n1. look\n</proposed_plan>"
    assert search["action"] == {"type": "search", "query": "sun"}
    findings = json.loads(review["content"][0]["text"])["findings"]
    assert findings[0]["code_location"]["line_range"] == {"start": 1, "end": 2}


async def test_delay_keeps_the_stream_silent_and_then_goes_on(side: Any) -> None:
    async with side("[{reply: [{message: {deltas: [a, {delay: {seconds: 0.05}}, b]}}]}]") as one:
        began = anyio.current_time()
        assert said(await ask(one, "hi")) == "ab"
        assert anyio.current_time() - began >= 0.05


async def test_the_body_of_a_failed_call_can_be_read_as_a_stream(side: Any) -> None:
    async with (
        side("[{fail: {status: 400, code: invalid_prompt, message: refused}}]") as one,
        one.caller.stream("POST", "responses", json=body("hi")) as response,
    ):
        raw = b"".join([chunk async for chunk in response.aiter_raw()])
    assert json.loads(raw)["error"]["message"] == "refused"
