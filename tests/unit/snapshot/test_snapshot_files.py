"""A snapshot's file: writing, reading, and errors for edited, merged or other files."""

from pathlib import Path

import pytest

from harness.report.snapshot.files import Snapshot, SnapshotError, format_snapshot, parse_snapshot
from harness.report.snapshot.folder import SnapshotFolder
from harness.report.snapshot.message import Message, Transcript
from tests.unit.snapshot.lines import ANSWER, ITEM, PLAN, START, STARTED, said

KEPT = Snapshot("turns/plain-turn", "reference", said(START, ANSWER, STARTED, ITEM))
TEXT = format_snapshot(KEPT)


def test_written_snapshots_are_read_back() -> None:
    odd = Transcript(
        (
            Message(True, {"method": "a"}, client=1),
            Message(False, "no json \u2028", client=1, is_garbled=True),
            Message(False, ["x"], client=2),
            Message(False, {"method": "b"}, client=2, any_number=True),
            Message(False, {"method": "c"}, client=2, any_number=True, any_place=True),
        ),
        "closed",
        free=True,
    )
    for transcript in (KEPT.transcript, odd, Transcript((), "exited")):
        one = Snapshot("my/own@exec", "spec", transcript)
        assert parse_snapshot(format_snapshot(one).encode()) == one


def test_a_file_has_one_message_a_line() -> None:
    lines = TEXT.splitlines()
    assert lines[0] == "# harness transcript, version 1"
    assert lines[4:8] == [START, ANSWER, STARTED, ITEM]
    assert lines[8] == "end: quiescent"


def problem(text: str) -> tuple[int, str]:
    with pytest.raises(SnapshotError) as caught:
        parse_snapshot(text.encode())
    return caught.value.line, caught.value.problem


def test_an_edit_by_hand_is_told_with_its_line() -> None:
    edited = TEXT.replace('"status": "inProgress"', '"status": "completed"')
    assert problem(edited) == (6, "edited by hand: it is not as it was kept")
    assert problem(TEXT.replace(f"{STARTED}\n", ""))[0] == 7
    assert problem(TEXT.replace(f"{STARTED}\n", f"{STARTED}\n{PLAN}\n"))[0] == 8
    assert problem(TEXT + "more\n")[1].startswith("cut off")
    assert problem(TEXT.rstrip("\n"))[1].startswith("edited by hand")


def test_a_checkout_with_cr_lf_is_read_as_it_was_written() -> None:
    assert parse_snapshot(TEXT.replace("\n", "\r\n").encode()) == KEPT
    edited = TEXT.replace('"status": "inProgress"', '"status": "completed"')
    assert problem(edited.replace("\n", "\r\n")) == problem(edited)


def test_git_is_told_to_leave_the_line_ends_and_a_users_own_file_is_kept(tmp_path: Path) -> None:
    attributes = tmp_path / "kept" / ".gitattributes"
    SnapshotFolder(tmp_path / "kept").prepare()
    assert attributes.read_text() == "*.transcript text eol=lf\n"
    attributes.write_text("* -text\n")
    SnapshotFolder(tmp_path / "kept").prepare()
    assert attributes.read_text() == "* -text\n"


def test_marks_of_a_merge_are_reported_as_such() -> None:
    line, why = problem(TEXT.replace(STARTED, f"<<<<<<< HEAD\n{STARTED}"))
    assert line == 7
    assert "merge" in why


def test_a_file_that_ends_too_early_is_told_as_that() -> None:
    for size in (40, len(TEXT) // 2, len(TEXT) - 30):
        line, why = problem(TEXT[:size])
        assert line > 0
        assert "cut off" in why or "edited" in why


def test_another_version_and_other_files_are_told_as_that() -> None:
    line, why = problem(TEXT.replace("version 1", "version 2", 1))
    assert (line, why.split(";")[0]) == (1, "a snapshot of version 2")
    assert "no snapshot" in problem("hello\n")[1]
    assert "no snapshot" in problem("")[1]
    with pytest.raises(SnapshotError, match="2: no UTF-8"):
        parse_snapshot(b"# harness transcript, version 1\n\xff\n")
