"""Connections of a stage are isolated: ids, threads, folders, messages."""

import os
from pathlib import Path

import pytest
from staged import GREETING, Client, staged

pytestmark = [pytest.mark.anyio, pytest.mark.socket, pytest.mark.slow]


def running(command: str, *, sandbox: str) -> str:
    return f"""\
title: A command in {sandbox}
settings: {{sandbox: {sandbox}}}
workspace: {{files: {{mine.txt: "mine"}}}}
model:
  - reply:
      - run: {{command: '{command}'}}
  - reply:
      - message: Done.
"""


async def output(client: Client) -> str:
    """Play a turn; gives what its command printed."""
    await client.play()
    items = [one["params"]["item"] for one in client.heard if one.get("method") == "item/completed"]
    [command] = [one for one in items if one["type"] == "commandExecution"]
    return command.get("aggregatedOutput") or ""


async def test_the_same_scenario_has_the_same_ids_in_each_connection(tmp_path) -> None:
    async with staged(tmp_path, {"one": GREETING}) as stage:
        ids = []
        for _ in range(2):
            async with stage.client() as client:
                await client.play()
            told = [one.get("params", {}) for one in client.heard]
            ids.append(
                [
                    (one.get("threadId"), one.get("turnId"), one.get("itemId"), item.get("id"))
                    for one in told
                    for item in (one.get("item", {}),)
                ]
            )
        assert ids[0] == ids[1]
        assert any(item for *_, item in ids[0])


async def test_two_at_once_share_no_thread_and_are_told_nothing_of_each_other(tmp_path) -> None:
    async with (
        staged(tmp_path, {"one": GREETING}) as stage,
        stage.client() as first,
        stage.client() as second,
    ):
        await first.play()
        await second.ask("initialize", clientInfo={"name": "other", "version": "1"})
        assert (await second.ask("thread/list"))["data"] == []
        assert "message" in await second.ask("thread/read", threadId="thr_1")
        assert [one for one in second.heard if "method" in one] == []


async def test_a_thread_begins_in_the_workspace_with_the_scenarios_settings(tmp_path) -> None:
    settings = "settings: {approvalPolicy: untrusted, sandbox: read-only, model: their-model}\n"
    text = GREETING + settings + 'workspace: {files: {notes/a.txt: "x"}}\n'
    async with staged(tmp_path, {"one": text}) as stage, stage.client() as client:
        await client.ask("initialize", clientInfo={"name": "test", "version": "1"})
        told = await client.ask("thread/start")
        assert (told["approvalPolicy"], told["model"]) == ("untrusted", "their-model")
        assert told["sandbox"]["type"] == "readOnly"
        assert Path(told["cwd"]) == stage.root / "1" / "work"
        assert (stage.root / "1" / "work" / "notes" / "a.txt").read_text() == "x"
        own = await client.ask("thread/start", approvalPolicy="never", cwd="notes")
        assert (own["approvalPolicy"], Path(own["cwd"]).name) == ("never", "notes")
        [skills] = (await client.ask("skills/list"))["data"]
        assert Path(skills["cwd"]) == stage.root / "1" / "work"


async def test_nothing_is_left_of_a_connection_whatever_its_commands_made(tmp_path) -> None:
    text = running("mkdir -p a/b; touch a/b/c; chmod 0 a/b", sandbox="danger-full-access")
    async with staged(tmp_path, {"one": text}) as stage:
        async with stage.client() as client:
            await output(client)
            assert (stage.root / "1" / "work" / "a" / "b").exists()
        await stage.result()
        assert os.listdir(stage.root) == []


async def test_commands_get_a_home_of_their_own_and_none_of_the_variables(tmp_path) -> None:
    text = running("echo [$HOME] [$AGENT_HOME] [$PROVIDER_API_KEY]", sandbox="danger-full-access")
    async with staged(tmp_path, {"one": text}) as stage, stage.client() as client:
        assert await output(client) == f"[{stage.root}/1/home] [] []\n"


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize("sandbox", ["read-only", "workspace-write"])
async def test_a_confined_command_sees_its_own_workspace_and_no_other(
    tmp_path, sandbox: str
) -> None:
    theirs = "../../1/work"
    look = (
        f"cat mine.txt; ls {theirs} && echo listed; cat {theirs}/mine.txt && echo looked; "
        f"(echo x > {theirs}/new) && echo wrote; true"
    )
    async with (
        staged(tmp_path, {"one": running(look, sandbox=sandbox)}) as stage,
        stage.client() as other,
        stage.client() as client,
    ):
        await other.begin()
        assert (stage.root / "1" / "work" / "mine.txt").exists()
        printed = await output(client)
        assert printed.startswith("mine")
        assert [one for one in ("listed", "looked", "wrote") if one in printed] == []
        assert not (stage.root / "1" / "work" / "new").exists()


@pytest.mark.usefixtures("bubblewrap")
async def test_a_workspace_can_be_written_under_workspace_write(tmp_path) -> None:
    text = running("echo new > made.txt; cat made.txt", sandbox="workspace-write")
    async with staged(tmp_path, {"one": text}) as stage, stage.client() as client:
        assert await output(client) == "new\n"


@pytest.mark.usefixtures("bubblewrap")
async def test_no_policy_makes_the_folder_of_another_writable(tmp_path) -> None:
    text = running("touch ../../1/work/new", sandbox="workspace-write")
    async with (
        staged(tmp_path, {"one": text}) as stage,
        stage.client() as other,
        stage.client() as client,
    ):
        await other.begin()
        theirs = str(stage.root / "1" / "work")
        policy = {"type": "workspaceWrite", "writableRoots": [theirs], "networkAccess": False}
        await client.turn(await client.begin(), sandboxPolicy=policy)
        await client.until("turn/completed")
        assert not (stage.root / "1" / "work" / "new").exists()
        assert "belongs to another server of this process" in str(client.heard)


@pytest.mark.usefixtures("bubblewrap")
async def test_nor_does_a_patch_lead_there(tmp_path) -> None:
    text = """\
title: A patch elsewhere
settings: {sandbox: workspace-write}
model:
  - reply:
      - patch: {add: {"../../1/work/new": "x\\n"}}
  - reply:
      - message: Done.
"""
    async with (
        staged(tmp_path, {"one": text}) as stage,
        stage.client() as other,
        stage.client() as client,
    ):
        await other.begin()
        await client.play()
        assert not (stage.root / "1" / "work" / "new").exists()
