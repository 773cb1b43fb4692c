"""Attributes of a file that a patch replaces or moves: those that stay, and those that go."""

import os
import stat
import struct
import sys
from pathlib import Path

import pytest

from reference_server.patch.apply import apply_plan
from reference_server.patch.parse import parse_patch
from reference_server.patch.plan import make_plan

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="attributes are Linux's")

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
NOBODY = 65534


def access_list(*, user: int) -> bytes:
    """A list that lets one more user read; the format is the kernel's."""
    nobody = 0xFFFFFFFF
    entries = [(0x01, 6, nobody), (0x02, 4, user), (0x04, 4, nobody), (0x10, 4, nobody)]
    entries.append((0x20, 0, nobody))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "f"
    path.write_text("a\n")
    path.chmod(0o640)
    os.setxattr(path, "user.origin", b"elsewhere")
    return path


def patched(folder: Path, *lines: str) -> None:
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
    apply_plan(make_plan(parse_patch(text), folder))


UPDATE = ("*** Update File: f", "@@", "-a", "+b")


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (UPDATE, "f"),
        (("*** Add File: f", "+b"), "f"),
        (("*** Update File: f", "*** Move to: new/g", "@@", "-a", "+b"), "new/g"),
    ],
    ids=["update", "add over it", "move"],
)
def test_attributes_and_access_lists_go_along(file: Path, lines: tuple[str, ...], name) -> None:
    os.setxattr(file, ACCESS, access_list(user=NOBODY))
    mode = file.stat().st_mode
    patched(file.parent, *lines)
    there = file.parent / name
    assert there.read_text() == "b\n"
    assert os.getxattr(there, "user.origin") == b"elsewhere"
    assert os.getxattr(there, ACCESS) == access_list(user=NOBODY)
    assert there.stat().st_mode == mode


def test_a_file_does_not_get_the_access_list_of_its_folder_by_being_changed(file: Path) -> None:
    os.setxattr(file.parent, DEFAULT, access_list(user=NOBODY))
    patched(file.parent, *UPDATE)
    assert file.read_text() == "b\n"
    assert ACCESS not in os.listxattr(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.parametrize("bits", [stat.S_ISUID, stat.S_ISGID, stat.S_ISUID | stat.S_ISGID])
def test_a_changed_program_no_longer_runs_as_its_owner(file: Path, bits: int) -> None:
    file.chmod(0o755 | bits)
    patched(file.parent, *UPDATE)
    assert stat.S_IMODE(file.stat().st_mode) == 0o755
