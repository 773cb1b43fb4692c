"""Key `mcp` of a scenario, and the tables that the agent gets for it."""

from __future__ import annotations

import pytest

from harness.model.mcp_script import McpServer
from harness.scenario.loader import load_text
from harness.scenario.yaml12 import ScenarioError

WRONG = {
    "{}": "3:9: the key 'tools' is missing",
    "{tools: [a]}": "found a list; expected a mapping",
    "{tools: {a: 5}}": "found 5; expected a text, or a mapping",
    "{tools: {a: {says: x, say: y}}}": "unknown key 'say'; did you mean 'says'?",
    "{tools: {'a b': x}}": "found 'a b'; expected letters",
    "{tools: {a: x}, transport: ws}": "found 'ws'; expected 'stdio' or 'http'",
    "{tools: {a: x}, transport: http, args: [x]}": "args and env are for a program",
    "{tools: {a: x}, transport: http, env: {A: x}}": "args and env are for a program",
    "{tools: {a: x}, bearer_token_env_var: X}": "goes with transport: http",
    "{tools: {a: x}, transport: http, bearer_token_env_var: PATH}": "the agent needs PATH",
    "{tools: {a: x}, transport: http, bearer_token_env_var: 'A B'}": "the name of a variable",
    "{tools: {a: x}, env: {'A=B': x}}": "found 'A=B'; expected the name of a variable",
    "{tools: {a: x}, env: {A: '{home}'}}": "{home} stands for nothing here",
    "{tools: {a: x}, args: ['{cwd}/x']}": "{cwd} stands for nothing here",
    '{tools: {a: x}, args: ["a\\0b"]}': "cannot hold the character U+0000",
}


def text(
    server: str, surfaces: str = "[session, exec]", client: str = "start_thread: {as: t}"
) -> str:
    head = f"title: it is called\nsurfaces: {surfaces}"
    return f"{head}\nmcp: {{tiny: {server}}}\nclient: [{{{client}}}]\n"


@pytest.mark.parametrize("server", WRONG)
def test_a_mistake_is_told_in_one_line(server: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_text(text(server))
    assert WRONG[server].removeprefix("3:9: ") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_who_starts_no_agent_plays_no_servers() -> None:
    client = "mcp: {words: [list]}"
    with pytest.raises(ScenarioError, match="they are for turns of an agent"):
        load_text(text("{tools: {a: x}}", "[command]", client))


def test_a_scenario_with_servers_has_a_process_of_its_own() -> None:
    assert load_text(text("{tools: {a: x}}")).scenario.needs_fresh_server


def test_a_table_holds_what_the_scenario_says_and_no_more() -> None:
    way = {"type": "stdio", "command": "x"}
    assert McpServer.model_validate({"tools": {"a": "b"}}).table(way) == {"transport": way}
    server = {"tools": {"a": "b"}, "env": {"SKY": "blue"}, "enabled": True}
    more = {"env": {"SKY": "blue"}, "enabled": True}
    assert McpServer.model_validate(server).table(way) == {"transport": way, **more}
    server = {"tools": {"a": "b"}, "transport": "http", "bearer_token_env_var": "TOKEN"}
    table = McpServer.model_validate(server).table({"type": "streamable_http"})
    assert table["bearer_token_env_var"] == "TOKEN"
