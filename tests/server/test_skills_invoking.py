"""A skill in the input of a turn: its text reaches the model, once."""

from pathlib import Path

import pytest
from model_side import says
from session_peer import session
from skill_folders import WORD, heard, item, project, put_skill, say, text

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "with_items",
    [("text",), ("item",), ("text", "item"), ("text", "text", "item", "item")],
    ids="-".join,
)
async def test_the_text_of_a_skill_reaches_the_model_once(with_items, tmp_path: Path) -> None:
    file = put_skill(project(tmp_path), "tally")
    parts = {"text": text("$tally apples"), "item": item("tally", file)}
    content = [parts[one] for one in with_items]
    async with session(tmp_path / "home", [says("a")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await say(peer, thread, *content)
    assert heard(peer).count(f"Say {WORD} tally.") == 1
    [shown] = peer.completed_items("userMessage")
    assert shown["content"] == content
