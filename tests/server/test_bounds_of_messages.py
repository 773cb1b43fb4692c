"""Extremely long paths and lists are rejected at once, in every param."""

import json
from pathlib import Path
from typing import Any

import pytest
from model_side import calls, patches, runs, says
from session_peer import session

from reference_server.engine.start import SCHEMA_LIMIT
from reference_server.engine.tools.plan import MAX_STEPS
from reference_server.limits import LIST_LIMIT, PATH_LIMIT, LimitExceeded, check_lists, check_path
from reference_server.patch.parse import MAX_FILES
from reference_server.settings import MAX_ROOTS

pytestmark = pytest.mark.anyio
DEEP = "/" + "a/" * 500_000
LONG_LIST: list[Any] = [[]] * (LIST_LIMIT + 1)
TEXT = [{"type": "text", "text": "hi"}]


def test_a_path_is_as_long_as_systems_take() -> None:
    check_path("a" * PATH_LIMIT)
    for path in ("a" * (PATH_LIMIT + 1), "é" * PATH_LIMIT, "\ud800" * (PATH_LIMIT + 1)):
        with pytest.raises(LimitExceeded, match="4096 bytes"):
            check_path(path)


def test_a_list_is_named_where_it_is_too_long() -> None:
    check_lists({"input": [{}] * LIST_LIMIT})
    with pytest.raises(LimitExceeded, match="writableRoots: has more than 10,000"):
        check_lists({"sandboxPolicy": {"writableRoots": LONG_LIST}})


REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "the folder of a thread": ("thread/start", {"cwd": DEEP}),
    "the folder of a turn": ("turn/start", {"input": TEXT, "cwd": DEEP}),
    "tools of the client": ("thread/start", {"dynamicTools": LONG_LIST}),
    "input": ("turn/start", {"input": LONG_LIST}),
    "roots": (
        "turn/start",
        {
            "input": TEXT,
            "sandboxPolicy": {
                "type": "workspaceWrite",
                "writableRoots": ["/w"] * (MAX_ROOTS + 1),
                "networkAccess": False,
            },
        },
    ),
    "a root": (
        "turn/start",
        {
            "input": TEXT,
            "sandboxPolicy": {
                "type": "workspaceWrite",
                "writableRoots": [DEEP],
                "networkAccess": False,
            },
        },
    ),
    "a schema": (
        "turn/start",
        {"input": TEXT, "outputSchema": {"description": "x" * SCHEMA_LIMIT}},
    ),
    "a number that is none": (
        "turn/start",
        {"input": TEXT, "outputSchema": {"maximum": float("1e999")}},
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_request_with_too_much_is_refused_and_says_what(tmp_path: Path, name: str) -> None:
    method, params = REQUESTS[name]
    async with session(tmp_path) as peer:
        thread = await peer.start_thread()
        given = {"threadId": thread, **params} if method != "thread/start" else params
        text = json.dumps({"id": 99, "method": method, "params": given})
        await peer.send_line(text.replace("Infinity", "1e999").encode())
        error = (await peer.answer(99))["error"]
    assert error["code"] == -32602
    assert any(
        words in error["message"] for words in ("at most", "more than", "cannot be written as JSON")
    )


@pytest.mark.parametrize(
    "reply",
    [
        runs("true", workdir=DEEP),
        calls("view_image", path=DEEP),
        patches(f"*** Add File: {DEEP}x", "+x"),
        runs(f"cd {DEEP} && apply_patch <<'EOF'\n*** Begin Patch\n*** End Patch\nEOF"),
    ],
    ids=["command", "image", "patch", "heredoc"],
)
async def test_a_path_of_the_model_that_is_too_long_is_told_to_it(tmp_path: Path, reply) -> None:
    async with session(tmp_path / "home", [reply, says("oh")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path), approvalPolicy="never")
        # Within the peer's bound: resolved, such a path takes minutes.
        assert (await peer.run_turn(thread))["status"] == "completed"
        assert "at most 4096 bytes" in peer.told_model()


async def test_plans_and_patches_have_bounds(tmp_path: Path) -> None:
    step = {"step": "x", "status": "pending"}
    many = [f"*** Add File: f{number}\n+x" for number in range(MAX_FILES + 1)]
    replies = [calls("update_plan", plan=[step] * (MAX_STEPS + 1)), patches(*many), says("oh")]
    async with session(tmp_path / "home", replies) as peer:
        (work := tmp_path / "work").mkdir()
        thread = await peer.start_thread(cwd=str(work), approvalPolicy="never")
        assert (await peer.run_turn(thread))["status"] == "completed"
        assert "more than 1,000 steps" in peer.told_model(1)
        assert "more than 2,000 files" in peer.told_model(2)
    assert list(work.iterdir()) == []


async def test_a_list_in_an_answer_is_bounded_too(tmp_path: Path) -> None:
    async with session(tmp_path / "home", [runs("touch made"), says("ok")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path), approvalPolicy="on-request")
        turn = await peer.start_turn(thread)
        amendment = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": [0] * 20_000}}
        await peer.decide(await peer.asked(), amendment)
        await peer.turn_end(turn)
        [item] = peer.completed_items("commandExecution")
    assert item["status"] == "declined"
    assert not (tmp_path / "made").exists()
