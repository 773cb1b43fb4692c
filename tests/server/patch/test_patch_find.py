"""Search for lines: equal to an exhaustive search, and it ends when it is cancelled."""

import threading

import anyio
import pytest
from anyio import to_thread
from hypothesis import given
from hypothesis import strategies as st

from reference_server.patch import find
from reference_server.patch.find import FORMS, Lines, TooMuchWork
from reference_server.patch.match import MAX_TEXT_BYTES, MAX_TEXT_LINES, apply_hunks
from reference_server.patch.parse import Hunk, PatchError
from reference_server.patch.work_budget import stop_if_abandoned

LINE = st.sampled_from(["a", "b", "", " a", "a ", "a  b", "a b", "\ra", "é"])
ENDED = st.tuples(LINE, st.sampled_from(["\n", "\r\n"])).map("".join)
BLOCK = st.lists(LINE, min_size=1, max_size=4)


def by_trying(lines: list[str], block: list[str], start: int, last: int | None) -> int | None:
    most = len(lines) - len(block)
    places = range(start, (most if last is None else min(last, most)) + 1)
    for form in FORMS:
        want = [form(line) for line in block]
        for at in places:
            if [form(line) for line in lines[at : at + len(block)]] == want:
                return at
    return None


@given(
    lines=st.lists(LINE, max_size=12),
    block=BLOCK,
    start=st.integers(0, 12),
    last=st.none() | st.integers(0, 12),
)
def test_lines_are_found_where_trying_every_place_finds_them(lines, block, start, last) -> None:
    text = "".join(f"{line}\n" for line in lines)
    assert Lines(text.encode()).find(block, start, last) == by_trying(lines, block, start, last)


@given(BLOCK, st.lists(LINE, max_size=12))
def test_lines_with_one_number_are_told_apart(block, lines) -> None:
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(find, "_mark", len)
        found = Lines("".join(f"{line}\n" for line in lines).encode()).find(block, 0)
    assert found == by_trying(lines, block, 0, None)


@given(st.lists(ENDED, max_size=8), LINE)
def test_the_lines_of_a_text_are_the_text(ended, rest) -> None:
    content = "".join([*ended, rest]).encode()
    lines = Lines(content)
    assert lines.raw(0, len(lines)) == content
    assert len(lines) == len(ended) + bool(rest)


def test_a_search_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "MAX_SEARCHED_BYTES", 100)
    content = b"a\n" * 50
    with pytest.raises(TooMuchWork):
        Lines(content).find(["b"], 0)
    with pytest.raises(PatchError, match="smaller patches"):
        apply_hunks(content, [Hunk(1, (), (("-", "b"),))], "file")


@pytest.mark.parametrize("content", [b"\n" * (MAX_TEXT_LINES + 1), b"x" * (MAX_TEXT_BYTES + 1)])
def test_a_text_too_long_for_hunks_is_refused(content: bytes) -> None:
    with pytest.raises(PatchError, match="too long for hunks"):
        apply_hunks(content, [Hunk(1, (), (("-", "b"),))], "file")


async def test_a_search_that_nobody_waits_for_ends() -> None:
    came, go, ended = threading.Event(), threading.Event(), threading.Event()

    def searching() -> None:
        came.set()
        assert go.wait(5)
        try:
            Lines(b"a\n").find(["b"], 0)
        except BaseException:
            ended.set()
            raise

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: to_thread.run_sync(searching, abandon_on_cancel=True))
        assert await to_thread.run_sync(came.wait, 5)
        tasks.cancel_scope.cancel()
    go.set()
    assert await to_thread.run_sync(ended.wait, 5)


def test_elsewhere_than_in_a_thread_of_the_server_work_goes_on() -> None:
    stop_if_abandoned()
