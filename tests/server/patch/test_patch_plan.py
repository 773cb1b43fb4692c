"""Plan of a patch: the places of hunks, the text that is kept, and the errors.

Results marked "as the real tool" were seen with the real servers' own tool, 0.107.0 and 0.169.0.
"""

import os
import socket
import tempfile
from pathlib import Path

import pytest
from patch_trees import snapshot

from reference_server.patch import plan as plan_module
from reference_server.patch.files import MAX_BYTES
from reference_server.patch.parse import PatchError, parse_patch
from reference_server.patch.plan import Plan, make_plan


def _plan(cwd: Path, *lines: str) -> Plan:
    before = snapshot(cwd)
    try:
        return make_plan(parse_patch("\n".join(["*** Begin Patch", *lines, "*** End Patch"])), cwd)
    finally:
        assert snapshot(cwd) == before


def _updated(cwd: Path, content: str | bytes, *lines: str) -> bytes:
    """Return the content of a file after the hunks."""
    data = content if isinstance(content, bytes) else content.encode()
    (cwd / "f").write_bytes(data)
    [change] = _plan(cwd, "*** Update File: f", *lines).changes
    assert (change.kind, change.before) == ("update", data)
    assert change.after is not None
    return change.after


def _refusal(cwd: Path, *lines: str) -> str:
    with pytest.raises(PatchError) as caught:
        _plan(cwd, *lines)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "hunks", "after"),
    [
        ("a\nb\nc\n", ["@@", " a", "-b", "+B", " c"], "a\nB\nc\n"),
        ("a\nb\n", ["@@", "-a", "@@", "-b"], ""),
        ("a\nb\na\nb\n", ["@@", "-a", "+1", "@@", "-a", "+2"], "1\nb\n2\nb\n"),
        # As the real tool: what is looked for is behind the header's line.
        ("a\nb\na\nb\n", ["@@ a", "-a", "+c", "", "@@", "-b", "+d"], "a\nb\nc\nd\n"),
        ("x:\n1\ny:\n1\n", ["@@ y:", "-1", "+2"], "x:\n1\ny:\n2\n"),
        ("A\n f\nB\n f\n  x\n", ["@@ B", "@@  f", "-  x", "+  y"], "A\n f\nB\n f\n  y\n"),
        # Several hunks below one header's line each name it.
        ("f:\n1\n2\n", ["@@ f:", "-1", "+a", "@@ f:", "-2", "+b"], "f:\na\nb\n"),
        # The header's line is the hunk's first line as well.
        ("a\nf:\n1\n", ["@@ f:", " f:", "-1", "+2"], "a\nf:\n2\n"),
        ("a\n", ["@@", "+b"], "a\nb\n"),
        ("a\nb\n", ["@@ a", "+x"], "a\nx\nb\n"),
        ("a\nb\n", ["@@ a", "+x", "*** End of File"], "a\nb\nx\n"),
        ("", ["@@", "+b"], "b\n"),
        ("a\nb\na\nb\n", ["@@", "-a", " b", "+c", "*** End of File"], "a\nb\nb\nc\n"),
        # As the real tool: lines added at the end do not hold back the hunks behind them.
        ("a\nb\n", ["@@", "+x", "@@", "-a", "@@", "+y"], "b\nx\ny\n"),
        # As the real tool: only the end is looked at, wherever the header's line is.
        ("a\nb\n", ["@@ b", "-a", " b", "+c", "*** End of File"], "b\nc\n"),
        # A blank line at the end of a hunk: context where the file has it, else a gap.
        ("a\n\nb\n", ["@@", "-a", "+x", "", "@@", "-b", "+y"], "x\n\ny\n"),
        ("a\nb\n", ["@@", "-a", "+x", "", "@@", "-b", "+y"], "x\ny\n"),
        # As the real tool: context alone changes nothing.
        ("a\nb\n", ["@@", " a", " b"], "a\nb\n"),
    ],
)
def test_hunks_are_placed(tmp_path: Path, content: str, hunks: list[str], after: str) -> None:
    assert _updated(tmp_path, content, *hunks) == after.encode()


def test_the_exact_place_is_taken_before_one_that_differs_in_white_space(tmp_path: Path) -> None:
    content = "if x:\n\ty  = 1\n y = 1 \n  y = 1\nend\n"
    hunk = ["@@", "-  y = 1", "+z"]
    assert _updated(tmp_path, content, *hunk) == b"if x:\n\ty  = 1\n y = 1 \nz\nend\n"
    trailing = content.replace("  y = 1\n", "  y = 1\t\n")
    assert _updated(tmp_path, trailing, *hunk) == b"if x:\n\ty  = 1\n y = 1 \nz\nend\n"
    assert (
        _updated(tmp_path, content.replace("  y = 1\n", ""), *hunk) == b"if x:\nz\n y = 1 \nend\n"
    )


def test_context_found_without_its_white_space_stays_as_the_file_has_it(tmp_path: Path) -> None:
    assert _updated(tmp_path, "\ta \nb\n", "@@", " a", "-b", "+c") == b"\ta \nc\n"


@pytest.mark.parametrize(
    ("content", "hunks", "after"),
    [
        # 0.169.0 gives the added line the ending of the file as well; 0.107.0 does not.
        (b"a\r\nb\r\n", ["@@", "-a", "+x", "+y"], b"x\r\ny\r\nb\r\n"),
        (b"a\r\nb\r\n", ["@@", " a\r", "-b\r", "+x\r"], b"a\r\nx\r\n"),
        (b"a\r\nb\r\nc\n", ["@@", "-a", "+x"], b"x\r\nb\r\nc\n"),
        (b"a\nb\nc\r\n", ["@@", "-a", "+x"], b"x\nb\nc\r\n"),
        (b"a\nb", ["@@", "-a", "+x"], b"x\nb"),
        (b"a\nb", ["@@", "-b", "+x"], b"a\nx"),
        (b"a\nb", ["@@", " b", "+x"], b"a\nb\nx"),
        (b"a\r\nb", ["@@", " b", "+x"], b"a\r\nb\r\nx"),
        (b"a", ["@@", "-a"], b""),
        (b"\xef\xbb\xbfa\nb\n", ["@@", "-a", "+x"], b"\xef\xbb\xbfx\nb\n"),
        (b"a\rb\n", ["@@", "-a\rb", "+c\rd"], b"c\rd\n"),
        ("ä\x0c\u2028\nb\n".encode(), ["@@", "-b", "+ü"], "ä\x0c\u2028\nü\n".encode()),
    ],
    ids=[
        "CR LF",
        "CR LF in the patch too",
        "mostly CR LF",
        "mostly LF",
        "no newline at the end",
        "last line replaced",
        "line added behind it",
        "and with CR LF",
        "emptied",
        "byte order mark",
        "CR inside a line",
        "separators that end no line",
    ],
)
def test_how_lines_end_is_kept(
    tmp_path: Path, content: bytes, hunks: list[str], after: bytes
) -> None:
    assert _updated(tmp_path, content, *hunks) == after


def test_lines_that_are_not_there_are_shown(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\nb\nc\n")
    words = _refusal(tmp_path, "*** Update File: f", "@@", " a", "-x", "+y")
    assert words == (
        "line 3 of the patch: f: lines to change are not in it; read the file and copy its lines "
        "as they are:\n  a\n  x"
    )
    many = [f"-{at}" for at in range(50)]
    assert _refusal(tmp_path, "*** Update File: f", "@@", *many).endswith("\n  11\n  …")


def test_lines_that_are_elsewhere_are_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\nb\na\nb\nc\n")
    words = _refusal(tmp_path, "*** Update File: f", "@@", "-c", "@@", "-b")
    assert "line 5 of the patch: f: lines to change are at line 2, but not after line 5" in words
    # As the real tool: not at the end is not found.
    words = _refusal(tmp_path, "*** Update File: f", "@@", "-a", "+x", "*** End of File")
    assert "are not at its end (they are at line 1)" in words
    words = _refusal(tmp_path, "*** Update File: f", "@@ d", "-a")
    assert words == (
        "line 3 of the patch: f has no line 'd' for `@@`; copy it from the file, or write `@@` "
        "alone"
    )
    words = _refusal(tmp_path, "*** Update File: f", "@@", "-c", "@@ b", "+x")
    assert "line 5 of the patch: f: the line 'b' of `@@` is above the hunk before" in words


def test_the_plan_says_what_becomes_of_each_file_by_path(tmp_path: Path) -> None:
    (tmp_path / "upd").write_text("a\n")
    (tmp_path / "mv").write_text("m\n")
    (tmp_path / "mv").chmod(0o750)
    (tmp_path / "del").write_bytes(b"\xff\0")
    plan = _plan(
        tmp_path,
        "*** Add File: new/n",
        "+hello",
        "*** Update File: upd",
        "@@",
        "-a",
        "+b",
        "*** Update File: mv",
        "*** Move to: moved",
        "*** Delete File: del",
    )
    assert [
        (one.path, one.kind, one.moved_to, one.before, one.after, one.mode) for one in plan.changes
    ] == [
        (str(tmp_path / "del"), "delete", None, b"\xff\0", None, 0o644),
        (str(tmp_path / "mv"), "update", str(tmp_path / "moved"), b"m\n", b"m\n", 0o750),
        (str(tmp_path / "new/n"), "add", None, None, b"hello\n", None),
        (str(tmp_path / "upd"), "update", None, b"a\n", b"b\n", 0o644),
    ]
    assert plan.paths == [str(tmp_path / name) for name in ("del", "moved", "mv", "new/n", "upd")]
    assert plan.summary == (
        "Success. Updated the following files:\nA new/n\nM moved\nM upd\nD del\n"
    )


def test_a_file_added_over_another_replaces_it(tmp_path: Path) -> None:
    """The behaviour is that of the real tool."""
    (tmp_path / "f").write_bytes(b"old")
    [change] = _plan(tmp_path, "*** Add File: f", "+new").changes
    assert (change.kind, change.before, change.after) == ("add", b"old", b"new\n")


def test_a_move_to_its_own_place_is_none(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\n")
    [change] = _plan(tmp_path, "*** Update File: f", "*** Move to: ./x/../f", "@@", "-a").changes
    assert change.moved_to is None


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["*** Update File: none", "@@", "-a"], "line 2 .*none: does not exist.*use Add File"),
        (["*** Delete File: none"], "line 2 .*none: does not exist, so it cannot be deleted"),
        (["*** Delete File: file/x"], "file/x: does not exist"),
        (["*** Delete File: folder"], "folder: is a folder"),
        (["*** Add File: folder", "+x"], "folder: is a folder"),
        (["*** Add File: folder/"], "folder/ names a folder"),
        (["*** Add File: folder/.."], r"folder/\.\. names a folder"),
        (["*** Update File: .", "@@", "-a"], r"\. names a folder"),
        (["*** Add File: file/x/y", "+x"], "file/x/y: cannot be made: .*/file is a file"),
        (["*** Update File: link", "@@", "-a"], "link: is a symbolic link"),
        (["*** Delete File: link"], "link: is a symbolic link"),
        (["*** Add File: dangling", "+x"], "dangling: is a symbolic link"),
        (["*** Update File: loop/x", "@@", "-a"], "loop/x: "),
        (["*** Update File: binary", "@@", "-a"], "binary: is not UTF-8 text"),
        (["*** Update File: nul", "@@", "-a"], "nul: is not UTF-8 text"),
        (["*** Update File: pipe", "@@", "-a"], "pipe: is not a regular file"),
        (["*** Delete File: socket"], "socket: is not a regular file"),
        (["*** Delete File: huge"], r"huge: is too large for a patch \(more than 16 MiB\)"),
        (["*** Add File: " + "n" * 300], "File name too long"),
        (["*** Update File: file", "*** Move to: other"], "line 2 .*other: exists already"),
        (["*** Update File: file", "*** Move to: folder"], "folder: is a folder"),
        (["*** Update File: file", "*** Move to: link"], "link: is a symbolic link"),
        (["*** Update File: file", "*** Move to: file/x"], "file/x: cannot be made"),
        (["*** Delete File: file", "*** Add File: file/x"], "file/x: cannot be made"),
        (["*** Add File: n", "*** Add File: n/x"], "n and n/x cannot be in one patch"),
        (["*** Add File: n/x/y", "*** Add File: n"], "n and n/x/y cannot be in one patch"),
        (["*** Add File: n", "*** Add File: ./n"], "line 3 .*./n is named twice"),
        (["*** Delete File: file", "*** Delete File: in/file"], "line 3 .*in/file is named twice"),
        (
            ["*** Update File: file", "*** Move to: n", "*** Add File: n"],
            "line 4 .*n is named twice in the patch; put all hunks under one header",
        ),
    ],
)
def test_impossible_patches_are_refused(tmp_path: Path, lines: list[str], words: str) -> None:
    (tmp_path / "file").write_text("a\n")
    (tmp_path / "other").write_text("a\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "in").symlink_to(".")
    (tmp_path / "binary").write_bytes(b"a\n\xff\n")
    (tmp_path / "nul").write_bytes(b"a\n\0\n")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    patch = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as listener:
        # The path of a socket has to be short.
        listener.bind(f"{short}/socket")
        os.rename(f"{short}/socket", tmp_path / "socket")
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(PatchError, match=words):
            make_plan(parse_patch(patch), tmp_path)


def test_a_read_only_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder's permissions alone would allow it. Root may write every file: it is played."""
    (tmp_path / "f").write_text("a\n")

    def access(path: str, mode: int) -> bool:
        assert mode == os.W_OK
        return os.path.basename(path) != "f"

    monkeypatch.setattr(plan_module.os, "access", access)
    assert "f: is read-only" in _refusal(tmp_path, "*** Update File: f", "@@", "-a")
    assert "f: is read-only" in _refusal(tmp_path, "*** Add File: f", "+a")


def test_the_paths_are_those_that_links_and_dots_lead_to(tmp_path: Path) -> None:
    cwd, elsewhere = tmp_path / "cwd", tmp_path / "cwd-not"
    (cwd / "sub").mkdir(parents=True)
    elsewhere.mkdir()
    (cwd / "out").symlink_to(elsewhere)
    (cwd / "sub" / "home").symlink_to(cwd)
    (cwd / "f").write_text("a\n")
    plan = make_plan(
        parse_patch(
            "\n".join(
                [
                    "*** Begin Patch",
                    "*** Add File: sub/in",
                    "*** Add File: ../up",
                    "*** Add File: out/linked",
                    "*** Add File: out/../beside",
                    "*** Add File: sub/home/back",
                    f"*** Add File: {elsewhere}/absolute",
                    "*** Update File: f",
                    "*** Move to: out/gone",
                    "*** End Patch",
                ]
            )
        ),
        cwd,
    )
    out = [str(tmp_path / name) for name in ("beside", "up")]
    far = [str(elsewhere / name) for name in ("absolute", "gone", "linked")]
    inside = [str(cwd / name) for name in ("f", "sub/in", "back")]
    assert plan.paths == sorted([*out, *far, *inside])
    # A client is told of the path as it was named, unless that names another file.
    shown = {change.place.patch_path: change.path for change in plan.changes}
    assert shown["out/linked"] == str(cwd / "out" / "linked")
    assert shown["out/../beside"] == str(tmp_path / "beside")
    assert shown["../up"] == str(tmp_path / "up")
