"""Transcripts of a play: the number of repeated plays, and the pending result."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from harness.errors import TargetError
from harness.report.snapshot.folder import SnapshotFolder
from harness.report.snapshot.keeper import CHANGED, NEW, NOT_KEPT, SAME, UNSTEADY, Keeper
from harness.trace.trace import Trace
from tests.unit.snapshot.lines import ANSWER, COMPLETED, ITEM, PLAN, START, STARTED, traced

PLAIN = traced(START, ANSWER, STARTED, ITEM, COMPLETED)
LATER = traced(START, ANSWER, ITEM, STARTED, COMPLETED)
MORE = traced(START, ANSWER, STARTED, PLAN, ITEM, COMPLETED)


class Plays:
    """The further plays of a scenario; `asked` has for each whether a fresh process was wanted."""

    def __init__(self, traces: Sequence[Trace | Exception | None]) -> None:
        self._traces: Iterator[Trace | Exception | None] = iter(traces)
        self.asked: list[bool] = []

    def __call__(self, *, fresh: bool) -> Trace | None:
        self.asked.append(fresh)
        given = next(self._traces)
        if isinstance(given, Exception):
            raise given
        return given


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    folder = SnapshotFolder(tmp_path)
    folder.prepare()
    return Keeper(folder, "spec")


def keep(keeper: Keeper, first: Trace, *further: Trace | Exception | None) -> tuple[str, Plays]:
    again = Plays(further)
    state, _ = keeper.keep("a", first, again, handshake=True)
    return state, again


def accept(keeper: Keeper) -> None:
    for one in keeper.folder.waiting_snapshots():
        keeper.folder.accept(one)


def test_a_new_one_is_played_three_times_the_last_on_a_fresh_process(keeper: Keeper) -> None:
    state, again = keep(keeper, PLAIN, PLAIN, PLAIN)
    assert (state, again.asked) == (NEW, [False, True])
    accept(keeper)
    state, again = keep(keeper, PLAIN)
    assert (state, again.asked, keeper.folder.waiting_snapshots()) == (SAME, [], [])


def test_one_that_waits_already_is_not_played_again(keeper: Keeper) -> None:
    keep(keeper, PLAIN, PLAIN, PLAIN)
    state, again = keep(keeper, PLAIN)
    assert (state, again.asked) == (NEW, [])


def test_a_change_that_every_play_shows_waits(keeper: Keeper) -> None:
    keep(keeper, PLAIN, PLAIN, PLAIN)
    accept(keeper)
    state, again = keep(keeper, MORE, MORE, MORE)
    assert (state, len(again.asked)) == (CHANGED, 2)
    assert [one.scenario for one in keeper.folder.waiting_snapshots()] == ["a"]


def test_a_change_that_comes_and_goes_is_unsteady_and_does_not_wait(keeper: Keeper) -> None:
    keep(keeper, PLAIN, PLAIN, PLAIN)
    accept(keeper)
    state, again = keep(keeper, MORE, MORE, PLAIN)
    assert (state, len(again.asked)) == (UNSTEADY, 2)
    assert keeper.folder.waiting_snapshots() == []


def test_where_only_the_order_differs_more_plays_are_tried(keeper: Keeper) -> None:
    keep(keeper, PLAIN, PLAIN, PLAIN)
    accept(keeper)
    state, again = keep(keeper, *[LATER] * 6, PLAIN)
    assert (state, len(again.asked)) == (UNSTEADY, 6)
    state, again = keep(keeper, *[LATER] * 9)
    assert (state, len(again.asked)) == (CHANGED, 8)


def test_plays_that_fail_are_left_out_and_a_server_that_is_gone_ends_them(keeper: Keeper) -> None:
    state, again = keep(keeper, PLAIN, None, None)
    assert (state, len(again.asked)) == (NEW, 2)
    keeper.folder.reject(keeper.folder.waiting_snapshots()[0])
    state, again = keep(keeper, PLAIN, TargetError("gone"))
    assert (state, len(again.asked)) == (NEW, 1)


def test_a_full_disk_is_told_with_the_file(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    state, told = keeper.keep("a", PLAIN, Plays([PLAIN, PLAIN]), handshake=True)
    assert state == NOT_KEPT
    file = keeper.folder.pending_file("spec", "a")
    assert told == (f"{file} cannot be written: No space left on device",)
