"""Files that their user makes or saves while a patch is made: none of them is lost."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from patch_trees import files
from test_patch_apply import Faults

from reference_server.patch import apply as apply_module
from reference_server.patch import files as files_module
from reference_server.patch.apply import PartlyApplied, apply_plan
from reference_server.patch.parse import PatchError, parse_patch
from reference_server.patch.plan import Plan, make_plan

PATCH = """*** Begin Patch
*** Add File: a-first
+x
*** Add File: new
+x
*** Update File: changed
@@
-old
+new
*** Delete File: deleted
*** End Patch"""
MINE = "the user's work\n"
Disk = Callable[[Callable[[str], None], bool], None]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (root := tmp_path / "t").mkdir()
    for name in ("changed", "deleted"):
        (root / name).write_text("old\n")
    return root


def plan_of(root: Path) -> Plan:
    return make_plan(parse_patch(PATCH), root)


def written(path: Path) -> None:
    """Save a file as some editors do."""
    path.write_text(MINE)


def renamed(path: Path) -> None:
    """Save a file as others do."""
    (other := path.with_name("editors-own")).write_text(MINE)
    other.replace(path)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """A disk, with links or without, on which something happens at certain steps."""

    def install(happens: Callable[[str], None], links: bool) -> None:
        def failing(_at: int, name: str) -> BaseException | None:
            try:
                happens(name)
            except OSError as error:
                return error
            return OSError(errno.EPERM, "no links") if name == "link" and not links else None

        for module in (apply_module, files_module):
            monkeypatch.setattr(module, "os", Faults(failing))

    return install


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
@pytest.mark.parametrize("save", [written, renamed])
@pytest.mark.parametrize("name", ["new", "changed", "deleted"])
def test_a_file_saved_while_a_patch_is_applied_stays_and_the_patch_fails(
    root: Path, disk: Disk, save: Callable[[Path], None], name: str, links: bool
) -> None:
    plan = plan_of(root)
    before = files(root)
    saved: list[str] = []

    def happens(step: str) -> None:
        # All is checked, and the first file is put into place.
        if step == "link" and not saved:
            saved.append(name)
            save(root / name)

    disk(happens, links)
    with pytest.raises(PatchError, match=f"{name} has changed since .* nothing was changed"):
        apply_plan(plan)
    assert saved
    assert files(root) == {**before, name: (MINE.encode(), (root / name).stat().st_mode & 0o777)}


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
@pytest.mark.parametrize("save", [written, renamed])
@pytest.mark.parametrize("name", ["new", "changed", "deleted"])
def test_the_way_back_overwrites_nothing_that_was_saved_since(
    root: Path, disk: Disk, save: Callable[[Path], None], name: str, links: bool
) -> None:
    plan = plan_of(root)
    saved: list[str] = []

    def happens(step: str) -> None:
        # All is in place, and the first old file cannot be removed.
        in_place = (root / "new").exists() and not (root / "deleted").exists()
        if step == "unlink" and in_place and not saved:
            saved.append(name)
            save(root / name)
            raise OSError(errno.EIO, "Input/output error")

    disk(happens, links)
    with pytest.raises(PartlyApplied, match="somebody has made or changed it since") as caught:
        apply_plan(plan)
    assert (root / name).read_text() == MINE
    others = {one: text for one, (text, _) in files(root).items() if one != name}
    kept = {one: text for one, text in others.items() if one.startswith(".patch-")}
    assert {**others, **dict.fromkeys(["changed", "deleted"], b"old\n")} == {
        **kept,
        "changed": b"old\n",
        "deleted": b"old\n",
    }
    # The content before the patch lies where the words say.
    assert len(kept) == (0 if name == "new" else 1)
    assert all(one in str(caught.value) and text == b"old\n" for one, text in kept.items())


def test_a_new_file_is_private_to_its_name_where_there_are_no_links(root: Path, disk: Disk) -> None:
    """Nobody can write into the empty file that keeps its name for a moment."""
    seen: list[int] = []

    def happens(step: str) -> None:
        if step == "replace" and (root / "new").exists():
            seen.append(os.stat(root / "new").st_mode & 0o777)

    disk(happens, False)
    apply_plan(plan_of(root))
    assert seen[0] == 0
    assert (root / "new").stat().st_mode & 0o777
