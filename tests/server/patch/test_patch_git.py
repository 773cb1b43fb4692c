"""The diff of a turn is true: the real `git apply` makes the disk's state out of the baseline."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patch_trees import NAMES, WHOLE, Edit, File, Snapshot, Tree, files, patch_for, write_tree

from reference_server.patch.apply import apply_plan
from reference_server.patch.diff import TurnDiff
from reference_server.patch.parse import parse_patch
from reference_server.patch.plan import make_plan

GIT = shutil.which("git")
pytestmark = pytest.mark.skipif(GIT is None, reason="git is not installed")

_text = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0\ufeff"), max_size=3)
_lines = st.lists(st.sampled_from(["a", "b", "", "--- x", "+y", "\\"]) | _text, max_size=8)
_files = st.builds(
    lambda lines, ending, ends, executable: File(
        tuple(lines), ending, ends or not lines or not lines[-1], executable=executable
    ),
    _lines,
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.booleans(),
)
_names = st.sampled_from(NAMES)


@dataclass(frozen=True, slots=True)
class Step:
    """A patch of one file to a content, or a move, or what a command does to a patched file."""

    name: str
    by_command: bool
    file: File | None
    moved_to: str | None = None


_steps = st.builds(
    Step, _names, st.booleans(), st.none() | _files, st.none() | st.sampled_from(["z", "src/z y"])
)


def _git_apply(root: Path, diff: str) -> None:
    assert GIT is not None
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(root.parent),
        "HOME": str(root.parent),
    }
    ran = subprocess.run(
        [GIT, "apply", "--whitespace=nowarn", "-"],
        input=diff.encode(),
        capture_output=True,
        cwd=root,
        env=environment,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0, f"{ran.stderr.decode()}\n{diff}"


@contextmanager
def _two_trees(tree: Tree) -> Generator[tuple[Path, Path]]:
    with tempfile.TemporaryDirectory() as folder:
        roots = Path(folder).resolve() / "baseline", Path(folder).resolve() / "disk"
        for root in roots:
            root.mkdir()
            write_tree(root, tree)
        yield roots


def _executables(snapshot: Snapshot) -> dict[str, tuple[bytes, bool]]:
    """All that git knows of a file's mode is whether it can be run."""
    return {name: (content, bool(mode & 0o100)) for name, (content, mode) in snapshot.items()}


def _take(step: Step, disk: Path, diff: TurnDiff, noted: set[str]) -> None:
    path = disk / step.name
    if step.by_command:
        # Only files that a patch has touched are the turn's.
        if step.name not in noted:
            return
        if step.file is None:
            path.unlink(missing_ok=True)
        else:
            write_tree(disk, {step.name: step.file})
        return
    before = _read(path)
    target = step.moved_to
    if target is not None and (before is None or (disk / target).exists()):
        target = None
    if step.file is None and before is None:
        return
    if target is not None:
        edit = Edit(before, before, target)
    elif step.file is None:
        edit = Edit(before, None)
    elif before is None or step.file.ending == "\r\n":
        edit = Edit(None, File(step.file.lines))
    elif before.lines == step.file.lines:
        return
    else:
        edit = Edit(before, step.file)
    plan = make_plan(parse_patch(patch_for({step.name: edit}, WHOLE)), disk)
    diff.note(plan)
    apply_plan(plan)
    noted |= {step.name} | ({target} if target else set())


def _read(path: Path) -> File | None:
    if not path.exists():
        return None
    text = path.read_bytes().decode()
    lines = text.split("\n")
    ends = not lines[-1]
    return File(tuple(lines[:-1] if ends else lines), ends=ends)


@pytest.mark.slow
@pytest.mark.socket
@settings(deadline=None)
@given(st.dictionaries(_names, _files), st.lists(_steps, min_size=1, max_size=8))
def test_git_makes_the_disk_out_of_the_baseline(tree: Tree, steps: list[Step]) -> None:
    with _two_trees(tree) as (baseline, disk):
        diff = TurnDiff(disk)
        noted: set[str] = set()
        for step in steps:
            _take(step, disk, diff, noted)
        text = diff.text()
        if text:
            _git_apply(baseline, text)
        assert _executables(files(baseline)) == _executables(files(disk))


@pytest.mark.slow
@pytest.mark.socket
def test_git_reads_the_one_hunk_of_a_large_file(tmp_path: Path) -> None:
    lines = tuple(f"{at}" for at in range(6000))
    changed = tuple(f"{at}!" if 10 < at < 5990 else f"{at}" for at in range(6000))
    tree = {"large": File(lines)}
    with _two_trees(tree) as (baseline, disk):
        diff = TurnDiff(disk)
        edit = Edit(tree["large"], File(changed))
        plan = make_plan(parse_patch(patch_for({"large": edit}, 1)), disk)
        diff.note(plan)
        apply_plan(plan)
        assert diff.text().count("\n@@ ") == 1
        _git_apply(baseline, diff.text())
        assert files(baseline) == files(disk)
