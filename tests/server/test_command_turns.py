"""Commands of the model: run, awaiting approval, declined, interrupted."""

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from model_side import runs, says
from session_peer import Peer, session

pytestmark = pytest.mark.anyio
OPEN = {"sandbox": "danger-full-access"}
UNASKED = {**OPEN, "approvalPolicy": "never"}
ASKED = {**OPEN, "approvalPolicy": "on-request"}


async def one_command(peer: Peer, cwd: Path, **settings: Any) -> dict[str, Any]:
    await peer.run_turn(await peer.start_thread(cwd=str(cwd), **settings))
    [item] = peer.completed_items("commandExecution")
    return item


async def test_a_command_is_shown_from_its_start_to_its_end(tmp_path: Path) -> None:
    (work := tmp_path / "work").mkdir()
    replies = [runs("printf out; printf err >&2; exit 3"), says("done")]
    async with session(tmp_path / "home", replies) as peer:
        item = await one_command(peer, work, **UNASKED)
        started = peer.params_of("item/started")[1]["item"]
        deltas = peer.params_of("item/commandExecution/outputDelta")
        told = peer.told_model()
    assert started == {
        "type": "commandExecution",
        "id": item["id"],
        "command": "bash -c 'printf out; printf err >&2; exit 3'",
        "cwd": str(work),
        "status": "inProgress",
        "commandActions": started["commandActions"],
    }
    assert (item["status"], item["exitCode"]) == ("failed", 3)
    assert item["aggregatedOutput"] == "outerr" == "".join(one["delta"] for one in deltas)
    assert item["durationMs"] >= 0
    assert "Exit code: 3" in told
    assert "outerr" in told


async def test_a_command_with_a_terminal_names_its_process(tmp_path: Path) -> None:
    replies = [runs("test -t 0 && test -t 1 && echo $$", tty=True), runs("echo $$"), says("done")]
    async with session(tmp_path / "home", replies) as peer:
        await peer.run_turn(await peer.start_thread(cwd=str(tmp_path), **UNASKED))
        terminal, plain = peer.completed_items("commandExecution")
    assert terminal["exitCode"] == 0
    assert terminal["processId"] == terminal["aggregatedOutput"].strip()
    assert "processId" not in plain


async def test_a_command_that_succeeds_is_completed(tmp_path: Path) -> None:
    async with session(tmp_path / "home", [runs("touch made"), says("done")]) as peer:
        item = await one_command(peer, tmp_path, **UNASKED)
    assert (item["status"], item["exitCode"]) == ("completed", 0)
    assert (tmp_path / "made").exists()


async def test_the_order_of_an_approval(tmp_path: Path) -> None:
    async with session(tmp_path / "home", [runs("touch made"), says("done")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path), **ASKED)
        turn = await peer.start_turn(thread)
        question = await peer.asked()
        assert not (tmp_path / "made").exists()
        await peer.decide(question, "accept")
        end = await peer.turn_end(turn)
        methods = peer.methods()
        flags = [p["status"].get("activeFlags") for p in peer.params_of("thread/status/changed")]
        resolved = peer.params_of("serverRequest/resolved")
        [item] = peer.completed_items("commandExecution")
    asked = methods.index("item/commandExecution/requestApproval")
    assert peer.seen[asked - 1]["method"] == "thread/status/changed"
    assert "item/started" in methods[:asked]
    assert methods[asked + 1 : asked + 3] == ["serverRequest/resolved", "thread/status/changed"]
    assert "item/completed" in methods[asked + 3 :]
    assert question["params"] == {
        "threadId": thread,
        "turnId": turn,
        "itemId": item["id"],
        "command": ["bash", "-c", "touch made"],
        "cwd": str(tmp_path),
        "commandActions": question["params"]["commandActions"],
        "reason": None,
    }
    assert resolved == [{"threadId": thread, "requestId": question["id"]}]
    assert flags == [[], ["waitingOnApproval"], [], None]
    assert (end["status"], item["status"]) == ("completed", "completed")
    assert (tmp_path / "made").exists()


async def test_a_declined_command_does_not_run_and_the_turn_goes_on(tmp_path: Path) -> None:
    async with session(tmp_path / "home", [runs("touch made"), says("pity")]) as peer:
        turn = await peer.start_turn(await peer.start_thread(cwd=str(tmp_path), **ASKED))
        await peer.decide(await peer.asked(), "decline")
        end = await peer.turn_end(turn)
        [item] = peer.completed_items("commandExecution")
        said = peer.completed_items("agentMessage")
        told = peer.told_model()
    assert (end["status"], item["status"], said[0]["text"]) == ("completed", "declined", "pity")
    assert told == "rejected by user"
    assert not (tmp_path / "made").exists()


async def test_cancel_denies_and_interrupts_the_turn(tmp_path: Path) -> None:
    async with session(tmp_path / "home", [runs("touch made"), says("next")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path), **ASKED)
        turn = await peer.start_turn(thread)
        await peer.decide(await peer.asked(), "cancel")
        end = await peer.turn_end(turn)
        [item] = peer.completed_items("commandExecution")
        assert (end["status"], end["error"], item["status"]) == ("interrupted", None, "declined")
        assert len(peer.side.bodies) == 1
        await peer.run_turn(thread, "go on")
        history = peer.side.bodies[1]["input"]
    outputs = [one for one in history if one["type"] == "function_call_output"]
    assert [one["call_id"] for one in outputs] == ["call_1"]
    assert not (tmp_path / "made").exists()


async def test_a_command_accepted_for_the_session_is_not_asked_again(tmp_path: Path) -> None:
    replies = [runs("echo x >> log"), says("1"), runs("echo x >> log"), says("2")]
    async with session(tmp_path / "home", replies) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path), **ASKED)
        turn = await peer.start_turn(thread)
        await peer.decide(await peer.asked(), "acceptForSession")
        await peer.turn_end(turn)
        await peer.run_turn(thread)
        asked = peer.methods().count("item/commandExecution/requestApproval")
    assert asked == 1
    assert (tmp_path / "log").read_text() == "x\nx\n"


async def test_another_thread_is_asked_though_one_has_accepted(tmp_path: Path) -> None:
    replies = [runs("echo x >> log"), says("1"), runs("echo x >> log"), says("2")]
    async with session(tmp_path / "home", replies) as peer:
        for decision in ("acceptForSession", "decline"):
            turn = await peer.start_turn(await peer.start_thread(cwd=str(tmp_path), **ASKED))
            question = await peer.asked(after=-1 if decision == "acceptForSession" else 0)
            await peer.decide(question, decision)
            await peer.turn_end(turn)
    assert (tmp_path / "log").read_text() == "x\n"


async def test_a_lasting_rule_holds_after_a_restart(tmp_path: Path) -> None:
    async with session(tmp_path / "home", [runs("touch one"), says("1")]) as peer:
        turn = await peer.start_turn(await peer.start_thread(cwd=str(tmp_path), **ASKED))
        amendment = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["touch"]}}
        await peer.decide(await peer.asked(), amendment)
        await peer.turn_end(turn)
    async with session(tmp_path / "home", [runs("touch two"), says("2")]) as peer:
        item = await one_command(peer, tmp_path, **ASKED)
        assert "item/commandExecution/requestApproval" not in peer.methods()
    assert item["status"] == "completed"
    assert (tmp_path / "two").exists()


async def test_reject_denies_without_a_question(tmp_path: Path) -> None:
    async with session(tmp_path / "home", [runs("touch made"), says("pity")]) as peer:
        item = await one_command(peer, tmp_path, **OPEN, approvalPolicy="reject")
        methods = peer.methods()
    assert item["status"] == "declined"
    assert "item/commandExecution/requestApproval" not in methods
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": -32601, "message": "what?"}},
        {"result": {"decision": "approved"}},
        {"result": {}},
    ],
)
async def test_an_invalid_decision_denies(tmp_path: Path, answer: dict[str, Any]) -> None:
    async with session(tmp_path / "home", [runs("touch made"), says("pity")]) as peer:
        turn = await peer.start_turn(await peer.start_thread(cwd=str(tmp_path), **ASKED))
        question = await peer.asked()
        await peer.send_line(json.dumps({"id": question["id"], **answer}).encode())
        end = await peer.turn_end(turn)
        [item] = peer.completed_items("commandExecution")
    assert (end["status"], item["status"]) == ("completed", "declined")
    assert not (tmp_path / "made").exists()


async def test_stray_second_and_late_answers_change_nothing(tmp_path: Path) -> None:
    async with session(tmp_path / "home", [runs("touch made"), says("pity")]) as peer:
        turn = await peer.start_turn(await peer.start_thread(cwd=str(tmp_path), **ASKED))
        question = await peer.asked()
        for stray in (question["id"] + 7, str(question["id"]), "x"):
            await peer.decide({"id": stray}, "accept")
        await peer.decide(question, "decline")
        await peer.decide(question, "accept")
        await peer.turn_end(turn)
        await peer.decide(question, "accept")
        await peer.request("thread/loaded/list")
        [item] = peer.completed_items("commandExecution")
    assert item["status"] == "declined"
    assert not (tmp_path / "made").exists()


async def test_an_interrupt_while_the_client_is_asked(tmp_path: Path) -> None:
    async with session(tmp_path / "home", [runs("touch made")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path), **ASKED)
        turn = await peer.start_turn(thread)
        question = await peer.asked()
        await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        end = await peer.turn_end(turn)
        await peer.decide(question, "accept")
        [item] = peer.completed_items("commandExecution")
        tail = peer.methods()[-4:]
    assert (end["status"], item["status"]) == ("interrupted", "declined")
    assert "serverRequest/resolved" in peer.methods()
    assert tail[-1] == "turn/completed"
    assert not (tmp_path / "made").exists()


async def test_an_interrupt_while_a_command_runs_ends_all_it_started(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    command = "bash -c 'echo $$; exec cat gate' & wait"
    async with session(tmp_path / "home", [runs(command)]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path), **UNASKED)
        turn = await peer.start_turn(thread)
        pid = int((await peer.event("item/commandExecution/outputDelta"))["delta"])
        await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        end = await peer.turn_end(turn)
        [item] = peer.completed_items("commandExecution")
        assert not os.path.exists(f"/proc/{pid}")  # noqa: ASYNC240
    assert (end["status"], item["status"]) == ("interrupted", "failed")
    assert item["aggregatedOutput"] == f"{pid}\n"


async def test_a_client_that_leaves_while_it_is_asked_approves_nothing(tmp_path: Path) -> None:
    async with session(tmp_path / "home", [runs("touch made")]) as peer:
        await peer.start_turn(await peer.start_thread(cwd=str(tmp_path), **ASKED))
        await peer.asked()
    assert peer.completed_items("commandExecution")[0]["status"] == "declined"
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "`cmd` must be a command line"),
        ({"cmd": "  "}, "`cmd` must be a command line"),
        ({"cmd": 7}, "`cmd` must be a command line"),
        ({"cmd": "true", "tty": "yes"}, "`tty` must be a bool"),
        ({"cmd": "true", "timeout_ms": -1}, "`timeout_ms` must be a positive number"),
    ],
)
async def test_wrong_arguments_are_told_to_the_model(
    tmp_path: Path, arguments: dict[str, Any], words: str
) -> None:
    from model_side import calls

    replies = [calls("exec_command", **arguments), says("sorry")]
    async with session(tmp_path / "home", replies) as peer:
        await peer.run_turn(await peer.start_thread(**UNASKED))
        assert words in peer.told_model()
        assert not peer.completed_items("commandExecution")


async def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    async with session(tmp_path / "home", [runs("cat gate", timeout_ms=50), says("ok")]) as peer:
        with anyio.fail_after(5):
            item = await one_command(peer, tmp_path, **UNASKED)
        told = peer.told_model()
    assert item["status"] == "failed"
    assert "took too long" in told
