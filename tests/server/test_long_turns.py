"""A turn with more text than a model call can contain fails, and the next one runs."""

from pathlib import Path

import pytest
from model_side import CREATED, Reply, completed, done, function_call, says
from session_peer import session

from reference_server.engine import turn as turn_module

pytestmark = pytest.mark.anyio
OPEN = {"sandbox": "danger-full-access", "approvalPolicy": "never"}


@pytest.mark.parametrize("limit", [0, 300, 1_100, 1_300, 2_000])
async def test_a_turn_that_grows_too_long_fails_with_an_output_for_every_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(turn_module, "TURN_TEXT_LIMIT", limit)
    items = [function_call("exec_command", f"call_{at}", cmd="echo " + "x" * 400) for at in (1, 2)]
    replies = [Reply([CREATED, *map(done, items), completed()]), says("never asked for")]
    async with session(tmp_path, replies) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path), **OPEN)
        end = await peer.run_turn(thread)
        assert end["status"] == ("completed" if limit > 1_900 else "failed")
        if end["status"] == "failed":
            assert end["error"]["agentErrorInfo"] == "ContextWindowExceeded"
        monkeypatch.setattr(turn_module, "TURN_TEXT_LIMIT", 1 << 20)
        peer.side.replies[:] = [says("on")]
        assert (await peer.run_turn(thread, "go on"))["status"] == "completed"
    sent = peer.side.bodies[-1]["input"]
    calls = [one["call_id"] for one in sent if one["type"] == "function_call"]
    outputs = [one["call_id"] for one in sent if one["type"] == "function_call_output"]
    assert calls == outputs
