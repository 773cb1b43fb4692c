"""The changes of a fileChange item, and the diff of a turn in words."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from reference_server.patch.apply import apply_plan
from reference_server.patch.diff import TurnDiff, file_changes
from reference_server.patch.parse import parse_patch
from reference_server.patch.plan import Plan, make_plan
from reference_server.patch.unified import unified_hunks

RECORDED = Path(__file__).parents[3] / "fixtures/traces/real-0.107.0/patch_multi.jsonl"
# The hash that git has for no content, and for "hello\n" and "bye\n" (also in the recording).
EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
HELLO = "ce013625030ba8dba906f756967f9e9ca394464a"
BYE = "b023018cabc396e7692c70bbf5784a93d3f738ab"
NONE = "0" * 40


def _plan(cwd: Path, *lines: str) -> Plan:
    return make_plan(parse_patch("\n".join(["*** Begin Patch", *lines, "*** End Patch"])), cwd)


def _applied(diff: TurnDiff, cwd: Path, *lines: str) -> str:
    plan = _plan(cwd, *lines)
    diff.note(plan)
    apply_plan(plan)
    return diff.text()


def _multi(cwd: Path) -> Plan:
    """The tree and the patch of the recording."""
    (cwd / "del.txt").write_text("bye\n")
    (cwd / "mv.txt").write_text("m\n")
    (cwd / "upd.txt").write_text("one\ntwo\nthree\n")
    return _plan(
        cwd,
        "*** Add File: new.txt",
        "+hello",
        "*** Update File: upd.txt",
        "@@",
        " one",
        "-two",
        "+TWO",
        " three",
        "*** Update File: mv.txt",
        "*** Move to: moved.txt",
        "@@",
        "-m",
        "+M",
        "*** Delete File: del.txt",
    )


def _recorded(method: str, cwd: Path) -> list[dict[str, Any]]:
    text = RECORDED.read_text()
    frames = [json.loads(line.replace("/srv/run/cwd", str(cwd))) for line in text.splitlines()]
    messages = [frame["msg"] for frame in frames if "msg" in frame]
    return [one["params"] for one in messages if one.get("method") == method]


def test_the_changes_of_an_item_are_those_of_the_real_server(tmp_path: Path) -> None:
    items = [params["item"] for params in _recorded("item/completed", tmp_path)]
    [real] = [item["changes"] for item in items if item["type"] == "fileChange"]
    changes = file_changes(_multi(tmp_path))
    assert [one.model_dump(by_alias=True, mode="json") for one in changes] == real


def test_the_diff_of_a_turn_is_the_real_servers_but_for_paths_modes_and_moves(
    tmp_path: Path,
) -> None:
    real = _recorded("turn/diff/updated", tmp_path)[-1]["diff"].replace(f"/{tmp_path}/", "/")
    plan = _multi(tmp_path)
    diff = TurnDiff(tmp_path)
    diff.note(plan)
    assert diff.text() == ""
    apply_plan(plan)
    text = diff.text()

    def sections(whole: str) -> dict[str, str]:
        parts = whole.split("diff --git ")[1:]
        return {part.split(" ")[0]: part for part in parts}

    ours, theirs = sections(text), sections(real)
    assert ours["a/del.txt"] == theirs["a/del.txt"]
    assert ours["a/new.txt"] == theirs["a/new.txt"]
    # git says the mode that stays.
    assert ours["a/upd.txt"].replace(" 100644\n", "\n") == theirs["a/upd.txt"]
    # `b/moved.txt` under `a/mv.txt` is no diff that git reads; here: one file less, one more.
    assert set(ours) - set(theirs) == {"a/moved.txt"}
    assert "deleted file mode 100644" in ours["a/mv.txt"]
    assert "new file mode 100644" in ours["a/moved.txt"]


def test_a_move_without_a_change_and_a_binary_file_have_a_diff_too(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff\0")
    (tmp_path / "b").write_bytes(b"x\xff")
    moved, deleted = file_changes(
        _plan(tmp_path, "*** Update File: a", "*** Move to: c", "*** Delete File: b")
    )
    assert moved.diff == f"\n\nMoved to: {tmp_path}/c"
    assert deleted.diff == "x\ufffd"


@pytest.mark.parametrize(
    ("before", "after", "hunks"),
    [
        ("a\n", "a\n", ""),
        ("", "a\n", "@@ -0,0 +1 @@\n+a\n"),
        ("a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n"),
        ("a\n", "a", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n"),
        (
            "a\nb",
            "A\nb",
            "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n",
        ),
        ("x\fy\nz\r\n", "x\fy\nz\n", "@@ -1,2 +1,2 @@\n x\fy\n-z\r\n+z\n"),
    ],
)
def test_hunks_are_written_as_diff_writes_them(before: str, after: str, hunks: str) -> None:
    assert unified_hunks(before, after) == hunks


def test_changes_far_apart_are_hunks_of_their_own() -> None:
    old = [f"{at}\n" for at in range(1, 31)]
    new = [*old]
    new[4:5] = ["five\n"]
    new[10:11] = []
    new[24:24] = ["more\n", "and more\n"]
    assert unified_hunks("".join(old), "".join(new)) == (
        "@@ -2,13 +2,12 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n 10\n-11\n 12\n 13\n 14\n"
        "@@ -23,6 +22,8 @@\n 23\n 24\n 25\n+more\n+and more\n 26\n 27\n 28\n"
    )


def test_a_difference_in_a_large_file_is_one_hunk() -> None:
    head, tail = "h\n" * 10, "t\n" * 10
    old = "".join(f"old {at}\n" if at % 2 else "same\n" for at in range(5000))
    new = "".join(f"new {at}\n" if at % 2 else "same\n" for at in range(5000))
    hunks = unified_hunks(head + "-\n" + old + tail, head + "+\n" + new + "+\n" + tail)
    assert hunks.startswith("@@ -8,5007 +8,5008 @@\n h\n h\n h\n--\n-same\n-old 1\n")
    assert hunks.endswith("+same\n+new 4999\n++\n t\n t\n t\n")
    assert hunks.count("@@ -") == 1


def test_the_turns_diff_is_between_its_start_and_the_disk_now(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("1\n")
    diff = TurnDiff(tmp_path)
    assert diff.text() == ""
    text = _applied(diff, tmp_path, "*** Add File: a", "+hello", "*** Add File: e")
    assert text == (
        "diff --git a/a b/a\nnew file mode 100644\n"
        f"index {NONE}..{HELLO}\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+hello\n"
        f"diff --git a/e b/e\nnew file mode 100644\nindex {NONE}..{EMPTY}\n"
    )
    text = _applied(diff, tmp_path, "*** Delete File: e", "*** Update File: b", "@@", "-1", "+2")
    text = _applied(diff, tmp_path, "*** Update File: b", "@@", "-2", "+3")
    assert "diff --git a/e" not in text
    assert text.endswith(" 100644\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-1\n+3\n")
    # What a command did to the file since is in it; what it did to others is not.
    (tmp_path / "b").write_text("4\n")
    (tmp_path / "c").write_text("by a command\n")
    assert diff.text().endswith("@@ -1 +1 @@\n-1\n+4\n")
    text = _applied(diff, tmp_path, "*** Delete File: a", "*** Update File: b", "@@", "-4", "+1")
    assert text == ""


def test_a_deleted_file_and_changed_permissions_are_told_as_git_does(tmp_path: Path) -> None:
    for name in ("bye", "run", "both"):
        (tmp_path / name).write_text("bye\n")
    (tmp_path / "bye").chmod(0o755)
    diff = TurnDiff(tmp_path)
    diff.note(_plan(tmp_path, "*** Update File: run", "@@", " bye", "*** Delete File: bye"))
    diff.note(_plan(tmp_path, "*** Update File: both", "@@", " bye"))
    (tmp_path / "bye").unlink()
    (tmp_path / "run").chmod(0o700)
    (tmp_path / "both").chmod(0o755)
    (tmp_path / "both").write_text("hello\n")
    assert diff.text() == (
        "diff --git a/both b/both\nold mode 100644\nnew mode 100755\n"
        f"index {BYE}..{HELLO}\n--- a/both\n+++ b/both\n@@ -1 +1 @@\n-bye\n+hello\n"
        "diff --git a/bye b/bye\ndeleted file mode 100755\n"
        f"index {BYE}..{NONE}\n--- a/bye\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n"
        "diff --git a/run b/run\nold mode 100644\nnew mode 100755\n"
    )


def test_binary_files_differ(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\0")
    (tmp_path / "b").write_bytes(b"hello\n")
    diff = TurnDiff(tmp_path)
    text = _applied(diff, tmp_path, "*** Delete File: a", "*** Add File: b", "+\0")
    lines = text.splitlines()
    assert "Binary files a/a and /dev/null differ" in lines
    assert "Binary files a/b and b/b differ" in lines
    assert not [line for line in lines if line.startswith(("@@", "---"))]


def test_missing_files_are_shown_as_gone_and_unreadable_ones_as_binary(
    tmp_path: Path,
) -> None:
    for name in ("folder", "link", "pipe"):
        (tmp_path / name).write_text("bye\n")
    diff = TurnDiff(tmp_path)
    diff.note(_plan(tmp_path, *(f"*** Delete File: {name}" for name in ("folder", "link", "pipe"))))
    for name in ("folder", "link", "pipe"):
        (tmp_path / name).unlink()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    os.mkfifo(tmp_path / "pipe")
    text = diff.text()
    assert text.count("deleted file mode 100644") == 2
    assert text.endswith("Binary files a/pipe and b/pipe differ\n")


def test_paths_are_relative_below_the_folder_of_the_turn_and_absolute_elsewhere(
    tmp_path: Path,
) -> None:
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    (tmp_path / "link").symlink_to(cwd)
    diff = TurnDiff(tmp_path / "link")
    text = _applied(diff, cwd, "*** Add File: sub/a b", "+x", "*** Add File: ../cwd-not", "+x")
    assert [line for line in text.splitlines() if line.startswith(("diff", "+++"))] == [
        f"diff --git a/{tmp_path}/cwd-not b/{tmp_path}/cwd-not",
        f"+++ b/{tmp_path}/cwd-not",
        "diff --git a/sub/a b b/sub/a b",
        "+++ b/sub/a b\t",
    ]
