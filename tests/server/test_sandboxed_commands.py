"""Commands within the sandbox, and the questions that it leads to."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from model_side import runs, says
from session_peer import Peer, session

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("bubblewrap")]
WORKSPACE = {"sandbox": "workspace-write"}


async def items(peer: Peer, cwd: Path, **settings: Any) -> list[dict[str, Any]]:
    await peer.run_turn(await peer.start_thread(cwd=str(cwd), **settings))
    return peer.completed_items("commandExecution")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (work := tmp_path / "work").mkdir()
    return work


async def test_the_workspace_is_writable_and_nothing_else(tmp_path: Path, work: Path) -> None:
    replies = [runs("touch in"), runs("touch ../out"), says("done")]
    async with session(tmp_path / "home", replies) as peer:
        inside, outside = await items(peer, work, **WORKSPACE, approvalPolicy="never")
    assert (inside["status"], outside["status"]) == ("completed", "failed")
    assert "Read-only file system" in outside["aggregatedOutput"]
    assert (work / "in").exists()
    assert not (tmp_path / "out").exists()


async def test_read_only_writes_nowhere(tmp_path: Path, work: Path) -> None:
    async with session(tmp_path / "home", [runs("touch in"), says("done")]) as peer:
        [item] = await items(peer, work, sandbox="read-only", approvalPolicy="never")
    assert item["status"] == "failed"
    assert not (work / "in").exists()


async def test_the_policy_object_of_turn_start_is_enforced(tmp_path: Path, work: Path) -> None:
    (root := tmp_path / "root").mkdir()
    policy = {"type": "workspaceWrite", "writableRoots": [str(root)], "networkAccess": False}
    replies = [runs(f"touch {root}/in"), says("done"), runs("touch in"), says("done")]
    async with session(tmp_path / "home", replies) as peer:
        thread = await peer.start_thread(cwd=str(work), sandbox="read-only", approvalPolicy="never")
        await peer.run_turn(thread, sandboxPolicy=policy)
        read_only = {"type": "readOnly", "access": {"type": "fullAccess"}}
        await peer.run_turn(thread, sandboxPolicy=read_only)
    assert (root / "in").exists()
    assert not (work / "in").exists()


async def test_on_failure_asks_when_the_sandbox_stopped_it(tmp_path: Path, work: Path) -> None:
    async with session(tmp_path / "home", [runs("touch ../out"), says("done")]) as peer:
        thread = await peer.start_thread(cwd=str(work), **WORKSPACE, approvalPolicy="on-failure")
        turn = await peer.start_turn(thread)
        question = await peer.asked()
        assert peer.completed_items("commandExecution") == []
        assert not (tmp_path / "out").exists()
        await peer.decide(question, "accept")
        await peer.turn_end(turn)
        [item] = peer.completed_items("commandExecution")
        started = [p for p in peer.params_of("item/started") if p["item"]["id"] == item["id"]]
    assert "sandbox" in question["params"]["reason"]
    assert item["status"] == "completed"
    assert len(started) == 1
    assert (tmp_path / "out").exists()


async def test_on_failure_does_not_ask_about_a_plain_failure(tmp_path: Path, work: Path) -> None:
    async with session(tmp_path / "home", [runs("exit 3"), says("done")]) as peer:
        [item] = await items(peer, work, **WORKSPACE, approvalPolicy="on-failure")
        assert "item/commandExecution/requestApproval" not in peer.methods()
    assert (item["status"], item["exitCode"]) == ("failed", 3)


async def test_on_failure_declined_stays_denied(tmp_path: Path, work: Path) -> None:
    async with session(tmp_path / "home", [runs("touch ../out"), says("done")]) as peer:
        thread = await peer.start_thread(cwd=str(work), **WORKSPACE, approvalPolicy="on-failure")
        turn = await peer.start_turn(thread)
        await peer.decide(await peer.asked(), "decline")
        end = await peer.turn_end(turn)
        [item] = peer.completed_items("commandExecution")
    assert (end["status"], item["status"]) == ("completed", "declined")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("decision", ["accept", "decline"])
async def test_on_failure_what_both_runs_printed_is_the_output(
    tmp_path: Path, work: Path, decision: str
) -> None:
    replies = [runs("echo first; touch ../out && echo second"), says("done")]
    async with session(tmp_path / "home", replies) as peer:
        thread = await peer.start_thread(cwd=str(work), **WORKSPACE, approvalPolicy="on-failure")
        turn = await peer.start_turn(thread)
        await peer.decide(await peer.asked(), decision)
        await peer.turn_end(turn)
        deltas = peer.params_of("item/commandExecution/outputDelta")
        [item] = peer.completed_items("commandExecution")
    assert "".join(one["delta"] for one in deltas) == item["aggregatedOutput"]
    assert "Read-only file system" in item["aggregatedOutput"]
    assert item["aggregatedOutput"].count("first") == (2 if decision == "accept" else 1)
    assert ("second" in item["aggregatedOutput"]) == (decision == "accept")


@pytest.mark.parametrize("decision", ["acceptForSession", "acceptWithExecpolicyAmendment"])
async def test_on_failure_asks_once_about_what_was_accepted_for_later(
    tmp_path: Path, work: Path, decision: str
) -> None:
    replies = [runs("echo a >> ../out"), runs("echo a >> ../out"), says("done")]
    async with session(tmp_path / "home", replies) as peer:
        thread = await peer.start_thread(cwd=str(work), **WORKSPACE, approvalPolicy="on-failure")
        turn = await peer.start_turn(thread)
        await peer.decide(await peer.asked(), decision)
        await peer.turn_end(turn)
        statuses = [item["status"] for item in peer.completed_items("commandExecution")]
    assert statuses == ["completed", "completed"]
    assert peer.methods().count("item/commandExecution/requestApproval") == 1
    assert (tmp_path / "out").read_text() == "a\na\n"


ACCEPTING = (
    "accept",
    "acceptForSession",
    "acceptWithExecpolicyAmendment",
    "applyNetworkPolicyAmendment",
)


@pytest.mark.parametrize("decision", ACCEPTING)
@pytest.mark.parametrize("policy", ["on-request", "untrusted"])
async def test_an_accepted_command_that_the_read_only_sandbox_stops_runs_again_outside(
    tmp_path: Path, work: Path, policy: str, decision: str
) -> None:
    replies = [runs("echo first; touch made.txt && echo second"), says("done")]
    async with session(tmp_path / "home", replies) as peer:
        thread = await peer.start_thread(cwd=str(work), sandbox="read-only", approvalPolicy=policy)
        turn = await peer.start_turn(thread)
        await peer.decide(await peer.asked(), decision)
        await peer.turn_end(turn)
        deltas = peer.params_of("item/commandExecution/outputDelta")
        [item] = peer.completed_items("commandExecution")
    assert peer.methods().count("item/commandExecution/requestApproval") == 1
    assert (item["status"], item["exitCode"]) == ("completed", 0)
    assert "".join(one["delta"] for one in deltas) == item["aggregatedOutput"]
    assert "Read-only file system" in item["aggregatedOutput"]
    assert item["aggregatedOutput"].endswith("first\nsecond\n")
    assert (work / "made.txt").exists()


async def test_an_accepted_command_that_fails_by_itself_runs_once(
    tmp_path: Path, work: Path
) -> None:
    async with session(tmp_path / "home", [runs("echo ran; exit 3"), says("done")]) as peer:
        thread = await peer.start_thread(
            cwd=str(work), sandbox="read-only", approvalPolicy="on-request"
        )
        turn = await peer.start_turn(thread)
        await peer.decide(await peer.asked(), "accept")
        await peer.turn_end(turn)
        [item] = peer.completed_items("commandExecution")
    assert (item["status"], item["exitCode"]) == ("failed", 3)
    assert item["aggregatedOutput"] == "ran\n"


@pytest.mark.parametrize(("decision", "made"), [("accept", True), ("decline", False)])
async def test_the_model_asks_to_run_outside(
    tmp_path: Path, work: Path, decision: str, made: bool
) -> None:
    wanted = runs(
        "touch ../out", sandbox_permissions="require_escalated", justification="it must be there"
    )
    async with session(tmp_path / "home", [wanted, says("done")]) as peer:
        thread = await peer.start_thread(cwd=str(work), **WORKSPACE, approvalPolicy="untrusted")
        turn = await peer.start_turn(thread)
        question = await peer.asked()
        await peer.decide(question, decision)
        await peer.turn_end(turn)
    # The model words the reason; what it asks for is said by the server.
    assert question["params"]["reason"] == "To run outside the sandbox: it must be there"
    assert (tmp_path / "out").exists() == made


async def test_never_runs_inside_what_wants_outside(tmp_path: Path, work: Path) -> None:
    wanted = runs("touch ../out", sandbox_permissions="require_escalated")
    async with session(tmp_path / "home", [wanted, says("done")]) as peer:
        [item] = await items(peer, work, **WORKSPACE, approvalPolicy="never")
    assert item["status"] == "failed"
    assert not (tmp_path / "out").exists()


async def test_a_network_amendment_opens_the_network_for_that_command(
    tmp_path: Path, work: Path
) -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    command = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached"
    replies = [runs(command), runs(f"{command} again"), says("done")]
    async with listener, session(tmp_path / "home", replies) as peer:
        thread = await peer.start_thread(cwd=str(work), **WORKSPACE, approvalPolicy="on-request")
        turn = await peer.start_turn(thread)
        first = await peer.asked()
        await peer.decide(first, "applyNetworkPolicyAmendment")
        await peer.decide(await peer.asked(after=first["id"]), "accept")
        await peer.turn_end(turn)
        reached, not_reached = peer.completed_items("commandExecution")
    assert reached["aggregatedOutput"] == "reached\n"
    assert not_reached["status"] == "failed"
