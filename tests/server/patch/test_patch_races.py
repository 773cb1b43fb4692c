"""Names that come to mean other files while a patch is checked, made, or shown.

Whoever works in the same folder can do that: another command of the model, or its user.
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from patch_trees import snapshot
from test_patch_apply import Faults, make_tree, planned

from reference_server.patch import apply as apply_module
from reference_server.patch import files as files_module
from reference_server.patch.apply import apply_plan
from reference_server.patch.diff import TurnDiff
from reference_server.patch.parse import PatchError, parse_patch
from reference_server.patch.plan import Plan, make_plan

SECRET = "the-secret"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with a folder, and a hidden place that has a file of the same name."""
    for folder in ("work/d", "hidden"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "work/d/key").write_text("mine\n")
    (tmp_path / "hidden/key").write_text(SECRET)
    return tmp_path / "work"


def plan_of(work: Path, forbids: Callable[..., str | None], *lines: str) -> Plan:
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
    return make_plan(parse_patch(text), work, forbids)


def swap(work: Path) -> None:
    """Put a link to the hidden place where the folder was."""
    if not (work / "d").is_symlink():
        (work / "d").rename(work / "d-was")
        (work / "d").symlink_to(work.parent / "hidden")


def hidden(path: str) -> str | None:
    return "the sandbox hides it" if "/hidden" in path else None


@pytest.mark.parametrize(
    "lines",
    [
        ("*** Delete File: d/key",),
        ("*** Update File: d/key", "*** Move to: moved"),
        ("*** Update File: d/key", "@@", f"-{SECRET}", "+x"),
    ],
)
def test_a_link_swapped_in_while_a_patch_is_checked_shows_nothing(
    work: Path, lines: tuple[str, ...]
) -> None:
    def forbids(path: str, *_status: object) -> str | None:
        # What it was asked about is found to be harmless, and then the name means another.
        why = hidden(path)
        swap(work)
        return why

    with pytest.raises(PatchError, match="d/key: does not exist"):
        plan_of(work, forbids, *lines)


def test_a_folder_that_is_moved_while_a_patch_is_checked_is_judged_where_it_is(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Moving:
        """Stand-in for the module `os`: the folder is moved as soon as it is open."""

        def __getattr__(self, name: str) -> object:
            if name == "fstat" and (work / "d").exists():
                (work / "d").rename(work.parent / "hidden/d")
            return getattr(os, name)

    monkeypatch.setattr(files_module, "os", Moving())
    with pytest.raises(PatchError, match="the sandbox hides it"):
        plan_of(work, lambda path, *_status: hidden(path), "*** Delete File: d/key")


def test_a_link_that_goes_while_it_is_resolved_fails_the_patch_and_not_the_turn(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def readlink(path: str, **_: object) -> str:
        raise OSError(errno.EINVAL, "Invalid argument", path)

    (work / "to-d").symlink_to("d")
    monkeypatch.setattr(os, "readlink", readlink)
    with pytest.raises(PatchError, match=r"/to-d: Invalid argument; try again"):
        plan_of(work, lambda *_: None, "*** Delete File: to-d/key")


@pytest.mark.parametrize("name", ["upd.txt", "src/mv.txt", "over.sh"])
def test_nothing_is_written_before_all_is_found_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Temporary files lie where commands can read them."""
    root = make_tree(tmp_path / "t")
    plan = planned(root)
    (root / name).write_text("another\n")
    before, steps = snapshot(root), Faults()
    for module in (apply_module, files_module):
        monkeypatch.setattr(module, "os", steps)
    with pytest.raises(PatchError, match="has changed since"):
        apply_plan(plan)
    assert "write" not in steps.steps
    assert snapshot(root) == before


def test_the_diff_of_a_turn_follows_no_link_that_was_planted_since(work: Path) -> None:
    plan = plan_of(work, lambda *_: None, "*** Update File: d/key", "@@", "-mine", "+yours")
    diff = TurnDiff(work)
    diff.note(plan)
    apply_plan(plan)
    assert "+yours" in diff.text()
    swap(work)
    assert SECRET not in diff.text()
    assert "deleted file mode 100644" in diff.text()


def test_the_diff_of_a_turn_shows_nothing_that_may_not_be_read(work: Path) -> None:
    plan = plan_of(work, lambda *_: None, "*** Update File: d/key", "@@", "-mine", "+yours")
    diff = TurnDiff(work)
    diff.note(plan)
    (work / "d/key").write_text(SECRET)
    text = diff.text(lambda _real, _status: "the sandbox hides it")
    assert SECRET not in text
    assert "Binary files a/d/key and b/d/key differ" in text


def test_a_path_through_more_folders_than_are_opened_is_one_clear_refusal(work: Path) -> None:
    deep = "a/" * 1500 + "f"
    with pytest.raises(PatchError, match=r"\.\.\. lies too deep \(in more than 256 folders\)"):
        plan_of(work, lambda *_: None, f"*** Add File: {deep}", "+x")
    assert not (work / "a").exists()
