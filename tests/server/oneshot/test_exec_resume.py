"""A thread that goes on in another process: `agent exec resume`."""

import json
from pathlib import Path

import pytest
from model_side import ModelSide, Reply
from runs import JSON, Agent, Ran, scenario
from turns import CONFIG, Fields, play

from harness.protocol.wire.settings import WorkspaceWrite
from reference_server.agent_exec.ending import NotBegun
from reference_server.agent_exec.run_config import resumed_settings
from reference_server.config.home import Home
from reference_server.settings import ThreadSettings, sandbox_policy

pytestmark = pytest.mark.anyio

DONE = "[{message: done}]"


def answered() -> Reply:
    message = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "fine"}],
    }
    call: Fields = {"type": "response.completed", "response": {"id": "r", "output": [message]}}
    done = {"type": "response.output_item.done", "item": message}
    return Reply([f"data: {json.dumps(one)}\n\n".encode() for one in (done, call)])


async def test_the_conversation_goes_on_under_the_same_id(tmp_path) -> None:
    side = ModelSide([answered(), answered()])
    first = await play(tmp_path, transport=side.transport, prompt="one")
    thread = first.events[0]["thread_id"]
    second = await play(tmp_path, transport=side.transport, prompt="two", resume=thread)
    assert second.events[0] == {"type": "thread.started", "thread_id": thread}
    texts = [part["text"] for item in side.bodies[1]["input"] for part in item["content"]]
    assert texts == ["one", "fine", "two"]


async def test_item_ids_are_not_used_twice_in_a_thread(tmp_path) -> None:
    first = await play(tmp_path, DONE)
    second = await play(tmp_path, DONE, resume=first.events[0]["thread_id"])
    assert first.events[2]["item"]["id"] != second.events[2]["item"]["id"]


@pytest.mark.parametrize("thread", ["thr_99", "../../x", "", "--last", "thr_1/../thr_1", "a\0b"])
async def test_an_unknown_thread_is_refused_and_nothing_is_told(tmp_path, thread: str) -> None:
    await play(tmp_path, DONE)
    before = sorted(tmp_path.glob("home/sessions/**/*"))
    with pytest.raises(NotBegun, match="there is no thread"):
        await play(tmp_path, DONE, resume=thread)
    assert sorted(tmp_path.glob("home/sessions/**/*")) == before


async def test_the_last_thread_is_the_newest_of_the_folder(tmp_path) -> None:
    await play(tmp_path, DONE)
    second = await play(tmp_path, DONE)
    (tmp_path / "elsewhere").mkdir()
    await play(tmp_path, DONE, cwd=str(tmp_path / "elsewhere"))
    resumed = await play(tmp_path, DONE, last=True)
    assert resumed.events[0] == second.events[0]


async def test_without_a_thread_there_is_no_last_one(tmp_path) -> None:
    with pytest.raises(NotBegun, match="there is no thread of the folder"):
        await play(tmp_path, DONE, last=True)


async def test_a_session_file_that_is_a_link_is_not_followed(tmp_path) -> None:
    first = await play(tmp_path, DONE)
    [path] = tmp_path.glob("home/sessions/**/*.jsonl")
    kept = tmp_path / "kept"
    path.rename(kept)
    path.symlink_to(kept)
    before = kept.read_bytes()
    with pytest.raises(NotBegun, match="symbolic link"):
        await play(tmp_path, DONE, resume=first.events[0]["thread_id"])
    assert kept.read_bytes() == before


STORED = ThreadSettings(
    model="stored",
    model_provider="p",
    cwd="/old",
    approval_policy="untrusted",
    sandbox=sandbox_policy("workspace-write"),
)


@pytest.mark.parametrize(
    ("named", "changed"),
    [
        ((), {}),
        (("model",), {"model": "default-model"}),
        (("approval_policy",), {"approval_policy": "never"}),
        (("sandbox_mode",), {"sandbox": sandbox_policy("danger-full-access")}),
        (("model_reasoning_effort",), {"effort": None}),
        (("model_provider",), {"model_provider": "default"}),
        (
            ("sandbox_workspace_write",),
            {"sandbox": WorkspaceWrite(writable_roots=[], network_access=False)},
        ),
    ],
)
def test_a_resumed_thread_takes_over_what_the_command_line_names(
    named: tuple[str, ...], changed: Fields
) -> None:
    found = resumed_settings(STORED, CONFIG, frozenset(named), "/new")
    assert found == STORED.model_copy(update={"cwd": "/new", **changed})


def test_folders_are_added_to_no_other_sandbox_than_workspace_write() -> None:
    stored = STORED.model_copy(update={"sandbox": sandbox_policy("read-only")})
    found = resumed_settings(stored, CONFIG, frozenset({"sandbox_workspace_write"}), "/new")
    assert found.sandbox == stored.sandbox


async def test_a_thread_that_another_process_has_open_is_refused(tmp_path) -> None:
    from reference_server.claims import Claims

    first = await play(tmp_path, DONE)
    thread = first.events[0]["thread_id"]
    claims = Claims(Home(tmp_path / "home"))
    assert claims.take(thread)
    with pytest.raises(NotBegun, match="open in another server"):
        await play(tmp_path, DONE, resume=thread)
    claims.close()


def test_the_script_of_a_scenario_goes_on_where_the_thread_was_left(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    steps = ['[{message: "First."}, {run: {command: "echo one"}}]', '[{message: "Second."}]']
    script = ("--scenario", scenario(tmp_path, *steps, '[{message: "Third."}]'))
    first = agent.run(*JSON, *script, stdin=b"one")
    assert _messages(first) == ["First.", "Second."]
    again = agent.run(*JSON, *script, "resume", first.events[0]["thread_id"], "-", stdin=b"two")
    assert _messages(again) == ["Third."]


def _messages(ran: Ran) -> list[str]:
    return [one["text"] for one in ran.items if one["type"] == "agent_message"]
