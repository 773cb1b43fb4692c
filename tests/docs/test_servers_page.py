"""docs/servers.md is up to date: its tables are compared with the harness."""

import inspect
import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from markdown_pages import ROOT, blocks

from harness.client.target.process import environment
from harness.client.target.profile import fill, load_profile
from harness.model.inprocess import ScriptedTransport
from harness.model.parts import UsageBody
from harness.model.script import ModelStep
from harness.model.tool_parts import WebSearch, WebSearchBody
from harness.model.tools import BUILT_IN_ROWS, OUTCOME_PATTERNS, ChosenTool, OfferedTool
from harness.model.wire.responses import ResponsesEncoder, ResponsesStream

PAGE = ROOT / "docs/servers.md"
URL = "http://127.0.0.1:41234/v1"


def _column(header: str) -> list[str]:
    """The first cells of the table whose first header this is, without backquotes."""
    (table,) = re.findall(rf"^\| {header} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE.read_text(), re.M)
    return [row.split("|")[1].strip().strip("`") for row in table.splitlines()]


def _events() -> Iterator[dict[str, Any]]:
    """Every event that the encoder can send, with every kind of item."""
    stream = ResponsesStream(1)
    search = WebSearch(web_search=WebSearchBody(query="q"))
    plays: dict[str, list[Any]] = {
        "start": [stream.start(UsageBody())],
        "start_message": [stream.start_message()],
        "message_delta": [stream.message_delta("a")],
        "end_message": [stream.end_message("a", None)],
        "start_reasoning": [stream.start_reasoning()],
        "summary_part": [stream.summary_part(0)],
        "summary_delta": [stream.summary_delta(0, "a")],
        "raw_delta": [stream.raw_delta(0, "a")],
        "end_reasoning": [stream.end_reasoning(["a"], ["b"])],
        "tool_call": [
            *stream.tool_call(ChosenTool(OfferedTool("shell"), {"a": 1}))[1],
            *stream.tool_call(
                ChosenTool(OfferedTool("apply_patch", takes_free_text=True), {"input": "x"})
            )[1],
        ],
        "provider_item": stream.provider_item(search),
        "fail": [stream.fail("code", "message")],
        "complete": [stream.complete(UsageBody())],
    }
    public = {name for name, _ in inspect.getmembers(stream, inspect.ismethod) if name[0] != "_"}
    assert set(plays) == public, "what the encoder can send is played here"
    for chunk in (chunk for chunks in plays.values() for chunk in chunks):
        first, second, *rest = chunk.decode().split("\n")
        event = json.loads(second.removeprefix("data: "))
        assert (first, rest) == (f"event: {event['type']}", ["", ""])
        yield event


def test_the_page_lists_each_event_that_the_model_can_send() -> None:
    assert sorted(_column("event")) == sorted({event["type"] for event in _events()})


def test_the_page_lists_each_item_that_an_event_can_carry() -> None:
    types = {event["item"]["type"] for event in _events() if "item" in event}
    assert sorted(_column("type")) == sorted(types)


def test_the_page_lists_the_variables_that_a_server_gets() -> None:
    profile = load_profile("spec")
    given = environment(profile.env, ROOT, profile.home_env)
    listed = _column("variable")
    assert set(profile.env) < set(listed)
    assert set(listed) - set(profile.env) == {profile.home_env, "HOME", "TMPDIR"}
    assert set(listed) - {"TMPDIR"} <= set(given)


def test_the_page_shows_the_config_file_that_a_server_finds() -> None:
    (block,) = (one for one in blocks(PAGE) if one.language == "toml")
    home = fill(load_profile("spec").home, {"model_url": URL})
    assert {"config.toml": tomllib.loads(block.body)} == home


def test_variables_that_are_kept_back_are_those_of_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named = re.search(r"whose names end in (.+?), and with these", PAGE.read_text(), re.S)
    assert named is not None
    endings = re.findall(r"`(_\w+)`", named[1])
    assert len(endings) >= 4
    for ending in endings:
        monkeypatch.setenv(f"MINE{ending}", "secret")
    monkeypatch.setenv("https_proxy", "http://proxy")
    monkeypatch.setenv("MINE", "plain")
    given = environment({}, ROOT, "AGENT_HOME")
    assert given["MINE"] == "plain"
    assert not {"https_proxy", *(f"MINE{ending}" for ending in endings)} & set(given)


class _Body(dict[str, Any]):
    """A call's body that notes which members are looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)


def test_the_page_lists_the_members_of_a_call_that_are_read() -> None:
    body, encoder = _Body(), ResponsesEncoder()
    for read in (encoder.user_texts, encoder.call_contents, encoder.offered_tools, encoder.outputs):
        read(body)
    encoder.orphans(body)
    assert sorted(_column("member")) == sorted(body.read)


def _client() -> httpx.AsyncClient:
    script = [ModelStep.model_validate({"reply": [{"message": "hello"}]})]
    return httpx.AsyncClient(transport=ScriptedTransport(script))


def test_header_that_names_another_model_is_on_the_page() -> None:
    (header,) = ResponsesEncoder().reroute_headers("other-model")
    assert f"the header `{header}`" in PAGE.read_text()
    capabilities = (ROOT / "harness/protocol/spec/capabilities.yaml").read_text()
    assert f"The header {header} " in capabilities


def test_built_in_tools_and_outcomes_are_in_the_tables_of_profiles() -> None:
    page = (ROOT / "docs/profiles.md").read_text()
    for row in BUILT_IN_ROWS:
        name = f"{row.namespace} {row.name}".strip()
        arguments = row.arguments if isinstance(row.arguments, str) else json.dumps(row.arguments)
        assert f"| `{row.intent}` | `{name}` | `{arguments}` |\n" in page
    for outcome, patterns in OUTCOME_PATTERNS.items():
        cell = ", ".join(f"`{pattern}`" for pattern in patterns).replace("|", "\\|")
        assert f"| `{outcome}` | {cell} |\n" in page


@pytest.mark.anyio
async def test_the_model_answers_the_requests_of_the_page_without_any_header() -> None:
    async with _client() as client:
        models = await client.get(f"{URL}/models")
        assert [one["id"] for one in models.json()["data"]] == ["mock-model"]
        answer = await client.post(f"{URL}/responses", content=b'{"input": "hi"}')
        assert answer.headers["content-type"] == "text/event-stream"
        assert "response.completed" in answer.text
        assert (await client.post(f"{URL}/chat/completions", content=b"{}")).status_code == 404
    assert _column("call") == ["POST …/responses", "GET …/models", "any other"]
