"""All files of a plan are changed or none: after a failure at any step the tree is unchanged."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from patch_trees import Snapshot, files, snapshot

from reference_server.patch import apply as apply_module
from reference_server.patch import files as files_module
from reference_server.patch.apply import PartlyApplied, apply_plan
from reference_server.patch.parse import PatchError, parse_patch
from reference_server.patch.plan import Plan, make_plan

PATCH = """*** Begin Patch
*** Add File: new/deep/n.txt
+new
*** Add File: over.sh
+over
*** Update File: src/run.sh
@@
-one
+two
*** Update File: src/mv.txt
*** Move to: moved/to/mv.txt
@@
-m
+M
*** Update File: upd.txt
@@
-a
+b
*** Delete File: src/del.txt
*** Delete File: del.txt
*** End Patch"""

AFTER: Snapshot = {
    "keep": (b"keep\n", 0o600),
    "moved/to/mv.txt": (b"M\n", 0o640),
    "new/deep/n.txt": (b"new\n", 0o644),
    "over.sh": (b"over\n", 0o700),
    "src/run.sh": (b"two\n", 0o755),
    "upd.txt": (b"b\n", 0o644),
}

REPLACED = ("over.sh", "src/run.sh", "src/mv.txt", "upd.txt", "src/del.txt", "del.txt")
"""The files that were there before."""


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def make_tree(root: Path) -> Path:
    root.mkdir()
    (root / "src").mkdir()
    for name, content, mode in (
        ("keep", "keep\n", 0o600),
        ("over.sh", "old\n", 0o700),
        ("src/run.sh", "one\n", 0o755),
        ("src/mv.txt", "m\n", 0o640),
        ("upd.txt", "a\n", 0o644),
        ("src/del.txt", "1\n", 0o444),
        ("del.txt", "2\n", 0o644),
    ):
        (root / name).write_text(content)
        (root / name).chmod(mode)
    return root


def planned(root: Path, text: str = PATCH) -> Plan:
    return make_plan(parse_patch(text), root)


class Faults:
    """Stand-in for the module `os`: it counts the steps, and one of them fails."""

    STEPS = ("open", "write", "close", "fchmod", "link", "replace", "unlink", "mkdir", "stat")

    def __init__(
        self, failing: Callable[[int, str], BaseException | None] = lambda _at, _name: None
    ) -> None:
        self.steps: list[str] = []
        self._failing = failing

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in self.STEPS:
            return real

        def step(*args: Any, **kwargs: Any) -> Any:
            if name == "close" and not stat.S_ISREG(os.fstat(args[0]).st_mode):
                # Only files tell of a full disk when they are closed.
                return real(*args)
            self.steps.append(name)
            error = self._failing(len(self.steps) - 1, name)
            if name == "close":
                real(*args)
            elif error and name == "write":
                real(args[0], bytes(args[1])[:1])
            if error:
                raise error
            return None if name == "close" else real(*args, **kwargs)

        return step


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Callable[[Faults], None]:
    def install(one: Faults) -> None:
        for module in (apply_module, files_module):
            assert isinstance(module, ModuleType)
            monkeypatch.setattr(module, "os", one)

    return install


def _full(at: int) -> Callable[[int, str], BaseException | None]:
    def failing(step: int, _name: str) -> BaseException | None:
        return OSError(errno.ENOSPC, "No space left on device") if step == at else None

    return failing


def _no_links(then: Callable[[int, str], BaseException | None]) -> Any:
    def failing(step: int, name: str) -> BaseException | None:
        error = then(step, name)
        return error or (OSError(errno.EPERM, "no links here") if name == "link" else None)

    return failing


def test_every_kind_of_change_is_made(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "t")
    apply_plan(planned(root))
    assert files(root) == AFTER


@pytest.mark.slow
@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_whichever_step_fails_the_tree_is_as_it_was(
    tmp_path: Path, faults: Callable[[Faults], None], links: bool
) -> None:
    def faulty(then: Callable[[int, str], BaseException | None]) -> Faults:
        return Faults(then if links else _no_links(then))

    counting = faulty(lambda _at, _name: None)
    plan = planned(make_tree(tmp_path / "counting"))
    faults(counting)
    apply_plan(plan)
    assert files(tmp_path / "counting") == AFTER
    steps = tuple(counting.steps)
    assert set(steps) == set(Faults.STEPS)
    last = len(steps) - 1 - steps[::-1].index("replace")
    # A new file loses its first name when it has its own; the old files go when all are in place.
    removals = [at for at, name in enumerate(steps) if name == "unlink"][-len(REPLACED) :]
    assert removals[0] > last
    assert removals == list(range(len(steps) - len(REPLACED), len(steps)))
    for at, name in enumerate(steps):
        faults(Faults())
        root = make_tree(tmp_path / str(at))
        before, plan = snapshot(root), planned(root)
        faults(faulty(_full(at)))
        if at in removals[1:]:
            # All is in place and the first old file is gone: too late to go back.
            apply_plan(plan)
            left = {name: one for name, one in files(root).items() if name not in AFTER}
            assert {name: one for name, one in files(root).items() if name in AFTER} == AFTER
            assert len(left) == 1
            continue
        with pytest.raises(PatchError, match="No space left on device") as caught:
            apply_plan(plan)
        assert snapshot(root) == before, f"step {at}: {name}"
        assert str(caught.value).endswith("(nothing was changed)"), name
        assert str(root) in str(caught.value)


def test_an_interruption_is_taken_back_and_passed_on(
    tmp_path: Path, faults: Callable[[Faults], None]
) -> None:
    root = make_tree(tmp_path / "t")
    before, plan = snapshot(root), planned(root)
    seen: list[str] = []

    def failing(_at: int, name: str) -> BaseException | None:
        seen.append(name)
        return KeyboardInterrupt() if seen.count("replace") == 3 and name == "replace" else None

    faults(Faults(failing))
    with pytest.raises(KeyboardInterrupt):
        apply_plan(plan)
    assert snapshot(root) == before


def test_a_file_that_cannot_be_restored_is_reported_with_the_place_of_its_content(
    tmp_path: Path, faults: Callable[[Faults], None]
) -> None:
    root = make_tree(tmp_path / "t")
    plan = planned(root)
    replaced: list[int] = []

    def failing(at: int, name: str) -> BaseException | None:
        if name == "replace":
            replaced.append(at)
        broken = name == "replace" and len(replaced) > 3
        return OSError(errno.EIO, "Input/output error") if broken else None

    faults(Faults(failing))
    with pytest.raises(PartlyApplied, match="could not be restored, its content is in") as caught:
        apply_plan(plan)
    assert "nothing was changed" not in str(caught.value)
    over = str(caught.value).split(f"{root}/over.sh could not be restored, its content is in ")[1]
    assert (root / over.split(" beside it")[0]).read_text() == "old\n"


@pytest.mark.parametrize(
    ("meddle", "words"),
    [
        (lambda root: (root / "upd.txt").write_text("A\n"), "upd.txt has changed since"),
        (lambda root: (root / "upd.txt").chmod(0o600), "upd.txt has changed since"),
        (lambda root: (root / "upd.txt").unlink(), "upd.txt has changed since"),
        (lambda root: (root / "del.txt").write_text(""), "del.txt has changed since"),
        (lambda root: (root / "src/mv.txt").write_text(""), "mv.txt has changed since"),
        (lambda root: _made(root / "new/deep/n.txt"), "n.txt has changed since"),
        (lambda root: _made(root / "moved/to/mv.txt"), "to/mv.txt has changed since"),
        (lambda root: _linked(root / "upd.txt", root / "keep"), "upd.txt: is a symbolic link"),
        (lambda root: _linked(root / "src", root / "x"), "src is no longer the folder"),
        (lambda root: _linked(root / "new", root / "x"), "new is no longer the folder"),
        (lambda root: (root / "src").rename(root / "y"), "cannot write .*/src/.*No such file"),
        (lambda root: _made(root / "moved"), "moved is no longer the folder"),
    ],
)
def test_a_file_changed_since_the_plan_is_not_overwritten(
    tmp_path: Path, meddle: Callable[[Path], object], words: str
) -> None:
    root = make_tree(tmp_path / "t")
    plan = planned(root)
    meddle(root)
    before = snapshot(root)
    with pytest.raises(PatchError, match=words) as caught:
        apply_plan(plan)
    assert "nothing was changed" in str(caught.value)
    assert snapshot(root) == before


def _made(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("here first\n")


def _linked(path: Path, target: Path) -> None:
    """A link in a path's place; what was there is where it points to."""
    if path.is_dir():
        path.rename(target)
    else:
        path.unlink(missing_ok=True)
        if not target.exists():
            target.mkdir()
    path.symlink_to(target)


def test_a_link_swapped_in_while_it_is_written_leads_nowhere(
    tmp_path: Path, faults: Callable[[Faults], None]
) -> None:
    root, elsewhere = make_tree(tmp_path / "t"), make_tree(tmp_path / "elsewhere")
    away = snapshot(elsewhere)
    plan = planned(root)

    def swap(_at: int, name: str) -> None:
        if name == "link" and not (root / "src").is_symlink():
            (root / "src").rename(root / "src-was")
            (root / "src").symlink_to(elsewhere / "src")

    faults(Faults(swap))
    apply_plan(plan)
    assert snapshot(elsewhere) == away
    assert (root / "src-was" / "run.sh").read_text() == "two\n"


def test_new_files_and_folders_get_the_usual_permissions(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "t")
    os.umask(0o027)
    apply_plan(planned(root))
    made = snapshot(root)
    assert [made[name][1] for name in ("new/deep/n.txt", "new/", "moved/to/")] == [
        0o640,
        0o750,
        0o750,
    ]
    assert made["src/run.sh"][1] == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_a_file_stays_its_owners_and_no_longer_runs_as_them(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "t")
    os.chown(root / "src/run.sh", 1234, 2345)
    (root / "src/run.sh").chmod(0o6755)
    os.chown(root / "src/mv.txt", 1234, 2345)
    apply_plan(planned(root))
    for name, mode in (("src/run.sh", 0o755), ("moved/to/mv.txt", 0o640)):
        status = (root / name).stat()
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 2345, mode)


def test_no_descriptor_stays_open(tmp_path: Path, faults: Callable[[Faults], None]) -> None:
    def descriptors() -> set[str]:
        return set(os.listdir("/proc/self/fd"))

    before = descriptors()
    apply_plan(planned(make_tree(tmp_path / "good")))
    plan = planned(make_tree(tmp_path / "bad"))
    faults(Faults(_full(30)))
    with pytest.raises(PatchError):
        apply_plan(plan)
    assert descriptors() == before


def test_another_name_of_a_replaced_file_keeps_the_old_content(tmp_path: Path) -> None:
    """A renamed file is a new one. Said in the module; who relies on it is not surprised."""
    root = make_tree(tmp_path / "t")
    (root / "other").hardlink_to(root / "upd.txt")
    apply_plan(planned(root))
    assert ((root / "other").read_text(), (root / "upd.txt").read_text()) == ("a\n", "b\n")
