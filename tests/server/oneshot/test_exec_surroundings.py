"""Environment of `agent exec`: the settings that it reads, the secrets that it must not show."""

import json
import os
from typing import Any

import anyio
import pytest
from model_side import ModelSide, message, over_a_socket, says
from runs import JSON, SAYS_HELLO, Agent, Ran, scenario

pytestmark = [pytest.mark.socket, pytest.mark.slow, pytest.mark.anyio]

SECRET = "sk-very-secret-key"


async def asked(agent: Agent, side: ModelSide, *words: str, env: dict[str, str]) -> Ran:
    """Run it against a model that answers over a socket; URL in a value is its address."""
    async with over_a_socket(side) as url:
        words = tuple(word.replace("URL", url) for word in words)
        env = {name: value.replace("URL", url) for name, value in env.items()}
        return await anyio.to_thread.run_sync(
            lambda: agent.run(*JSON, *words, stdin=b"hi", env=env)
        )


@pytest.mark.parametrize(
    ("words", "env"),
    [
        ((), {"OPENAI_BASE_URL": "URL"}),
        ((), {"PROVIDER_BASE_URL": "URL"}),
        (("--config", 'openai_base_url="URL"'), {}),
        # What the command line says counts more than what may be inherited.
        (("--config", 'openai_base_url="URL"'), {"PROVIDER_BASE_URL": "http://127.0.0.1:9"}),
    ],
)
async def test_the_address_of_the_model(
    agent: Agent, words: tuple[str, ...], env: dict[str, str]
) -> None:
    side = ModelSide([says("Hello")])
    ran = await asked(agent, side, *words, env=env)
    assert (ran.status, side.paths) == (0, ["/v1/responses"])


@pytest.mark.parametrize(
    ("env", "sent"),
    [
        ({"PROVIDER_API_KEY": "own-key"}, "Bearer own-key"),
        ({"CODEX_API_KEY": "sdk-key"}, "Bearer sdk-key"),
        ({"CODEX_API_KEY": "sdk-key", "PROVIDER_API_KEY": "own-key"}, "Bearer sdk-key"),
        ({}, None),
    ],
)
async def test_the_key_of_the_model(agent: Agent, env: dict[str, str], sent: str | None) -> None:
    side = ModelSide([says("Hello")])
    await asked(agent, side, env={"OPENAI_BASE_URL": "URL", **env})
    assert side.headers[0].get("authorization") == sent


async def test_the_originator_is_passed_on(agent: Agent) -> None:
    side = ModelSide([says("Hello")])
    env = {"OPENAI_BASE_URL": "URL", "CODEX_INTERNAL_ORIGINATOR_OVERRIDE": "codex_sdk_ts"}
    await asked(agent, side, env=env)
    assert side.headers[0]["originator"] == "codex_sdk_ts"
    assert side.headers[0]["user-agent"].startswith("codex_sdk_ts ")


async def test_options_reach_the_model(agent: Agent) -> None:
    side = ModelSide([says("Hello")])
    words = ("-m", "big", "-c", 'model_reasoning_effort="xhigh"', "-c", 'web_search="cached"')
    await asked(agent, side, *words, env={"OPENAI_BASE_URL": "URL"})
    body: dict[str, Any] = side.bodies[0]
    assert (body["model"], body["reasoning"]["effort"]) == ("big", "xhigh")
    assert {"type": "web_search", "external_web_access": False} in body["tools"]


async def test_the_prompt_reaches_the_model_as_it_is(agent: Agent) -> None:
    side = ModelSide([says("Hello")])
    prompt = b"  a\0b \xe2\x80\xa8\r\n\n" + b"long " * 100_000
    async with over_a_socket(side) as url:
        env = {"OPENAI_BASE_URL": url}
        ran = await anyio.to_thread.run_sync(lambda: agent.run(*JSON, stdin=prompt, env=env))
    assert ran.status == 0
    assert side.bodies[0]["input"][-1]["content"][-1]["text"] == prompt.decode()


async def test_a_key_that_the_provider_repeats_is_not_shown(agent: Agent) -> None:
    from model_side import Reply

    side = ModelSide([Reply([json.dumps({"error": {"message": f"bad {SECRET}"}}).encode()], 401)])
    ran = await asked(agent, side, env={"OPENAI_BASE_URL": "URL", "CODEX_API_KEY": SECRET})
    assert ran.status == 1
    assert SECRET.encode() not in ran.out
    assert SECRET not in ran.err
    assert "[key]" in ran.events[-1]["error"]["message"]


@pytest.mark.parametrize("name", ["CODEX_API_KEY", "PROVIDER_API_KEY"])
def test_a_key_is_in_no_line_about_a_mistake(agent: Agent, name: str) -> None:
    ran = agent.run(*JSON, "-c", f"approval_policy={SECRET}", stdin=b"hi", env={name: SECRET})
    assert ran.status == 1
    assert SECRET not in ran.err


@pytest.mark.parametrize("name", ["CODEX_API_KEY", "PROVIDER_API_KEY"])
def test_commands_do_not_see_the_key(agent: Agent, name: str) -> None:
    model = ("--scenario", scenario(agent.folder, "[{run: 'env'}]", SAYS_HELLO))
    words = ("-s", "danger-full-access", "-c", 'command_environment.pass=["*"]')
    ran = agent.run(*JSON, *model, *words, stdin=b"hi", env={name: SECRET})
    assert ran.status == 0
    [item] = [item for item in ran.items if item["type"] == "command_execution"]
    assert "PATH=" in item["aggregated_output"]
    assert SECRET not in item["aggregated_output"]


def test_other_output_is_not_among_the_events(agent: Agent) -> None:
    assert message("x")
    model = ("--scenario", scenario(agent.folder, "[{run: 'echo no event'}]", SAYS_HELLO))
    ran = agent.run(*JSON, *model, "-s", "danger-full-access", stdin=b"hi")
    assert all(line.startswith(b'{"type":"') for line in ran.out.splitlines())
    assert b"\n\n" not in ran.out


def test_an_argument_counts_more_than_standard_input(agent: Agent) -> None:
    model = ("--scenario", scenario(agent.folder, SAYS_HELLO))
    with agent.start(*JSON, *model, "the argument") as process:
        # Standard input stays open, and nobody waits for it.
        assert process.stdout is not None
        assert b"turn.completed" in process.stdout.read()
        assert process.wait(30) == 0
    [path] = agent.home.glob("sessions/**/*.jsonl")
    assert "the argument" in path.read_text()


@pytest.mark.parametrize("entry", ["", ".", "bin/.."])
def test_a_folder_gives_no_mcp_server_its_program(agent: Agent, entry: str) -> None:
    """It would run outside the sandbox, and a repository or the model has put it there."""
    (agent.cwd / "bin").mkdir()
    (agent.cwd / "mcp-thing").write_text("#!/bin/sh\ntouch escaped\n")
    (agent.cwd / "mcp-thing").chmod(0o755)
    agent.home.mkdir()
    (agent.home / "config.toml").write_text("[mcp_servers.thing]\ncommand = 'mcp-thing'\n")
    model = ("--scenario", scenario(agent.folder, SAYS_HELLO))
    ran = agent.run(*JSON, *model, "hi", env={"PATH": f"{os.environ['PATH']}:{entry}"})
    assert ran.status == 0
    assert "The MCP server thing is not there" in ran.items[0]["message"]
    assert not (agent.cwd / "escaped").exists()


def test_ephemeral_run_needs_no_home_that_can_be_written(agent: Agent) -> None:
    temporary = agent.folder / "tmp"
    temporary.mkdir()
    # Nobody can make a folder there, root neither.
    surroundings = {"AGENT_HOME": "/proc/agent-home", "TMPDIR": str(temporary)}
    words = (*JSON, "--scenario", scenario(agent.folder, SAYS_HELLO))
    ran = agent.run(*words, "--ephemeral", stdin=b"hi", env=surroundings)
    assert ran.status == 0, ran.err
    assert ran.types[-1] == "turn.completed"
    assert list(temporary.iterdir()) == []
    kept = agent.run(*words, stdin=b"hi", env=surroundings)
    assert kept.status == 1
    assert "/proc/agent-home" in kept.err
