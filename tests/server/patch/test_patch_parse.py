"""Parsing of patches: tolerated deviations, and one clear error for each mistake."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_server.patch.parse import (
    AddFile,
    DeleteFile,
    Hunk,
    PatchError,
    UpdateFile,
    parse_patch,
)


def _patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


UPDATE = UpdateFile(2, "a", None, (Hunk(3, (), (("-", "x"), ("+", "y"))),))


def test_every_kind_of_section_is_read() -> None:
    patch = parse_patch(
        _patch(
            "*** Add File: new/a.txt",
            "+one",
            "+",
            "++two",
            "*** Delete File: old.txt",
            "*** Update File: b.py",
            "*** Move to: c.py",
            "@@ class A:",
            "@@ def f(self):",
            " keep",
            "-out",
            "+in",
            "@@",
            "+end",
            "*** End of File",
        )
    )
    assert patch.files == (
        AddFile(2, "new/a.txt", "one\n\n+two\n"),
        DeleteFile(6, "old.txt"),
        UpdateFile(
            7,
            "b.py",
            "c.py",
            (
                Hunk(9, ("class A:", "def f(self):"), ((" ", "keep"), ("-", "out"), ("+", "in"))),
                Hunk(14, (), (("+", "end"),), at_end=True),
            ),
        ),
    )


@pytest.mark.parametrize(
    "text",
    [
        "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch\n\n  \n",
        " *** Begin Patch \n*** Update File:   a  \n@@ \n-x\n+y\n *** End Patch ",
        "*** Begin Patch\r\n*** Update File: a\r\n@@\r\n-x\r\n+y\r\n*** End Patch\r\n",
        "*** Begin Patch\n  *** Update File: a\n@@\n-x\n+y\n*** End Patch",
    ],
    ids=["plain", "blank lines behind", "white space", "windows", "section indented"],
)
def test_white_space_around_is_forgiven(text: str) -> None:
    assert parse_patch(text).files == (UPDATE,)


def test_the_markers_of_a_heredoc_around_the_patch_are_forgiven() -> None:
    text = "<<'EOF'\n" + _patch("*** Update File: a", "@@", "-x", "+y") + "\nEOF\n"
    assert parse_patch(text).files == (
        UpdateFile(3, "a", None, (Hunk(4, (), UPDATE.hunks[0].lines),)),
    )


def test_the_first_hunk_needs_no_marker() -> None:
    [file] = parse_patch(_patch("*** Update File: a", "-x", "+y")).files
    assert file == UPDATE


def test_a_blank_line_in_a_hunk_is_context_and_at_its_end_it_may_be_a_gap() -> None:
    [file] = parse_patch(
        _patch("*** Update File: a", "@@", " x", "", "-y", "", "", "@@", "+z")
    ).files
    assert isinstance(file, UpdateFile)
    assert file.hunks == (
        Hunk(3, (), ((" ", "x"), (" ", ""), ("-", "y"), (" ", ""), (" ", "")), loose=2),
        Hunk(9, (), (("+", "z"),)),
    )


def test_a_blank_line_between_sections_is_a_gap() -> None:
    files = parse_patch(_patch("", "*** Add File: a", "+x", "", "*** Delete File: b", "")).files
    assert files == (AddFile(3, "a", "x\n"), DeleteFile(6, "b"))


def test_a_file_can_be_added_empty_and_moved_unchanged() -> None:
    files = parse_patch(_patch("*** Add File: a", "*** Update File: b", "*** Move to: c")).files
    assert files == (AddFile(2, "a", ""), UpdateFile(3, "b", "c", ()))


def test_content_that_looks_like_a_marker_is_content() -> None:
    files = parse_patch(_patch("*** Add File: a", "+*** End Patch", "+*** Delete File: b")).files
    assert files == (AddFile(2, "a", "*** End Patch\n*** Delete File: b\n"),)


def test_form_feeds_and_other_separators_do_not_end_a_line() -> None:
    files = parse_patch(_patch("*** Add File: a", "+x\fy\x0bz\u2028w\x85")).files
    assert files == (AddFile(2, "a", "x\fy\x0bz\u2028w\x85\n"),)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, r"the patch is empty; it begins with `\*\*\* Begin Patch`"),
        (" \n\n", None, "the patch is empty"),
        (
            "*** Update File: a\n",
            1,
            r"expected `\*\*\* Begin Patch`, found '\*\*\* Update File: a'",
        ),
        ("*** Begin Patch", 1, "is it cut off?"),
        ("*** Begin Patch\n*** Add File: a\n+x", 3, r"`\*\*\* End Patch` at the end, found '\+x'"),
        (_patch() + "\ndone", 3, "at the end, found 'done'"),
        (_patch(), 2, "the patch has no files"),
        (_patch("*** Rename File: a"), 2, "expected `.*Add File.*found '.*Rename"),
        (_patch("*** Add File:"), 2, "a path is missing"),
        (_patch("*** Update File: a", "*** Move to: "), 3, "a path is missing"),
        (_patch("*** Add File: a", "x"), 3, r"new file to begin with `\+`, found 'x'"),
        (_patch("*** Add File: a", "+x", "", "+y"), 4, r"empty line of a new file is written `\+`"),
        (_patch("*** Delete File: a", "-x"), 3, "expected `.*found '-x'"),
        (_patch("*** Update File: a"), 2, "the update of a has no hunks"),
        (_patch("*** Update File: a", "@@"), 3, "the hunk has no lines"),
        (_patch("*** Update File: a", "@@ x", "", "@@", "-x"), 3, "the hunk has no lines"),
        (
            _patch("*** Update File: a", "@@", "-x", "y"),
            5,
            "a line of a hunk to begin .* found 'y'",
        ),
        (_patch("*** Update File: a", "@@", "\ty"), 4, "a line of a hunk to begin"),
        (_patch("*** Update File: a", "@@x", "-y"), 3, "a space after `@@`"),
        (_patch("*** Update File: a", "@@ -1,2 +1,2 @@", "-y"), 3, "line numbers are not read"),
        (_patch("*** Update File: a", "-x", "*** Move to: b"), 4, "expected `.*found '.*Move to"),
        (_patch("*** Add File: a", "+x\ud800"), 3, "half of a surrogate pair"),
        (_patch("*** Add File: a\0b"), 2, "a path is missing|NUL"),
    ],
)
def test_a_mistake_is_one_error_with_its_line(text: str, line: int | None, words: str) -> None:
    with pytest.raises(PatchError, match=words) as caught:
        parse_patch(text)
    assert caught.value.line == line
    assert str(caught.value).startswith("" if line is None else f"line {line} of the patch: ")


_LINES = st.sampled_from(
    [
        "*** Begin Patch",
        "*** End Patch",
        "*** Add File: a",
        "*** Delete File: b",
        "*** Update File: c",
        "*** Move to: d",
        "*** End of File",
        "*** ",
        "@@",
        "@@ x",
        " x",
        "+x",
        "-x",
        "",
        "\r",
        "<<EOF",
        "EOF",
    ]
)


@settings(deadline=None)
@given(st.lists(_LINES | st.text(max_size=4), max_size=12), st.booleans())
def test_whatever_is_read_a_patch_or_a_patch_error_comes_of_it(
    lines: list[str], whole: bool
) -> None:
    text = _patch(*lines) if whole else "\n".join(lines)
    with contextlib.suppress(PatchError):
        assert parse_patch(text).files


@settings(deadline=None)
@given(st.text(st.characters(categories=["L", "Cs", "Cc"])))
def test_text_of_any_kind_does_not_break_the_reader(text: str) -> None:
    with pytest.raises(PatchError):
        parse_patch(text)
