"""Marks about a server's files: a file, its new place, and texts in files."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness.client.target.profile import Bounds
from harness.model.model import ScriptedModel
from harness.model.wire.responses import ResponsesEncoder
from harness.scenario.home_files import MAX_BYTES, look_at_file, search_home
from harness.scenario.loader import load_text
from harness.scenario.player import Player, StepFailure
from harness.scenario.yaml12 import ScenarioError
from harness.trace.marks import FileMatch, FileSeen, HomeSearched, Place
from harness.trace.trace import Trace

from .fake_server import THREAD, connected


def wrote(path: Path, content: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return str(path)


def test_a_file_is_seen_with_its_size_and_its_digest(tmp_path: Path) -> None:
    path = wrote(tmp_path / "a" / "one", "1234")
    digest = hashlib.sha256(b"1234").hexdigest()
    seen = look_at_file(path, None, tmp_path)
    assert seen == FileSeen(path=path, exists=True, size=4, sha256=digest, folder=True)


def test_a_missing_file_is_searched_for_only_if_it_was_seen(tmp_path: Path) -> None:
    path = wrote(tmp_path / "a" / "one", "1234")
    former = look_at_file(path, None, tmp_path)
    Path(path).unlink()
    moved = wrote(tmp_path / "b" / "two", "1234")
    wrote(tmp_path / "b" / "three", "4321")
    assert look_at_file(path, None, tmp_path) == FileSeen(path=path, exists=False, folder=True)
    assert look_at_file(path, former, tmp_path).elsewhere == (moved,)
    assert look_at_file(str(tmp_path / "c" / "one"), former, None).folder is False


def test_a_folder_a_link_to_nowhere_and_an_unreadable_name_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for path in (str(tmp_path), str(tmp_path / "link"), "/no\0name"):
        assert look_at_file(path, None, tmp_path).exists is False


def test_texts_are_found_in_paths_and_in_bytes(tmp_path: Path) -> None:
    named = wrote(tmp_path / "thr_7" / "x", "nothing")
    held = wrote(tmp_path / "log", "thr_7 said secret")
    wrote(tmp_path / "other", "thr_8")
    (tmp_path / "link").symlink_to(held)
    found = search_home(tmp_path, ("thr_7", "secret"))
    assert found.found == (
        FileMatch(held, (), ("thr_7", "secret")),
        FileMatch(named, ("thr_7",), ()),
    )
    assert (found.files, found.whole) == (3, True)


def test_a_search_that_cannot_read_everything_says_so(tmp_path: Path) -> None:
    with open(wrote(tmp_path / "large", ""), "wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert search_home(tmp_path, ("x",)).whole is False


STEPS = """
title: a scenario
client:
  - start_thread: {as: t}
"""


async def played(
    steps: str, thread: dict[str, Any], home: Path
) -> tuple[StepFailure | None, Trace]:
    """The steps after thread/start, whose answer shows this thread."""
    loaded = load_text(STEPS + steps)
    with anyio.fail_after(20):
        async with connected() as (peer, server, _):
            server.answers["thread/start"] = lambda _: {"thread": {"id": THREAD, **thread}}
            peer.recorder.mark(Place(home=str(home)))
            model = ScriptedModel(loaded.scenario.scripts(), ResponsesEncoder())
            player = Player(loaded, peer, model, cwd=home, bounds=Bounds(step=10), thread_params={})
            return await player.play(), peer.recorder.trace
    raise AssertionError("a bounded block was left without a result")


@pytest.mark.anyio
async def test_steps_leave_marks_and_a_null_path_leaves_none(tmp_path: Path) -> None:
    path = wrote(tmp_path / "one", f"{THREAD} said it")
    look_at = "  - look_at: {path: $t.thread.path}\n"
    steps = f"{look_at}  - search_home: {{texts: [$t.thread.id, 'said it']}}\n"
    unmet, trace = await played(steps, {"path": path}, tmp_path)
    assert unmet is None
    assert [mark.body.path for mark in trace.marks_of(FileSeen)] == [path]
    (searched,) = trace.marks_of(HomeSearched)
    assert searched.body.found == (FileMatch(path, (), (THREAD, "said it")),)
    unmet, trace = await played(look_at, {"path": None}, tmp_path)
    assert unmet is None
    assert trace.marks_of(FileSeen) == []


@pytest.mark.anyio
async def test_a_path_that_is_not_absolute_is_below_the_home(tmp_path: Path) -> None:
    wrote(tmp_path / "sub" / "one", "1")
    steps = "  - look_at: {path: $t.thread.path}\n"
    _, trace = await played(steps, {"path": "sub/one"}, tmp_path)
    (seen,) = trace.marks_of(FileSeen)
    assert seen.body.exists
    assert seen.body.path == str(tmp_path / "sub" / "one")


@pytest.mark.parametrize(
    "step", ["look_at: {path: $x.thread.path}", "search_home: {texts: [$x.thread.id]}"]
)
def test_an_alias_that_no_step_gave_is_refused(step: str) -> None:
    with pytest.raises(ScenarioError, match="unknown value 'x'"):
        load_text(f"{STEPS}  - {step}\n")
