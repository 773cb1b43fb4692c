"""Every option of the specification, as the agent gets it: arguments, variables, input."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from fake_agents import ECHO

from agent_sdk import Agent, ConfigError, LocalImageInput, TextInput

pytestmark = [pytest.mark.socket, pytest.mark.anyio]

START = ["exec", "--experimental-json"]


def _pairs(words: list[str]) -> list[tuple[str, str]]:
    """The words after the first two, taken two by two."""
    assert words[:2] == START
    return list(zip(words[2::2], words[3::2], strict=True))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, []),
        ({"working_directory": "sub"}, ["--cd", "sub"]),
        ({"working_directory": Path("/a b")}, ["--cd", "/a b"]),
        ({"sandbox_mode": "read-only"}, ["--sandbox", "read-only"]),
        ({"sandbox_mode": "workspace-write"}, ["--sandbox", "workspace-write"]),
        ({"sandbox_mode": "danger-full-access"}, ["--sandbox", "danger-full-access"]),
        ({"model": "large"}, ["--model", "large"]),
        ({"skip_git_repo_check": True}, ["--skip-git-repo-check"]),
        ({"skip_git_repo_check": False}, []),
        *(
            (
                {"model_reasoning_effort": effort},
                ["--config", f'model_reasoning_effort="{effort}"'],
            )
            for effort in ("minimal", "low", "medium", "high", "xhigh")
        ),
        (
            {"network_access_enabled": True},
            ["--config", "sandbox_workspace_write.network_access=true"],
        ),
        (
            {"network_access_enabled": False},
            ["--config", "sandbox_workspace_write.network_access=false"],
        ),
        *(
            ({"web_search_mode": mode}, ["--config", f'web_search="{mode}"'])
            for mode in ("disabled", "cached", "live")
        ),
        *(
            ({"approval_policy": policy}, ["--config", f'approval_policy="{policy}"'])
            for policy in ("never", "on-request", "on-failure", "untrusted")
        ),
        ({"additional_directories": ["a", Path("b")]}, ["--add-dir", "a", "--add-dir", "b"]),
    ],
)
async def test_an_option_of_a_thread_becomes_words(fake, options, words) -> None:
    agent = fake(ECHO)
    client = Agent(agent_path=agent.path)
    await client.start_thread(**options).run("x")
    await client.resume_thread("thr_9", **options).run("x")
    started, resumed = agent.runs()
    assert started["argv"] == [*START, *words]
    assert resumed["argv"] == [*START, *words, "resume", "thr_9"]


async def test_all_options_together_have_the_order_that_agents_know(fake) -> None:
    agent = fake(ECHO)
    thread = Agent(agent_path=agent.path, config={"approval_policy": "never"}).resume_thread(
        "thr_9",
        working_directory="w",
        sandbox_mode="read-only",
        model="m",
        skip_git_repo_check=True,
        model_reasoning_effort="low",
        network_access_enabled=True,
        web_search_mode="live",
        approval_policy="untrusted",
        additional_directories=["d"],
    )
    await thread.run([LocalImageInput("i.png"), TextInput("x")], output_schema={"type": "object"})
    words = agent.run["argv"]
    schema = words[words.index("--output-schema") + 1]
    assert words == [
        *START,
        *("--config", 'approval_policy="never"'),
        *("--model", "m", "--sandbox", "read-only", "--cd", "w", "--add-dir", "d"),
        *("--skip-git-repo-check", "--output-schema", schema),
        *("--config", 'model_reasoning_effort="low"'),
        *("--config", "sandbox_workspace_write.network_access=true"),
        *("--config", 'web_search="live"'),
        # After the client's, whose place it takes.
        *("--config", 'approval_policy="untrusted"'),
        *("resume", "thr_9", "--image", "i.png"),
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "--yolo"}, ["--model=--yolo"]),
        ({"working_directory": "-x"}, ["--cd", "./-x"]),
        ({"additional_directories": ["--yolo"]}, ["--add-dir", "./--yolo"]),
    ],
)
async def test_no_value_is_taken_for_an_option_or_another_setting(fake, options, words) -> None:
    agent = fake(ECHO)
    await Agent(agent_path=agent.path).start_thread(**options).run("x")
    assert agent.run["argv"] == [*START, *words]


@pytest.mark.parametrize(
    "options",
    [
        {"model": ""},
        {"model": "a\0b"},
        {"model": 7},
        {"model": "\ud800"},
        {"working_directory": ""},
        {"working_directory": 7},
        {"working_directory": "a\0b"},
        {"sandbox_mode": True},
        {"approval_policy": 7},
        {"model_reasoning_effort": ""},
        {"network_access_enabled": "yes"},
        {"additional_directories": "abc"},
        {"additional_directories": [""]},
        {"additional_directories": [None]},
    ],
)
def test_a_value_that_cannot_be_passed_is_refused_by_its_name(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigError, match=name):
        Agent().start_thread(**options)
    with pytest.raises(ConfigError, match=name):
        Agent().resume_thread("thr_1", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sandbox_mode": "readonly"}, "not 'readonly'; did you mean 'read-only'?"),
        ({"sandbox_mode": "-x"}, "must be one of read-only, workspace-write, danger-full-access"),
        ({"approval_policy": "on_request"}, "not 'on_request'; did you mean 'on-request'?"),
        ({"approval_policy": 'x"\ny=1'}, "must be one of never"),
        ({"model_reasoning_effort": "High"}, "not 'High'; did you mean 'high'?"),
        ({"web_search_mode": "on"}, "must be one of disabled, cached, live, not 'on'"),
    ],
)
def test_a_misspelt_word_is_refused_when_the_thread_is_made(
    options: dict[str, Any], message: str
) -> None:
    (name,) = options
    for make in (Agent().start_thread, lambda **more: Agent().resume_thread("thr_1", **more)):
        with pytest.raises(ConfigError) as caught:
            make(**options)
        assert str(caught.value).startswith(f"{name} must be one of ")
        assert message in str(caught.value)


@pytest.mark.parametrize("thread_id", ["", "--last", "-", "a\0b", None, 7])
def test_an_invalid_thread_id_is_refused(thread_id: Any) -> None:
    with pytest.raises(ConfigError, match="thread id"):
        Agent().resume_thread(thread_id)


async def test_the_key_and_the_address_are_variables_and_no_words(fake) -> None:
    agent = fake(ECHO)
    client = Agent(agent_path=agent.path, api_key="sk-12345", base_url="http://localhost:1/v1")
    await client.start_thread().run("x")
    run = agent.run
    assert run["argv"] == START
    assert run["env"]["PROVIDER_API_KEY"] == "sk-12345"
    assert run["env"]["PROVIDER_BASE_URL"] == "http://localhost:1/v1"


async def test_the_environment_of_the_process_is_inherited_without_env(
    fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = fake(ECHO)
    client = Agent(agent_path=agent.path)
    monkeypatch.setenv("PROVIDER_API_KEY", "sk-of-the-environment")
    monkeypatch.setenv("A_MARK", "é")
    await client.start_thread().run("x")
    env = agent.run["env"]
    assert (env["PROVIDER_API_KEY"], env["A_MARK"]) == ("sk-of-the-environment", "é")


async def test_the_environment_of_the_process_is_not_inherited_with_env(
    fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = fake(ECHO)
    monkeypatch.setenv("PROVIDER_API_KEY", "sk-of-the-environment")
    monkeypatch.setenv("A_MARK", "1")
    await Agent(agent_path=agent.path, env={"ONLY": "this"}).start_thread().run("x")
    env = agent.run["env"]
    assert env["ONLY"] == "this"
    assert not {"PROVIDER_API_KEY", "A_MARK", "PATH", "HOME"} & set(env)


async def test_the_key_is_added_to_env_and_wins(fake) -> None:
    agent = fake(ECHO)
    env = {"PROVIDER_API_KEY": "sk-old"}
    await Agent(agent_path=agent.path, env=env, api_key="sk-new").start_thread().run("x")
    assert agent.run["env"]["PROVIDER_API_KEY"] == "sk-new"
    assert env == {"PROVIDER_API_KEY": "sk-old"}


async def test_later_changes_of_env_change_nothing(fake) -> None:
    agent = fake(ECHO)
    env = {"A_MARK": "1"}
    client = Agent(agent_path=agent.path, env=env)
    env["A_MARK"] = "2"
    await client.start_thread().run("x")
    assert agent.run["env"]["A_MARK"] == "1"


@pytest.mark.parametrize("env", [{"A=B": "1"}, {"": "1"}, {"A": "1\0"}, {"A": 1}, {"A": "\ud800"}])
def test_an_environment_that_cannot_be_given_is_refused_without_its_values(env: Any) -> None:
    with pytest.raises(ConfigError, match="env") as told:
        Agent(env=env)
    assert "1" not in str(told.value)


async def test_the_agent_is_looked_up_on_path(fake, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = fake(ECHO)
    monkeypatch.setenv("PATH", str(agent.path.parent))
    await Agent().start_thread().run("x")
    # Also where the environment that is given has no PATH.
    await Agent(env={}).start_thread().run("x")
    monkeypatch.setenv("PATH", os.defpath)
    await Agent(env={"PATH": str(agent.path.parent)}).start_thread().run("x")
    assert len(agent.runs()) == 3


async def test_the_agent_works_in_this_directory_unless_told(
    fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    agent = fake(ECHO)
    monkeypatch.chdir(tmp_path)
    await Agent(agent_path=f"./{agent.path.relative_to(tmp_path)}").start_thread().run("x")
    assert agent.run["cwd"] == str(tmp_path)


async def test_the_agent_has_a_session_of_its_own(fake) -> None:
    agent = fake(ECHO)
    await Agent(agent_path=agent.path).start_thread().run("x")
    assert agent.run["session"] == agent.run["pid"] != os.getsid(0)


@pytest.mark.parametrize(
    ("given", "prompt", "images"),
    [
        ("plain\ntext\n", "plain\ntext\n", []),
        ("", "", []),
        ("--help", "--help", []),
        ("a\0b é \u2028", "a\0b é \u2028", []),
        ([], "", []),
        ([{"type": "text", "text": "one"}], "one", []),
        ([TextInput("one"), {"type": "text", "text": "two"}], "one\n\ntwo", []),
        (
            (
                {"type": "local_image", "path": "a.png"},
                TextInput("one"),
                LocalImageInput(Path("/b c.png")),
            ),
            "one",
            ["a.png", "/b c.png"],
        ),
        ([LocalImageInput("-x.png")], "", ["./-x.png"]),
    ],
)
async def test_texts_go_to_standard_input_and_images_become_options(
    fake, given, prompt, images
) -> None:
    agent = fake(ECHO)
    await Agent(agent_path=agent.path).start_thread().run(given)
    assert agent.run["prompt"] == prompt
    assert _pairs(agent.run["argv"]) == [("--image", path) for path in images]


@pytest.mark.parametrize(
    "given",
    [
        b"bytes",
        None,
        {"type": "text", "text": "x"},
        ["x"],
        [{"type": "image", "path": "x"}],
        [{"type": "localImage", "path": "x"}],
        [{"type": "text"}],
        [{"type": "text", "text": 7}],
        [{"type": "local_image"}],
        [{"type": "local_image", "path": ""}],
        [{"type": "local_image", "path": "a\0b"}],
        "\ud800",
    ],
)
async def test_invalid_input_is_refused_before_anything_starts(fake, given) -> None:
    agent = fake(ECHO)
    thread = Agent(agent_path=agent.path).start_thread()
    with pytest.raises(ConfigError, match="input"):
        await thread.run(given)
    with pytest.raises(ConfigError, match="input"):
        thread.run_streamed(given)
    assert agent.runs() == []


async def test_a_schema_is_a_file_that_only_this_user_can_read(fake, temporary: Path) -> None:
    agent = fake(
        """
path = sys.argv[sys.argv.index("--output-schema") + 1]
facts = [oct(os.stat(one).st_mode & 0o777) for one in (os.path.dirname(path), path)]
read()
begin()
message(json.dumps([path, facts, json.load(open(path))]))
complete()
"""
    )
    schema = {"type": "object", "title": "é"}
    result = await Agent(agent_path=agent.path).start_thread().run("x", output_schema=schema)
    path, facts, read = json.loads(result.final_response)
    assert Path(path).is_relative_to(temporary)
    assert facts == ["0o700", "0o600"]
    assert read == schema
    assert isinstance(result.final_response, str)
    assert result.parse()[2] == schema
