"""A server that is killed at any step of a patch: a later one finds all files old, or all new.

A patch is applied once; what is on the disk before each step is what a kill there would leave. At
some of the steps a server is really killed.
"""

import errno
import itertools
import os
import re
import shutil
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from disk_states import State, contents, read_state, write_state
from patch_trees import Snapshot, files, snapshot
from test_patch_apply import AFTER, make_tree, planned

from harness.protocol.wire.item import FileChangeItem
from reference_server import safe_files
from reference_server.config.home import Home
from reference_server.patch import apply as apply_module
from reference_server.patch import attributes, journal
from reference_server.patch import files as files_module
from reference_server.patch.apply import apply_plan
from reference_server.patch.journal import Journal
from reference_server.patch.parse import PatchError
from reference_server.presence import Presence
from reference_server.recovery import recover
from reference_server.rollout import writer
from reference_server.rollout.reader import read_rollout
from reference_server.rollout.records import ItemRecord, ThreadRecord, TurnStartedRecord
from reference_server.rollout.store import RolloutStore
from reference_server.rollout.writer import FileRecorder
from reference_server.settings import ThreadSettings, sandbox_policy

pytestmark = pytest.mark.slow

MODULES = (apply_module, files_module, attributes, journal, safe_files, writer)
SETTINGS = ThreadSettings(
    model="m",
    model_provider="p",
    cwd="/w",
    approval_policy="never",
    sandbox=sandbox_policy("read-only"),
)
SAMPLE = 30
"""A server is killed at one of this number of steps."""
Fails = Callable[[str, int], bool]


class Steps:
    """Stand-in for the module `os`, which calls `before` before each of its calls."""

    NO_STEPS = ("fspath", "kill", "getpid", "geteuid", "getegid", "strerror")

    def __init__(self, before: Callable[[], None], fails: Fails) -> None:
        self._before = before
        self._fails = fails
        self._calls: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if not callable(real) or isinstance(real, type) or name in self.NO_STEPS:
            return real

        def step(*args: Any, **kwargs: Any) -> Any:
            self._before()
            self._calls[name] = self._calls.get(name, 0) + 1
            if self._fails(name, self._calls[name]):
                number = errno.EPERM if name == "link" else errno.EIO
                raise OSError(number, os.strerror(number))
            return real(*args, **kwargs)

        return step


def never(_name: str, _time: int) -> bool:
    return False


def last_replacement(name: str, time: int) -> bool:
    """With this one all but the last file is in place, and everything is taken back."""
    return name == "replace" and time == 6


def first_removal(name: str, time: int) -> bool:
    """With this one all files were in place and the patch was noted as made."""
    # The two new files have lost their first names before.
    return name == "unlink" and time == 3


def no_links(name: str, _time: int) -> bool:
    return name == "link"


@dataclass
class Place:
    """A tree to patch, and a home with a thread that does."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "tree"

    @property
    def home(self) -> Home:
        return Home(self.folder / "home")

    @property
    def rollout(self) -> Path:
        return RolloutStore(self.home).new_path("thr_1", 5.0)

    def begin(self) -> None:
        self.folder.mkdir()
        make_tree(self.root)
        recorder = FileRecorder(self.rollout)
        recorder.append(ThreadRecord(at=5, id="thr_1", settings=SETTINGS))
        recorder.append(TurnStartedRecord(at=6, turn_id="turn_1", settings=SETTINGS))
        recorder.close()

    def patch_it(self) -> Callable[[], None]:
        """Apply the patch and record the item, as a server does; return what ends the server."""
        plan = planned(self.root)
        item = FileChangeItem(id="item_7", changes=[], status="inProgress")
        record = ItemRecord(at=7, turn_id="turn_1", item=item)
        heading = {"threadId": "thr_1", "record": record.plain()}
        presence = Presence(self.home)
        kept = Journal(presence.new_journal, heading)
        recorder = FileRecorder(self.rollout)
        try:
            apply_plan(plan, kept)
            status = "completed"
        except PatchError:
            status = "failed"
        done = item.model_copy(update={"status": status})
        recorder.append(record.model_copy(update={"item": done}))
        kept.forget()

        def end() -> None:
            recorder.close()
            presence.release()

        return end

    def statuses(self) -> list[str]:
        [turn] = read_rollout(self.rollout).turns
        return [item.status for item in turn.items if isinstance(item, FileChangeItem)]

    def temporaries(self) -> list[Path]:
        return [*self.root.rglob(".patch-*"), *self.home.servers.glob("*")]


@contextmanager
def stepping(before: Callable[[], None], fails: Fails) -> Generator[None]:
    """Have `before` called before each step in the block."""
    steps = Steps(before, fails)
    with pytest.MonkeyPatch.context() as patches:
        for module in MODULES:
            patches.setattr(module, "os", steps)
        yield


def states_at_every_step(place: Place, fails: Fails) -> list[State]:
    """Patch the tree; return the state of the place before each step."""
    states: list[State] = []

    def note() -> None:
        now = read_state(place.folder)
        states.append(states[-1] if states and states[-1] == now else now)

    with stepping(note, fails):
        end = place.patch_it()
    end()
    return states


def kill_at(place: Place, at: int, fails: Fails) -> bool:
    """Patch the tree in a process that is killed before this step; False if it had none."""
    steps = itertools.count(1)

    def kill() -> None:
        if next(steps) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        try:
            with stepping(kill, fails):
                place.patch_it()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@dataclass(frozen=True)
class Seen:
    """State after a server was killed at one step and a later server has recovered."""

    statuses: list[str]
    temporaries: list[str]
    is_old: bool
    is_new: bool


def seen_after_recovery(place: Place, before: Snapshot) -> Seen:
    recover(place.home)
    return Seen(
        statuses=place.statuses(),
        temporaries=[str(path) for path in place.temporaries()],
        is_old=snapshot(place.root) == before,
        is_new=files(place.root) == AFTER,
    )


def seen_after(place: Place, states: list[State], before: Snapshot) -> list[Seen]:
    """Return what a later server makes of each state."""
    seen: list[Seen] = []
    for number, state in enumerate(states):
        if number and state is states[number - 1]:
            seen.append(seen[-1])
            continue
        shutil.rmtree(place.folder)
        write_state(state, place.folder)
        seen.append(seen_after_recovery(place, before))
    return seen


def check_real_kills(
    place: Place, states: list[State], seen: list[Seen], before: Snapshot, fails: Fails
) -> None:
    """A server killed at some of the steps leaves these states, and a later one sees the same."""
    for at in range(1, len(states) + 1, SAMPLE):
        shutil.rmtree(place.folder)
        place.begin()
        assert kill_at(place, at, fails)
        left = read_state(place.folder)
        assert without_random_names(left) == without_random_names(states[at - 1])
        assert seen_after_recovery(place, before) == seen[at - 1]
    shutil.rmtree(place.folder)
    place.begin()
    assert not kill_at(place, len(states) + 1, fails)


def without_random_names(state: State) -> list[tuple[str, int, bytes | None, int]]:
    """Return the contents of a state without the random parts of names, in order."""
    pieces = re.compile(rb"[0-9a-f]{16}")
    return sorted(
        (
            re.sub("[0-9a-f]{16}", "*", name),
            mode,
            content and pieces.sub(b"*", content),
            len(names),
        )
        for name, (mode, content, names) in contents(state).items()
    )


@pytest.mark.parametrize(
    ("fails", "ends"),
    [
        (never, {"failed", "completed"}),
        (no_links, {"failed", "completed"}),
        (last_replacement, {"failed"}),
        (first_removal, {"failed", "completed"}),
    ],
)
def test_whichever_step_a_server_is_killed_at_all_is_old_or_all_is_new(
    tmp_path: Path, fails: Fails, ends: set[str]
) -> None:
    place = Place(tmp_path / "place")
    place.begin()
    before = snapshot(place.root)
    states = states_at_every_step(place, fails)
    seen = seen_after(place, states, before)
    assert len(seen) > 100
    assert [at for at, one in enumerate(seen, 1) if one.temporaries] == []
    made = [at for at, one in enumerate(seen, 1) if one.statuses == ["completed"]]
    assert [at for at in made if not seen[at - 1].is_new] == []
    assert [at for at, one in enumerate(seen, 1) if at not in made and not one.is_old] == []
    # Before the journal is whole nothing was begun, and nothing is said.
    first = next(at for at, one in enumerate(seen) if one.statuses)
    assert {tuple(one.statuses) for one in seen[:first]} == {()}
    assert {tuple(one.statuses) for one in seen[first:]} == {(end,) for end in ends}
    check_real_kills(place, states, seen, before, fails)
