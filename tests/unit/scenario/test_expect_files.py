"""Files that a scenario expects are compared to the byte, and the difference names the byte."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.scenario.expect_files import file_difference, mode_difference
from harness.scenario.workspace import EncodedFile, LinkedFile, WorkspaceFile, furnish_workspace

CRLF = "one\r\ntwo\r\n"


def message(path: Path, expected: str | EncodedFile | LinkedFile) -> str | None:
    """Return the message of the difference, None if there is none."""
    found = file_difference(path, path.name, expected)
    return None if found is None else found[0]


@pytest.mark.parametrize("content", [CRLF, "one\rtwo", "\ufeffone\n", "", "no end", "a\0b\n"])
def test_file_that_nobody_changed_is_as_expected(tmp_path: Path, content: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content.encode())
    assert message(path, content) is None


@pytest.mark.parametrize(
    ("expected", "content", "sentence"),
    [
        (CRLF, b"one\ntwo\n", "line 1, byte 3: expected"),
        ("one\ntwo\n", b"one\ntwo\r\n", "line 2, byte 7: expected"),
        ("\ufeffone\n", b"one\n", 'line 1, byte 0: expected "\\ufeffone\\n"'),
        ("one\n", b"\xef\xbb\xbfone\n", 'found "\\ufeffone\\n"'),
        ("one", b"one\n", 'line 1, byte 3: expected "one"; found "one\\n"'),
        ("caf\u00e9\n", b"caf\xe9\n", "byte 3: expected bytes 63 61 66 c3 a9 0a; found bytes 63"),
        ("a\rb", b"a\nb", 'byte 1: expected "a\\rb"; found "a\\nb"'),
    ],
)
def test_difference_names_its_byte(
    tmp_path: Path, expected: str, content: bytes, sentence: str
) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    assert sentence in (message(path, expected) or "no difference")


def test_lines_of_the_difference_show_line_endings(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"one\ntwo")
    found = file_difference(path, "notes.txt", CRLF)
    assert found is not None
    assert {"-one\\r", "+one", "-two\\r", "+two (no newline at the end)"} <= set(found[1])


def test_bytes_that_are_not_text_are_compared(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes(b"caf\xe9\n")
    assert message(path, EncodedFile(base64="Y2Fm6Qo=")) is None
    path.write_bytes(bytes(range(128, 168)))
    assert message(path, EncodedFile(base64="gIGCg4SFhg==")) == (
        "latin.txt: line 1, byte 7: expected …3 more… bytes 83 84 85 86; found …3 more… bytes "
        "83 84 85 86 87 88 89 8a 8b 8c 8d 8e 8f 90 91 92 …21 more…"
    )


def test_link_and_mode_of_a_file_are_compared(tmp_path: Path) -> None:
    files = {
        "run.sh": WorkspaceFile(b"true\n", mode=0o755),
        "link.sh": WorkspaceFile(link="run.sh"),
    }
    furnish_workspace(tmp_path, files)
    run, link = tmp_path / "run.sh", tmp_path / "link.sh"
    assert message(link, LinkedFile(link="run.sh")) is None
    assert message(link, "true\n") is None
    assert (
        message(link, LinkedFile(link="a")) == "link.sh is a link to run.sh; expected a link to a"
    )
    assert mode_difference(run, "run.sh", "755") is None
    run.chmod(0o644)
    assert mode_difference(run, "run.sh", "755") == "run.sh: mode: expected 755; found 644"
    os.remove(run)
    assert message(link, "absent") == "link.sh exists; expected absent; it is a link to run.sh"
    assert message(run, LinkedFile(link="a")) == "run.sh is absent; expected a link to a"
    link.unlink()
    link.write_text("true\n")
    assert message(link, LinkedFile(link="run.sh")) == (
        "link.sh is a file of its own; expected a link to run.sh"
    )
    assert "has no mode" in (mode_difference(run, "run.sh", "755") or "")
