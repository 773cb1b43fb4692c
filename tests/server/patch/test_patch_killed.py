"""A server that is killed at any step of a patch: a later one finds all files old, or all new."""

import errno
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from patch_trees import files, snapshot
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
Fails = Callable[[str, int], bool]


class Killing:
    """Stand-in for the module `os`: the process is killed before the n-th of its calls."""

    NO_STEPS = ("fspath", "kill", "getpid", "geteuid", "getegid", "strerror")

    def __init__(self, at: int, fails: Fails) -> None:
        self._at = at
        self._fails = fails
        self._calls: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if not callable(real) or isinstance(real, type) or name in self.NO_STEPS:
            return real

        def step(*args: Any, **kwargs: Any) -> Any:
            self._at -= 1
            if self._at == 0:
                os.kill(os.getpid(), signal.SIGKILL)
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

    def patch_it(self) -> None:
        """Apply the patch and record the item, as a server does."""
        plan = planned(self.root)
        item = FileChangeItem(id="item_7", changes=[], status="inProgress")
        record = ItemRecord(at=7, turn_id="turn_1", item=item)
        heading = {"threadId": "thr_1", "record": record.plain()}
        kept = Journal(Presence(self.home).new_journal, heading)
        recorder = FileRecorder(self.rollout)
        try:
            apply_plan(plan, kept)
            status = "completed"
        except PatchError:
            status = "failed"
        done = item.model_copy(update={"status": status})
        recorder.append(record.model_copy(update={"item": done}))
        kept.forget()

    def statuses(self) -> list[str]:
        [turn] = read_rollout(self.rollout).turns
        return [item.status for item in turn.items if isinstance(item, FileChangeItem)]

    def temporaries(self) -> list[Path]:
        return [*self.root.rglob(".patch-*"), *self.home.servers.glob("*")]


def killed(place: Place, at: int, fails: Fails) -> bool:
    """Let a process of its own patch the tree; tells whether it came to the step and was killed."""
    child = os.fork()
    if child == 0:
        try:
            killing = Killing(at, fails)
            for module in MODULES:
                vars(module)["os"] = killing
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


def at_every_step(folder: Path, fails: Fails) -> Iterator[Seen]:
    """Kill a server at its first step, another at its second, until one is not killed at all."""
    for at in itertools.count(1):
        place = Place(folder / str(at))
        place.begin()
        before = snapshot(place.root)
        going_on = killed(place, at, fails)
        recover(place.home)
        if not going_on:
            return
        yield Seen(
            statuses=place.statuses(),
            temporaries=[str(path) for path in place.temporaries()],
            is_old=snapshot(place.root) == before,
            is_new=files(place.root) == AFTER,
        )


def print_every_step(folder: str, fails: str) -> None:
    """Print a line for each step, as `seen_at_every_step` reads them."""
    os.umask(0o022)
    for seen in at_every_step(Path(folder), globals()[fails]):
        print(json.dumps(asdict(seen)))  # noqa: T201


def seen_at_every_step(folder: Path, fails: Fails) -> list[Seen]:
    """Return the states, found in a new process, which forks faster than a worker of pytest."""
    script = f"import {__name__} as here, sys; here.print_every_step(*sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder), fails.__name__],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        stdout=subprocess.PIPE,
        check=True,
    )
    return [Seen(**json.loads(line)) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("fails", "ends"),
    [
        (never, {"failed", "completed"}),
        pytest.param(no_links, {"failed", "completed"}, marks=pytest.mark.kills),
        pytest.param(last_replacement, {"failed"}, marks=pytest.mark.kills),
        pytest.param(first_removal, {"failed", "completed"}, marks=pytest.mark.kills),
    ],
)
def test_whichever_step_a_server_is_killed_at_all_is_old_or_all_is_new(
    tmp_path: Path, fails: Fails, ends: set[str]
) -> None:
    seen = seen_at_every_step(tmp_path, fails)
    assert len(seen) > 100
    assert [at for at, one in enumerate(seen, 1) if one.temporaries] == []
    made = [at for at, one in enumerate(seen, 1) if one.statuses == ["completed"]]
    assert [at for at in made if not seen[at - 1].is_new] == []
    assert [at for at, one in enumerate(seen, 1) if at not in made and not one.is_old] == []
    # Before the journal is whole nothing was begun, and nothing is said.
    first = next(at for at, one in enumerate(seen) if one.statuses)
    assert {tuple(one.statuses) for one in seen[:first]} == {()}
    assert {tuple(one.statuses) for one in seen[first:]} == {(end,) for end in ends}
