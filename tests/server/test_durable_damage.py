"""Damaged rollouts: everything outside the damaged lines is kept, and the thread can continue.

What is shown afterwards are the same items, but for those of the damaged lines; the model is given
a conversation that it takes; and the next record begins on a line of its own.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_side import patches, says
from session_peer import Peer, session
from test_durable_kills import check_words

from reference_server.rollout.reader import read_rollout
from reference_server.rollout.records import parse_record

Message = dict[str, Any]
Lines = list[bytes]
pytestmark = pytest.mark.slow
THREAD = "thr_1"
UNASKED = {"sandbox": "danger-full-access", "approvalPolicy": "never"}


async def used(home: Path, work: Path) -> Lines:
    """Make a thread with three turns in this folder; gives the lines of its rollout."""
    replies = [says("One."), patches("*** Add File: a", "+x"), says("Two."), says("Three.")]
    async with session(home, replies) as peer:
        thread = await peer.start_thread(cwd=str(work), **UNASKED)
        for text in ("first", "second", "third"):
            await peer.run_turn(thread, text)
    return rollout_of(home).read_bytes().splitlines(keepends=True)


def rollout_of(home: Path) -> Path:
    [path] = home.rglob("rollout-*.jsonl")
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """The lines of an undamaged rollout."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "work").mkdir()
    return anyio.run(used, folder / "home", folder / "work")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def stored(home: Path, *lines: bytes, name: str = f"rollout-2025-01-02T03-04-05-{THREAD}") -> Path:
    path = home / "sessions" / "2025" / "01" / "02" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))
    return path


def items_of(lines: Lines) -> list[Message]:
    """The items that these lines have, in their order."""
    return [item for line in lines if (item := json.loads(line).get("item")) is not None]


async def shown(peer: Peer, method: str = "thread/read") -> Message:
    params = {"threadId": THREAD, "includeTurns": True}
    return (await peer.request(method, params))["result"]["thread"]


def items_in(thread: Message) -> list[Message]:
    return [item for turn in thread["turns"] for item in turn["items"]]


async def check(home: Path, expected: list[Message]) -> None:
    """A server shows these items, lists the thread, and goes on with it."""
    path = rollout_of(home)
    async with session(home, [says("Very well.")]) as peer:
        read = await shown(peer)
        assert items_in(read) == expected
        ids = [turn["id"] for turn in read["turns"]]
        assert len(set(ids)) == len(ids)
        listed = (await peer.request("thread/list", {}))["result"]["data"]
        assert [thread["id"] for thread in listed] == [THREAD]
        assert items_in(await shown(peer, "thread/resume")) == expected
        before = path.read_bytes()
        assert (await peer.run_turn(THREAD, "go on"))["status"] == "completed"
        check_words(peer.side.bodies[-1]["input"])
        after = await shown(peer)
    assert items_in(after)[: len(expected)] == expected
    added = path.read_bytes()[len(before) :]
    assert path.read_bytes().startswith(before)
    for line in added.removeprefix(b"\n").splitlines():
        parse_record(line)
    assert before.endswith(b"\n") or added.startswith(b"\n")
    texts = [item["text"] for item in items_in(after) if item["type"] == "agentMessage"]
    assert texts[-1] == "Very well."


def said(item: Message) -> bytes:
    """A line by which the conversation with the model grew by this item."""
    record = {"type": "history", "at": 1, "turnId": "turn_1", "items": [item]}
    return json.dumps(record).encode() + b"\n"


HARMLESS: dict[str, Callable[[Lines, int], Lines]] = {
    "empty lines": lambda lines, at: [*lines[:at], b"\n\r\n\n", *lines[at:]],
    "NULs": lambda lines, at: [*lines[:at], b"\0" * 4096 + b"\n", *lines[at:]],
    "no UTF-8": lambda lines, at: [*lines[:at], b'{"type":"\xff\xfe"}\n', *lines[at:]],
    "a BOM": lambda lines, at: [*lines[:at], b"\xef\xbb\xbf\n", *lines[at:]],
    "half of a record": lambda lines, at: [*lines[:at], lines[-1][:20] + b"\n", *lines[at:]],
    "no object": lambda lines, at: [*lines[:at], b'[1, "x", null]\n', *lines[at:]],
    "deep nesting": lambda lines, at: [*lines[:at], b"[" * 100_000 + b"\n", *lines[at:]],
    "a giant line": lambda lines, at: [
        *lines[:at],
        b'{"type":"' + b"x" * 2**23 + b"\n",
        *lines[at:],
    ],
    "a record of another version": lambda lines, at: [
        *lines[:at],
        b'{"type":"weather","at":1,"turnId":"turn_1","sun":true}\n',
        *lines[at:],
    ],
    "words without a type": lambda lines, at: [*lines[:at], said({"role": "user"}), *lines[at:]],
    "words of nobody": lambda lines, at: [
        *lines[:at],
        said({"type": "message", "content": []}),
        *lines[at:],
    ],
    "a call without an id": lambda lines, at: [
        *lines[:at],
        said({"type": "function_call", "name": "shell", "arguments": "{}"}),
        *lines[at:],
    ],
    "every line twice": lambda lines, _: [one for line in lines for one in (line, line)],
    "all of it twice": lambda lines, _: [*lines, *lines],
    "another thread behind": lambda lines, _: [*lines, *map(partial(another, number=7), lines)],
    "other line ends": lambda lines, _: [line.replace(b"\n", b"\r\n") for line in lines],
}


def another(line: bytes, number: int) -> bytes:
    """The same line of another thread."""
    line = line.replace(b"turn_", b"turn_%d" % number).replace(b"item_", b"item_%d" % number)
    return line.replace(b'"thr_1"', b'"thr_%d"' % number)


@pytest.mark.parametrize("where", [0, 1, 5, -1])
@pytest.mark.parametrize("name", HARMLESS)
async def test_junk_added_to_a_rollout_takes_nothing_away(
    home: Path, whole: Lines, name: str, where: int
) -> None:
    at = where if where >= 0 else len(whole)
    stored(home, *HARMLESS[name](whole, at))
    await check(home, items_of(whole))


async def test_a_rollout_without_its_last_line_end_goes_on(home: Path, whole: Lines) -> None:
    stored(home, b"".join(whole).rstrip(b"\n"))
    await check(home, items_of(whole))


async def test_each_line_that_is_lost_costs_its_own_item_alone(
    tmp_path: Path, whole: Lines
) -> None:
    for at in range(len(whole)):
        rest = [*whole[:at], *whole[at + 1 :]]
        home = tmp_path / str(at)
        stored(home, *whole[:at], whole[at][: len(whole[at]) // 2] + b"\n", *whole[at + 1 :])
        await check(home, items_of(rest))


async def test_a_rollout_whose_lines_are_in_another_order_is_read(home: Path, whole: Lines) -> None:
    stored(home, whole[0], *reversed(whole[1:]))
    async with session(home, [says("Very well.")]) as peer:
        found = items_in(await shown(peer, "thread/resume"))
        assert (await peer.run_turn(THREAD, "go on"))["status"] == "completed"
        check_words(peer.side.bodies[-1]["input"])
    assert sorted(item["id"] for item in found) == sorted(item["id"] for item in items_of(whole))


EVERY_USE = [
    ("thread/read", {}),
    ("thread/resume", {}),
    ("thread/fork", {}),
    ("thread/rollback", {"numTurns": 1}),
    ("thread/name/set", {"name": "x"}),
]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "does not begin with a thread record"),
        ([b"\0" * 10_000], "does not begin with a thread record"),
        ([b'{"type":"thread","version":99}\n'], "was written by a newer version"),
        ([b'{"type":"thread"}\n', b"x\n"], "does not begin with a thread record"),
    ],
    ids=["empty", "NULs", "newer", "no record"],
)
async def test_a_file_without_a_thread_is_named_and_stops_nothing_else(
    home: Path, lines: Lines, words: str
) -> None:
    path = stored(home, *lines)
    async with session(home, [says("fine")]) as peer:
        for method, params in EVERY_USE:
            answer = await peer.request(method, {"threadId": THREAD, **params})
            message = answer["error"]["message"]
            if method not in ("thread/rollback", "thread/name/set"):
                assert (THREAD in message, str(path) in message) == (True, True), method
                assert words in message, method
        assert (await peer.request("thread/list", {}))["result"]["data"] == []
        started = await peer.start_thread()
        assert started != THREAD
        assert (await peer.run_turn(started))["status"] == "completed"
    assert path.read_bytes() == b"".join(lines)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_bytes_that_are_overwritten_anywhere_cost_their_lines_alone(
    whole: Lines, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = b"".join(whole)
    at = data.draw(st.integers(0, len(content) - 1), label="offset")
    # No line end: a record that is cut in two is the matter of other tests.
    garbage = data.draw(st.binary(min_size=1, max_size=40), label="bytes").replace(b"\n", b"\0")
    damaged = content[:at] + garbage + content[at + len(garbage) :]
    path = stored(tmp_path_factory.mktemp("damaged"), damaged)
    first = content.count(b"\n", 0, at)
    last = content.count(b"\n", 0, min(at + len(garbage), len(content)))
    kept = items_of([*whole[:first], *whole[last + 1 :]])
    thread = read_rollout(path)
    found = [item.plain() for turn in thread.turns for item in turn.items]
    assert [item for item in found if item in kept] == kept
    check_words(thread.history)
