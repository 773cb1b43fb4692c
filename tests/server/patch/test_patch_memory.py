"""Memory that the largest patches take, measured in processes of their own."""

from pathlib import Path

import pytest
from peaks import peak_of

from reference_server.patch.files import MAX_BYTES
from reference_server.patch.match import MAX_TEXT_BYTES, MAX_TEXT_LINES
from reference_server.patch.parse import MAX_PATCH_CHARACTERS, PatchError, parse_patch
from reference_server.patch.plan import make_plan
from tests.sampling import one_in

pytestmark = [pytest.mark.slow, pytest.mark.socket]
MAX_MIB = 300
"""MiB beyond what a process has that has imported the same and done nothing."""

MAKING = """
from pathlib import Path
from harness.protocol.wire.item import FileChangeItem
from reference_server.patch.apply import apply_plan
from reference_server.patch.diff import TurnDiff, file_changes
from reference_server.patch.parse import PatchError, parse_patch
from reference_server.patch.plan import make_plan

begin()
text, cwd = Path(sys.argv[1]).read_text(), sys.argv[2]
diff = TurnDiff(cwd)
try:
    plan = make_plan(parse_patch(text), cwd)
except PatchError:
    how = "refused"
else:
    FileChangeItem(id="i", changes=file_changes(plan), status="inProgress").encode()
    diff.note(plan)
    apply_plan(plan)
    diff.text()
    how = "made"
end(how)
"""


def measured(tmp_path: Path, *lines: str) -> tuple[str, int]:
    """Return the outcome of a patch, and its peak memory in MiB."""
    patch = tmp_path / "patch"
    patch.write_text("\n".join(["*** Begin Patch", *lines, "*** End Patch"]))
    [how], peak = peak_of(MAKING, str(patch), str(tmp_path / "work"))
    return how, peak


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (folder := tmp_path / "work").mkdir()
    return folder


def test_deleting_all_that_one_patch_may(tmp_path: Path, work: Path) -> None:
    for name in ("a", "b"):
        (work / name).write_bytes("😀\n".encode() * (MAX_BYTES // 5))
    how, peak = measured(tmp_path, "*** Delete File: a", "*** Delete File: b")
    assert (how, list(work.iterdir())) == ("made", [])
    assert peak < MAX_MIB


def test_more_files_than_that_are_refused(tmp_path: Path, work: Path) -> None:
    for name in ("a", "b", "c"):
        (work / name).write_bytes(bytes(MAX_BYTES - 1))
    lines = [f"*** Delete File: {name}" for name in ("a", "b", "c")]
    patch = parse_patch("\n".join(["*** Begin Patch", *lines, "*** End Patch"]))
    with pytest.raises(PatchError, match="more than 32 MiB, before and after"):
        make_plan(patch, work)


# Made when they are needed: every worker imports this.
TEXTS = {
    "blank lines": lambda: b"\n" * MAX_TEXT_LINES,
    "short lines": lambda: b"".join(b"%06x\n" % at for at in range(MAX_TEXT_BYTES // 7)),
    "one line": lambda: b"x" * (MAX_TEXT_BYTES - 1) + b"\n",
    "wide characters": lambda: "😀y\n".encode() * (MAX_TEXT_BYTES // 6),
}


@pytest.mark.parametrize("text", one_in(len(TEXTS), TEXTS, pytest.mark.attacks))
def test_changing_both_ends_of_the_longest_texts(tmp_path: Path, work: Path, text: str) -> None:
    (work / "a").write_bytes(b"first\n" + TEXTS[text]()[:-12] + b"\nlast\n")
    hunks = ["@@", "-first", "+FIRST", "@@", "-last", "+LAST"]
    how, peak = measured(tmp_path, "*** Update File: a", *hunks)
    assert how == "made"
    assert peak < MAX_MIB


@pytest.mark.parametrize("text", one_in(len(TEXTS), TEXTS, pytest.mark.attacks))
def test_looking_in_vain_in_the_longest_texts(tmp_path: Path, work: Path, text: str) -> None:
    (work / "a").write_bytes(TEXTS[text]())
    how, peak = measured(tmp_path, "*** Update File: a", "@@", "-" + "nothing", "+b")
    assert how == "refused"
    assert peak < MAX_MIB


@pytest.mark.parametrize("line", one_in(3, ["+x", "+", "+é😀"], pytest.mark.attacks))
def test_the_longest_patches(tmp_path: Path, work: Path, line: str) -> None:
    count = (MAX_PATCH_CHARACTERS - 200) // (len(line) + 1)
    (work / "a").write_text("a\n")
    added = [line] * count
    how, peak = measured(tmp_path, "*** Update File: a", "@@", "-a", *added)
    assert how == "made"
    assert (work / "a").read_text().count("\n") == count
    assert peak < MAX_MIB


def test_a_patch_longer_than_that_is_refused() -> None:
    with pytest.raises(PatchError, match="longer than 2 MiB"):
        parse_patch("*" * (MAX_PATCH_CHARACTERS + 1))
