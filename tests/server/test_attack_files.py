"""Files that the model's commands, or others, leave where the server itself reads them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from attacks import CONFINING, attack, places
from confined import IDENTITIES, Place, sandboxed
from model_side import CREATED, Reply, completed, done, function_call, runs, says
from session_peer import config, session

from reference_server.config.home import Home
from reference_server.patch.journal import State
from reference_server.recovery import recover
from reference_server.sandbox.rules import FILE, FILE_LIMIT, RULE_LIMIT, BadRule, Rules, RulesFile

DONE = says("done")
BOUND = 20.0


@pytest.fixture(params=IDENTITIES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with places(request) as found:
        yield found


class TestOfTheWorkspace:
    """Damaged repositories that a command leaves in the workspace must not block a turn."""

    pytestmark = sandboxed

    @pytest.mark.parametrize(
        "making",
        [
            "mkdir x && mkfifo x/commondir && echo 'gitdir: x' > .git",
            "mkdir x && ln -s /dev/zero x/commondir && echo 'gitdir: x' > .git",
            "truncate -s 1500M .git",
            "{ printf 'gitdir: '; yes a/ | head -c 2000000 | tr -d '\\n'; } > .git",
            "mkfifo .git",
            "ln -s /dev/zero .git",
        ],
    )
    async def test_a_repository_that_is_none_holds_nothing_up(
        self, place: Place, making: str
    ) -> None:
        (place.git / "config").unlink()
        place.git.rmdir()
        async with attack(place) as one:
            thread = await one.thread(CONFINING["workspaceWrite"], "never")
            with anyio.fail_after(BOUND):
                await one.turn(thread, runs(making), DONE)
                await one.turn(thread, runs("echo next"), DONE)
            last = one.peer.completed_items("commandExecution")[-1]
            assert last["aggregatedOutput"] == "next\n"


def journal(home: Path, text: bytes, *, server: str = "0" * 16) -> Path:
    folder = home / "servers"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{server}.lock").touch()
    path = folder / f"{server}.1.patch.json"
    path.write_bytes(State.PREPARED.value + text)
    return path


def noted(**fields: Any) -> dict[str, Any]:
    temporary = {"fresh": f".patch-{'0' * 16}.tmp", "old": f".patch-{'1' * 16}.tmp"}
    return {"folder": "/tmp", "name": "a", **temporary, "before": None, "after": None, **fields}


@pytest.mark.parametrize(
    "said",
    [
        {"writes": [noted(folder="/tmp/\0")]},
        {"writes": [noted(name="a\0b")]},
        {"writes": [noted(name="\ud800")]},
        {"made": ["/tmp/\0"]},
        {"writes": [noted(folder="/" + "a/" * 5000)]},
        {"writes": [noted(folder="/tmp/" + "a/" * 1500)]},
        {"heading": {"threadId": "thr_1", "record": {"at": "x"}}},
    ],
)
def test_no_journal_keeps_a_server_from_starting(tmp_path: Path, said: dict[str, Any]) -> None:
    whole = {"version": 1, "heading": {}, "writes": [], "made": [], **said}
    journal(tmp_path, json.dumps(whole).encode() + b"\n")
    recover(Home(tmp_path))


def test_a_lock_that_is_no_file_does_not_keep_other_journals_from_being_settled(
    tmp_path: Path,
) -> None:
    empty = b'{"version": 1, "heading": {}, "writes": [], "made": []}\n'
    waiting = [journal(tmp_path, empty, server=f"{number:016x}") for number in range(8)]
    for number in range(8, 14):
        (tmp_path / "servers" / f"{number:016x}.lock").mkdir()
        (tmp_path / "servers" / f"{number:016x}.1.patch.json").touch()
    recover(Home(tmp_path))
    assert [path for path in waiting if path.exists()] == []


class TestOfTheRules:
    """The file that is read before each command."""

    def test_a_pipe_is_reported_and_not_waited_for(self, tmp_path: Path) -> None:
        file = RulesFile(tmp_path)
        file.path.parent.mkdir()
        os.mkfifo(file.path)
        assert "not a regular file" in file.read().damaged_lines[0]

    def test_brackets_without_end_are_a_damaged_line(self, tmp_path: Path) -> None:
        file = RulesFile(tmp_path)
        file.path.parent.mkdir()
        file.path.write_text("allow " + "[" * 100_000 + '\nallow ["a"]\n')
        found = file.read()
        assert found.prefixes == (("a",),)
        assert len(found.damaged_lines) == 1

    def test_a_rule_and_the_file_have_bounds(self, tmp_path: Path) -> None:
        file = RulesFile(tmp_path)
        with pytest.raises(BadRule, match="at most"):
            file.add(["x", "y" * RULE_LIMIT])
        file.add(["a"])
        with (tmp_path / FILE).open("ab") as adding:
            adding.write(b"#" * FILE_LIMIT)
        with pytest.raises(BadRule, match="is full"):
            file.add(["b"])
        assert file.read() == Rules((("a",),))


NESTED = '{"a":' * 200 + "1" + "}" * 200


@pytest.mark.anyio
@pytest.mark.parametrize("extra", [NESTED, "NaN", "1e999", "Infinity"])
async def test_values_that_cannot_be_encoded_are_not_stored(tmp_path: Path, extra: str) -> None:
    item = function_call("exec_command", cmd="true")
    text = done({**item, "more": "@"}).replace(b'"@"', extra.encode())
    settings = config(stream_max_retries=0)
    replies = [Reply([CREATED, text, completed()]), says("on")]
    async with session(tmp_path, replies, settings=settings) as peer:
        thread = await peer.start_thread()
        end = await peer.run_turn(thread)
        assert end["status"] == "failed"
        assert end["error"]["agentErrorInfo"] == "ResponseStreamDisconnected"
        assert (await peer.run_turn(thread, "again"))["status"] == "completed"
    kinds = [one["type"] for one in peer.side.bodies[-1]["input"]]
    assert kinds == ["message", "message"]
