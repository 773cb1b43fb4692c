"""`harness connect --web`: a page sends the lines of the prompt, and sees all that happens."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from event_client import BOUND, events, serve

from harness.cli.connect.conversation import hold_conversation
from harness.cli.connect.display import Display
from harness.cli.connect.live_server import ConnectOptions
from harness.cli.connect.talk import Judging
from harness.cli.connect.web import WebSession, forms
from harness.client.target.profile import load_profile
from harness.judge.rules.discovery import all_rules
from harness.protocol.spec.loading import load_book

pytestmark = [pytest.mark.slow, pytest.mark.socket]
SERVERS = Path(__file__).parents[3] / "fixtures/servers"


def _judging(server: str) -> Judging:
    command = [sys.executable, str(SERVERS / server)]
    profile = load_profile("spec").model_copy(update={"command": command})
    return Judging(load_book(), profile, all_rules())


class Held:
    """A session that is held: its client, what it wrote, and its exit status at the end."""

    def __init__(self, client: httpx.AsyncClient, lines: list[str]) -> None:
        self.client = client
        self.lines = lines
        self.status = -1
        self.ended = anyio.Event()

    async def do(self, line: str) -> dict[str, Any]:
        """Send a line; return the answer."""
        return (await self.client.post("/do", json={"line": line})).json()


@asynccontextmanager
async def hold(
    base: Path, server: str = "minimal.py", closed_seconds: float = BOUND
) -> AsyncGenerator[Held]:
    """Hold a session for the length of the block, which must end it."""
    lines: list[str] = []
    judging = _judging(server)
    session = WebSession(judging, lines.append, closed_seconds=closed_seconds)
    display = Display(session.write, judging.book, colour=False)
    options = ConnectOptions(judging.profile, judging.profile.bounds)
    async with serve(session.routes) as client, anyio.create_task_group() as tasks:
        held = Held(client, lines)

        async def until_ended() -> None:
            held.status = await hold_conversation(
                options, judging, base, display, session.hold, patient=False, ends=()
            )
            await session.end(held.status)
            held.ended.set()

        tasks.start_soon(until_ended)
        with anyio.fail_after(BOUND):
            yield held
            await held.ended.wait()


async def _until(stream: AsyncGenerator[tuple[str, Any, str]], name: str, words: str) -> Any:
    """Return the data of the first event of this name that contains the words."""
    async for event, data, _ in stream:
        if event == name and words in str(data):
            return data
    raise AssertionError(f"no {name} with {words}")


async def test_a_turn_is_held_and_judged_at_the_end(tmp_path: Path) -> None:
    async with hold(tmp_path) as held, events(held.client, "/events") as stream:
        await _until(stream, "state", "thread")
        assert await held.do("thread/start {}") == {"template": ""}
        await _until(stream, "state", "'thread': 'thr")
        template = (await held.do("turn/start"))["template"]
        assert template.startswith('turn/start {"threadId": "thr')
        assert await held.do('turn/start {"input": [{"type": "text", "text": "hello"}]}')
        await _until(stream, "diagram", "turn/completed completed")
        assert "is not running" not in str(await held.do(":quit"))
        assert (await _until(stream, "ended", ""))["status"] == 0
    assert held.status == 0
    assert "rules passed; findings: none" in held.lines[-1]


async def test_a_finding_is_marked_and_decides_the_status(tmp_path: Path) -> None:
    async with (
        hold(tmp_path, "broken/double_completed.py") as held,
        events(held.client, "/events") as stream,
    ):
        await _until(stream, "state", "thread")
        await held.do("thread/start {}")
        await _until(stream, "state", "'thread': 'thr")
        await held.do("turn/start text=hello")
        await _until(stream, "diagram", "turn.completed-once")
        await held.do(":quit")
    assert held.status == 1


async def test_a_mistake_is_answered_and_changes_nothing(tmp_path: Path) -> None:
    async with hold(tmp_path) as held, events(held.client, "/events") as stream:
        await _until(stream, "state", "thread")
        for line in ("turn/strat {", "nothing", ":gte x", "accept", "\ud800", '{"\udfff"'):
            answer = await held.client.post("/do", content=json.dumps({"line": line}))
            assert answer.status_code == 422, line
            assert answer.json()["error"]
        assert (await held.client.post("/do", content=b"[")).status_code == 422
        assert (await held.client.get("/do")).status_code == 405
        await held.do(":quit")
        assert "is not running" in (await held.do(":help"))["error"]
    assert held.status == 0


async def test_a_page_that_comes_back_gets_everything_again(tmp_path: Path) -> None:
    async with hold(tmp_path) as held:
        rows: list[Any] = []
        async with events(held.client, "/events") as stream:
            async for name, data, _ in stream:
                if name == "diagram":
                    rows[data["from"] :] = data["rows"]
                if "thread/started" in str(rows):
                    break
                if name == "state" and not data["thread"]:
                    await held.do("thread/start {}")
        async with events(held.client, "/events") as stream:
            again = await _until(stream, "diagram", "thread/started")
            await held.do(":quit")
    assert again["from"] == 0
    assert again["rows"][: len(rows)] == rows


async def test_the_session_ends_after_its_page_was_closed(tmp_path: Path) -> None:
    async with hold(tmp_path, closed_seconds=0.1) as held:
        stream_of = events(held.client, "/events")
        async with stream_of as stream:
            await _until(stream, "state", "thread")
    assert "the page was closed" in held.lines
    assert held.status == 0


def test_forms_name_the_members_of_each_request() -> None:
    fields = {one["name"]: one for one in forms(_judging("minimal.py"))["turn/start"]}
    assert fields["input"]["required"]
    assert fields["effort"]["values"] == ['"low"', '"medium"', '"high"']
    assert not fields["effort"]["required"]
