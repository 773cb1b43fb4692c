"""Review of pending snapshots: its output, and the effect of each key."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from harness.errors import UsageError
from harness.report.snapshot.files import Snapshot, format_snapshot
from harness.report.snapshot.folder import SnapshotFolder, State
from harness.report.snapshot.message import Transcript
from harness.report.snapshot.review import Review, describe_snapshot
from harness.report.snapshot.summary import format_code, markdown
from tests.unit.snapshot.lines import ANSWER, COMPLETED, ITEM, PLAN, START, STARTED, said

PLAIN = said(START, ANSWER, STARTED, COMPLETED)
MORE = said(START, ANSWER, STARTED, PLAN, COMPLETED)
TWO_TURNS = said(START, STARTED, COMPLETED, STARTED, COMPLETED)
TWO_PLANS = said(START, STARTED, PLAN, COMPLETED, STARTED, PLAN, COMPLETED)


@pytest.fixture
def folder(tmp_path: Path) -> SnapshotFolder:
    folder = SnapshotFolder(tmp_path / "kept")
    folder.prepare()
    return folder


def keep(
    folder: SnapshotFolder, name: str, before: Transcript | None, after: Transcript | None
) -> None:
    if before is not None:
        folder.keep_pending(Snapshot(name, "spec", before))
        folder.accept(next(one for one in folder.waiting_snapshots() if one.scenario == name))
    if after is not None:
        folder.keep_pending(Snapshot(name, "spec", after))


def states(folder: SnapshotFolder) -> dict[str, State]:
    return {one.scenario: one.state for one in folder.waiting_snapshots()}


def reviewed(folder: SnapshotFolder, keys: str, width: int = 120) -> tuple[str, str]:
    """Return the last line of a review with these keys, and its output."""
    console = Console(record=True, width=width, highlight=False, markup=False, quiet=False)
    given: Iterator[str] = iter(keys)
    review = Review(folder, lambda: next(given, ""), console)
    done = review.run(folder.waiting_snapshots())
    return done, console.export_text()


def test_each_key_does_what_the_help_says(folder: SnapshotFolder) -> None:
    for name in ("a", "b", "c", "d"):
        keep(folder, name, PLAIN, MORE)
    done, shown = reviewed(folder, "?dars")
    assert done == "1 accepted, 1 rejected, 2 left waiting"
    assert set(states(folder)) == {"c", "d"}
    assert folder.load_accepted("spec", "a") == Snapshot("a", "spec", MORE)
    assert folder.load_accepted("spec", "b") == Snapshot("b", "spec", PLAIN)
    assert "1 of 4: changed spec/a" in shown
    assert "one message more: turn/plan/updated after turn/started" in shown
    assert "q  quit: the rest goes on waiting" in shown


def test_the_end_of_the_input_and_q_leave_the_rest_waiting(folder: SnapshotFolder) -> None:
    keep(folder, "a", PLAIN, MORE)
    keep(folder, "b", PLAIN, MORE)
    for keys in ("q", "", "\x03", "xyz"):
        assert reviewed(folder, keys)[0] == "2 left waiting"
    assert len(states(folder)) == 2


def test_changes_with_one_meaning_are_accepted_with_one_key(folder: SnapshotFolder) -> None:
    keep(folder, "a", PLAIN, MORE)
    keep(folder, "b", PLAIN, said(START, ANSWER, COMPLETED))
    keep(folder, "c", TWO_TURNS, TWO_PLANS)
    done, shown = reviewed(folder, "As")
    assert "2 messages more" not in shown
    assert done == "2 accepted, 1 left waiting"
    assert states(folder) == {"b": State.CHANGED}


@pytest.mark.parametrize(("width", "beside"), [(120, True), (80, False)])
def test_both_sides_stand_beside_each_other_where_there_is_room(
    folder: SnapshotFolder, width: int, beside: bool
) -> None:
    keep(folder, "a", PLAIN, said(START, ANSWER, STARTED, COMPLETED.replace("completed", "ended")))
    keep(folder, "a", None, said(START, ANSWER, STARTED, COMPLETED.replace('d"}', 'd", "x": 1}')))
    _, shown = reviewed(folder, "q", width)
    lines = [line for line in shown.splitlines() if '"status": "completed"' in line]
    assert any(line.count('"status"') == 2 for line in lines) is beside
    assert ("accepted" in shown and " now" in shown) is beside


def test_text_of_a_server_does_not_act_on_the_terminal(folder: SnapshotFolder) -> None:
    evil = '<- {"method": "\\u001b[2J[red]", "params": {"a\\u001bb": "[/bold]\\u009b"}}'
    keep(folder, "a", PLAIN, said(START, ANSWER, evil, COMPLETED))
    _, shown = reviewed(folder, "dq")
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert "\\u001b[2J[red]" in shown


def test_a_new_one_is_shown_by_the_beginnings_of_its_messages(folder: SnapshotFolder) -> None:
    keep(folder, "a", None, PLAIN)
    _, shown = reviewed(folder, "r", 60)
    assert "a new transcript of 4 messages" in shown
    assert all(len(line) <= 60 for line in shown.splitlines())
    assert states(folder) == {}


def test_an_unused_one_is_removed_by_accepting_that(folder: SnapshotFolder) -> None:
    keep(folder, "gone", PLAIN, None)
    folder.note_unused("spec", "gone", "no scenario has this id any more")
    assert states(folder) == {"gone": State.UNUSED}
    done, shown = reviewed(folder, "a")
    assert "no whole run plays it: no scenario has this id any more" in shown
    assert done == "1 removed"
    assert folder.accepted_names() == []


def test_one_that_was_played_again_is_unused_no_more(folder: SnapshotFolder) -> None:
    keep(folder, "a", PLAIN, None)
    folder.note_unused("spec", "a", "why")
    folder.forget_pending("spec", "a")
    assert states(folder) == {}


def test_unreadable_snapshots_are_reported_and_not_accepted(folder: SnapshotFolder) -> None:
    keep(folder, "a", PLAIN, MORE)
    file = folder.pending_file("spec", "a")
    file.write_bytes(file.read_bytes()[:200])
    (one,) = folder.waiting_snapshots()
    assert one.state is State.DAMAGED
    assert describe_snapshot(one)[0].startswith(f"{file}:")
    done, shown = reviewed(folder, "ar")
    assert "nothing can be accepted" in shown
    assert done == "1 rejected"
    assert folder.load_accepted("spec", "a") == Snapshot("a", "spec", PLAIN)


def test_an_edited_one_is_repaired_by_accepting_what_was_played(folder: SnapshotFolder) -> None:
    keep(folder, "a", PLAIN, MORE)
    file = folder.accepted_file("spec", "a")
    file.write_text(
        format_snapshot(Snapshot("a", "spec", PLAIN)).replace("inProgress", "done"), "utf-8"
    )
    (one,) = folder.waiting_snapshots()
    assert describe_snapshot(one) == [f"{file}:6: edited by hand: it is not as it was kept"]
    assert reviewed(folder, "a")[0] == "1 accepted"
    assert folder.load_accepted("spec", "a") == Snapshot("a", "spec", MORE)


def test_a_full_disk_leaves_the_accepted_one_whole(
    folder: SnapshotFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(folder, "a", PLAIN, MORE)

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left") as caught:
        folder.accept(folder.waiting_snapshots()[0])
    assert caught.value.filename == str(folder.accepted_file("spec", "a"))
    assert folder.load_accepted("spec", "a") == Snapshot("a", "spec", PLAIN)
    assert states(folder) == {"a": State.CHANGED}


def test_a_folder_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot be written"):
        SnapshotFolder(tmp_path / "file").prepare()


def test_the_markdown_shows_what_changed_and_is_no_markdown_of_the_server(
    folder: SnapshotFolder,
) -> None:
    evil = '<- {"method": "x`|``` @me <b>", "params": {"a": "```\\n</details>"}}'
    keep(folder, "a", PLAIN, said(START, ANSWER, STARTED, evil, ITEM, COMPLETED))
    keep(folder, "b", None, PLAIN)
    lines = list(markdown(folder.waiting_snapshots(), 1))
    assert lines[2] == "1 new, 1 changed, of 1 accepted."
    assert "| `spec/b` | `a new transcript of 4 messages` |" in lines
    (row,) = [line for line in lines if line.startswith("| `spec/a`")]
    assert row.count("|") - row.count("\\|") == 3
    fence = next(line for line in lines if line.endswith("diff"))
    assert fence == "````diff"
    assert lines.count("</details>") == 1


def test_nothing_that_waits_is_told_as_that(folder: SnapshotFolder) -> None:
    assert "Nothing waits for review: 3 snapshot(s)" in "\n".join(markdown([], 3))
    assert format_code("a`b") == "``a`b``"
    assert format_code("`a`") == "`` `a` ``"
