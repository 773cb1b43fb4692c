"""Patches of the model: applied, awaiting approval, declined, and the diff of the turn."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from model_side import calls, patches, runs, says
from session_peer import Peer, session

from reference_server.engine.tools import patch as patch_tool
from reference_server.patch.apply import PartlyApplied

pytestmark = pytest.mark.anyio
UNASKED = {"sandbox": "danger-full-access", "approvalPolicy": "never"}
ASKED = {"sandbox": "danger-full-access", "approvalPolicy": "on-request"}
ADD = ("*** Add File: new.txt", "+one", "+two")
DIFF = """\
diff --git a/new.txt b/new.txt
new file mode 100644
index 0000000000000000000000000000000000000000..814f4a422927b82f5f8a43f8fab6d3839e3983f2
--- /dev/null
+++ b/new.txt
@@ -0,0 +1,2 @@
+one
+two
"""


async def one_change(peer: Peer, cwd: Path, **settings: Any) -> dict[str, Any]:
    await peer.run_turn(await peer.start_thread(cwd=str(cwd), **settings))
    [item] = peer.completed_items("fileChange")
    return item


async def test_a_patch_is_made_shown_and_followed_by_the_diff(tmp_path: Path) -> None:
    (cwd := tmp_path / "work").mkdir()
    async with session(tmp_path / "home", [patches(*ADD), says("done")]) as peer:
        item = await one_change(peer, cwd, **UNASKED)
        started = peer.params_of("item/started")[1]["item"]
        methods = peer.methods()
        [diff] = peer.params_of("turn/diff/updated")
        output = peer.params_of("item/fileChange/outputDelta")
        told = peer.told_model()
    change = {"path": str(cwd / "new.txt"), "kind": {"type": "add"}, "diff": "one\ntwo\n"}
    assert item == {**started, "status": "completed"}
    assert (started["status"], started["changes"]) == ("inProgress", [change])
    assert diff["diff"] == DIFF
    done = [at for at, message in enumerate(peer.seen) if message.get("method") == "item/completed"]
    assert methods[done[1] + 1] == "turn/diff/updated"
    assert told == "".join(one["delta"] for one in output)
    assert (cwd / "new.txt").read_text() == "one\ntwo\n"


async def test_a_patch_by_function_call_and_by_heredoc_is_one_too(tmp_path: Path) -> None:
    text = "*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch"
    replies = [
        calls("apply_patch", input=text.format("a.txt")),
        runs(f"apply_patch <<'EOF'\n{text.format('b.txt')}\nEOF"),
        says("done"),
    ]
    async with session(tmp_path / "home", replies) as peer:
        await peer.run_turn(await peer.start_thread(cwd=str(tmp_path), **UNASKED))
        items = peer.completed_items("fileChange")
        commands = peer.completed_items("commandExecution")
        diffs = peer.params_of("turn/diff/updated")
    assert [item["status"] for item in items] == ["completed", "completed"]
    assert commands == []
    assert (tmp_path / "a.txt").exists()
    assert (tmp_path / "b.txt").exists()
    assert len(diffs) == 2
    assert "a.txt" in diffs[1]["diff"]
    assert "b.txt" in diffs[1]["diff"]


@pytest.mark.parametrize(("decision", "status"), [("accept", "completed"), ("decline", "declined")])
async def test_a_change_that_is_asked_about(tmp_path: Path, decision: str, status: str) -> None:
    (cwd := tmp_path / "work").mkdir()
    async with session(tmp_path / "home", [patches(*ADD), says("done")]) as peer:
        thread = await peer.start_thread(cwd=str(cwd), **ASKED)
        turn = await peer.start_turn(thread)
        question = await peer.asked("fileChange")
        assert list(cwd.iterdir()) == []
        await peer.decide(question, decision)
        end = await peer.turn_end(turn)
        [item] = peer.completed_items("fileChange")
        diffs = peer.params_of("turn/diff/updated")
        methods = peer.methods()
    assert question["params"] == {
        "threadId": thread,
        "turnId": turn,
        "itemId": item["id"],
        "reason": None,
    }
    assert (end["status"], item["status"]) == ("completed", status)
    assert (cwd / "new.txt").exists() == (decision == "accept")
    assert [one["diff"] for one in diffs] == [DIFF if decision == "accept" else ""]
    asked = methods.index("item/fileChange/requestApproval")
    assert methods[asked + 1] == "serverRequest/resolved"


async def test_changes_by_others_during_an_approval_are_not_in_the_turns_diff(
    tmp_path: Path,
) -> None:
    (tmp_path / "work").mkdir()
    (file := tmp_path / "work" / "old.txt").write_text("old\n")
    patch = patches("*** Update File: old.txt", "@@", "-old", "+new")
    async with session(tmp_path / "home", [patch, says("done")]) as peer:
        thread = await peer.start_thread(cwd=str(file.parent), **ASKED)
        turn = await peer.start_turn(thread)
        question = await peer.asked("fileChange")
        file.unlink()
        await peer.decide(question, "accept")
        await peer.turn_end(turn)
        [item] = peer.completed_items("fileChange")
        [diff] = peer.params_of("turn/diff/updated")
    assert (item["status"], diff["diff"]) == ("failed", "")


async def test_changes_that_a_patch_could_not_roll_back_are_in_the_turns_diff(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., Any] = patch_tool.apply_plan

    def failing(*given: Any) -> None:
        real(*given)
        raise PartlyApplied("new.txt could not be restored")

    monkeypatch.setattr(patch_tool, "apply_plan", failing)
    (cwd := tmp_path / "work").mkdir()
    async with session(tmp_path / "home", [patches(*ADD), says("done")]) as peer:
        item = await one_change(peer, cwd, **UNASKED)
        [diff] = peer.params_of("turn/diff/updated")
    assert (item["status"], diff["diff"]) == ("failed", DIFF)


async def test_cancel_interrupts_the_turn(tmp_path: Path) -> None:
    async with session(tmp_path / "home", [patches(*ADD)]) as peer:
        turn = await peer.start_turn(await peer.start_thread(cwd=str(tmp_path), **ASKED))
        await peer.decide(await peer.asked("fileChange"), "cancel")
        end = await peer.turn_end(turn)
        [item] = peer.completed_items("fileChange")
    assert (end["status"], item["status"]) == ("interrupted", "declined")
    assert not (tmp_path / "new.txt").exists()


async def test_a_change_that_is_being_made_is_made_whole_though_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    came, go = held(monkeypatch, "apply_plan")
    (cwd := tmp_path / "work").mkdir()
    async with session(tmp_path / "home", [patches(*ADD)]) as peer:
        thread = await peer.start_thread(cwd=str(cwd), **UNASKED)
        turn = await peer.start_turn(thread)
        assert await to_thread.run_sync(came.wait, 5)
        await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        go.set()
        end = await peer.turn_end(turn)
        [item] = peer.completed_items("fileChange")
        [diff] = peer.params_of("turn/diff/updated")
    assert (end["status"], item["status"]) == ("interrupted", "completed")
    assert (cwd / "new.txt").exists()
    assert diff["diff"] == DIFF


async def test_an_interrupt_does_not_wait_for_a_patch_that_is_being_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    came, go = held(monkeypatch, "make_plan")
    (cwd := tmp_path / "work").mkdir()
    try:
        async with session(tmp_path / "home", [patches(*ADD)]) as peer:
            thread = await peer.start_thread(cwd=str(cwd), **UNASKED)
            turn = await peer.start_turn(thread)
            assert await to_thread.run_sync(came.wait, 5)
            await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
            end = await peer.turn_end(turn)
    finally:
        go.set()
    assert end["status"] == "interrupted"
    assert peer.completed_items("fileChange") == []
    assert not (cwd / "new.txt").exists()


def held(monkeypatch: pytest.MonkeyPatch, name: str) -> tuple[threading.Event, threading.Event]:
    """Hold a function of the tool until the second event; the first says that it was called."""
    real: Callable[..., Any] = getattr(patch_tool, name)
    came, go = threading.Event(), threading.Event()

    def holding(*given: Any) -> Any:
        came.set()
        assert go.wait(5)
        return real(*given)

    monkeypatch.setattr(patch_tool, name, holding)
    return came, go


async def test_files_accepted_for_the_session_are_not_asked_about_again(tmp_path: Path) -> None:
    change = ("*** Update File: new.txt", "@@", "-one", "+three")
    replies = [patches(*ADD), says("1"), patches(*change), says("2")]
    async with session(tmp_path / "home", replies) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path), **ASKED)
        turn = await peer.start_turn(thread)
        await peer.decide(await peer.asked("fileChange"), "acceptForSession")
        await peer.turn_end(turn)
        await peer.run_turn(thread)
        assert peer.methods().count("item/fileChange/requestApproval") == 1
    assert (tmp_path / "new.txt").read_text() == "three\ntwo\n"


@pytest.mark.parametrize(("policy", "status"), [("never", "failed"), ("reject", "declined")])
async def test_a_change_outside_the_roots_where_nobody_is_asked(
    tmp_path: Path, policy: str, status: str
) -> None:
    (cwd := tmp_path / "work").mkdir()
    outside = ("*** Add File: ../out.txt", "+x")
    async with session(tmp_path / "home", [patches(*outside), says("pity")]) as peer:
        item = await one_change(peer, cwd, sandbox="workspace-write", approvalPolicy=policy)
        assert "item/fileChange/requestApproval" not in peer.methods()
    assert item["status"] == status
    assert not (tmp_path / "out.txt").exists()


async def test_on_failure_asks_about_what_the_sandbox_does_not_allow(tmp_path: Path) -> None:
    (cwd := tmp_path / "work").mkdir()
    replies = [patches(*ADD), patches("*** Add File: ../out.txt", "+x"), says("done")]
    async with session(tmp_path / "home", replies) as peer:
        settings = {"sandbox": "workspace-write", "approvalPolicy": "on-failure"}
        turn = await peer.start_turn(await peer.start_thread(cwd=str(cwd), **settings))
        question = await peer.asked("fileChange")
        assert (cwd / "new.txt").exists()
        await peer.decide(question, "accept")
        await peer.turn_end(turn)
        statuses = [item["status"] for item in peer.completed_items("fileChange")]
    assert str(tmp_path / "out.txt") in question["params"]["reason"]
    assert statuses == ["completed", "completed"]
    assert (tmp_path / "out.txt").exists()


async def test_a_patch_that_does_not_fit_changes_nothing_and_is_told(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("a\n")
    change = (*ADD, "*** Update File: old.txt", "@@", "-b", "+c")
    async with session(tmp_path / "home", [patches(*change), says("sorry")]) as peer:
        await peer.run_turn(await peer.start_thread(cwd=str(tmp_path), **UNASKED))
        told = peer.told_model()
        assert peer.completed_items("fileChange") == []
    assert told.startswith("apply_patch verification failed: ")
    assert "old.txt" in told
    assert not (tmp_path / "new.txt").exists()


async def test_a_file_that_changed_while_the_client_was_asked_fails_the_change(
    tmp_path: Path,
) -> None:
    (old := tmp_path / "old.txt").write_text("a\n")
    change = ("*** Update File: old.txt", "@@", "-a", "+b")
    async with session(tmp_path / "home", [patches(*change), says("sorry")]) as peer:
        turn = await peer.start_turn(await peer.start_thread(cwd=str(tmp_path), **ASKED))
        question = await peer.asked("fileChange")
        old.write_text("a\nmine\n")
        await peer.decide(question, "accept")
        await peer.turn_end(turn)
        [item] = peer.completed_items("fileChange")
    assert item["status"] == "failed"
    assert old.read_text() == "a\nmine\n"


async def test_a_question_tells_where_a_link_leads_a_patch(tmp_path: Path) -> None:
    (home := tmp_path / "real-home").mkdir()
    (tmp_path / "real").mkdir()
    (cwd := tmp_path / "work").symlink_to("real")
    (cwd / "docs").symlink_to(home)
    replies = [patches("*** Add File: docs/.bashrc", "+x"), patches(*ADD), says("done")]
    async with session(tmp_path / "home", replies) as peer:
        thread = await peer.start_thread(cwd=str(cwd), **ASKED)
        turn = await peer.start_turn(thread)
        first = await peer.asked("fileChange")
        await peer.decide(first, "decline")
        second = await peer.asked("fileChange", after=first["id"])
        await peer.decide(second, "decline")
        await peer.turn_end(turn)
    reason = f"links lead it elsewhere: {cwd}/docs/.bashrc is {home}/.bashrc"
    assert [one["params"]["reason"] for one in (first, second)] == [reason, None]
