"""`harness snapshots`: a changed transcript is reviewed, in a terminal and without one."""

import re
from pathlib import Path

import pytest
from in_terminal import in_terminal
from kept_snapshots import SCENARIO, Project

from harness.report.snapshot.files import Snapshot, parse_snapshot
from harness.report.snapshot.folder import SnapshotFolder
from harness.report.snapshot.message import Transcript
from tests.unit.snapshot.lines import ANSWER, COMPLETED, PLAN, START, STARTED, said

pytestmark = [pytest.mark.slow, pytest.mark.socket]

PLAIN = said(START, ANSWER, STARTED, COMPLETED)
MORE = said(START, ANSWER, STARTED, PLAN, COMPLETED)
LOST = said(START, ANSWER, COMPLETED)
MEANING = "one message more: turn/plan/updated after turn/started"
REVIEW = ("snapshots", "review", "kept")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A folder in which two scenarios changed and one is new."""
    own = Project(tmp_path)
    folder = SnapshotFolder(own.snapshots)
    folder.prepare()
    for name, before, after in (
        (SCENARIO, PLAIN, MORE),
        ("turns/usage", PLAIN, LOST),
        ("turns/new", None, PLAIN),
    ):
        for transcript in filter(None, (before, after)):
            folder.keep_pending(Snapshot(name, "spec", transcript))
            if transcript is before:
                folder.accept(folder.waiting_snapshots()[-1])
    return own


def kept(project: Project, scenario: str = SCENARIO) -> Transcript:
    return parse_snapshot(project.accepted(scenario).read_bytes()).transcript


def test_a_review_in_a_terminal_accepts_rejects_and_skips(project: Project) -> None:
    with in_terminal(*REVIEW, cwd=project.path) as terminal:
        first = terminal.until("q quit > ")
        assert "1 of 3: new spec/turns/new" in first
        terminal.press("s")
        second = terminal.until("q quit > ")
        assert f"2 of 3: changed spec/{SCENARIO}" in second
        assert second.index(MEANING) < second.index('"method": "turn/plan/updated"')
        assert re.search(r"accepted +now", second)
        terminal.press("?")
        assert "r  reject: the accepted one stays" in terminal.until("q quit > ")
        terminal.press("d")
        assert '+  "method": "turn/plan/updated"' in terminal.until("q quit > ")
        terminal.press("a")
        terminal.until("q quit > ")
        terminal.press("r")
        terminal.until("1 accepted, 1 rejected")
        assert terminal.status() == 0
    assert "\x1b[32m" in terminal.raw
    assert kept(project) == MORE
    assert kept(project, "turns/usage") == PLAIN
    listed = project.harness("snapshots", "list", "kept")
    assert listed.out.splitlines() == [
        "new      spec/turns/new",
        f"accepted spec/{SCENARIO}",
        "accepted spec/turns/usage",
    ]


@pytest.mark.parametrize("key", ["q", "\x03", "\x04"])
def test_leaving_a_review_leaves_all_waiting(project: Project, key: str) -> None:
    with in_terminal(*REVIEW, cwd=project.path) as terminal:
        terminal.until("q quit > ")
        terminal.press(key)
        assert "Traceback" not in terminal.until("3 left waiting")
        assert terminal.status() == 0
    assert project.harness("snapshots", "review", "kept", "--check").status == 1


def test_in_ci_what_waits_is_told_and_fails(project: Project) -> None:
    said = project.harness("snapshots", "review", "kept", "--check")
    assert said.status == 1
    assert f"changed spec/{SCENARIO}: {MEANING}" in said.out
    assert said.out.splitlines()[-1] == "3 wait for review: 1 new, 2 changed"
    said = project.harness("snapshots", "summary", "kept", "--markdown", "summary.md")
    assert said.status == 0
    page = (project.path / "summary.md").read_text("utf-8")
    assert f"| `spec/{SCENARIO}` | `{MEANING}` |" in page
    assert '+  "method": "turn/plan/updated",' in page
    assert project.harness("snapshots", "review", "kept", "--accept-all").status == 0
    said = project.harness("snapshots", "review", "kept", "--check")
    assert (said.status, said.out) == (
        0,
        "nothing waits for review: 3 snapshot(s) are accepted",
    )


def test_piped_it_lists_the_differences_and_says_what_to_do(project: Project) -> None:
    said = project.harness("snapshots", "review", "kept")
    assert said.status == 0
    assert f"--- kept/spec/{SCENARIO}.transcript" in said.out
    assert '+  "method": "turn/plan/updated",' in said.out
    assert "to decide: --accept-all or --reject-all" in said.out
    assert kept(project) == PLAIN


def test_some_are_decided_on_by_their_names(project: Project) -> None:
    said = project.harness("snapshots", "review", "kept", SCENARIO, "--accept-all")
    assert said.out.splitlines() == [
        f"accepted spec/{SCENARIO}",
        "of these nothing waits for review, 2 other(s) do",
    ]
    assert kept(project) == MORE
    said = project.harness("snapshots", "review", "kept", "turns/", "--reject-all")
    assert said.out.splitlines()[-1] == "nothing waits for review"
    assert kept(project, "turns/usage") == PLAIN
    said = project.harness("snapshots", "review", "kept", "turns/nosuch", "--accept-all")
    assert said.status == 2
    assert "turns/nosuch: kept has no such snapshot" in said.err


def test_one_that_does_not_wait_is_told_to_be_accepted(project: Project) -> None:
    project.harness("snapshots", "review", "kept", SCENARIO, "--accept-all")
    said = project.harness("snapshots", "review", "kept", SCENARIO, "--accept-all")
    assert (said.status, said.out.splitlines()) == (
        0,
        [
            f"{SCENARIO} does not wait for review: it is accepted, and stays as it is",
            "of these nothing waits for review, 2 other(s) do",
        ],
    )
    assert kept(project) == MORE
    said = project.harness("snapshots", "review", "kept", SCENARIO, "--check")
    alone = "of these nothing waits for review: 1 snapshot(s) are accepted"
    assert (said.status, said.out) == (0, alone)


def test_the_list_fails_where_one_cannot_be_read(project: Project) -> None:
    said = project.harness("snapshots", "list", "kept")
    assert (said.status, said.err) == (0, "")
    assert said.out.splitlines() == [
        "new      spec/turns/new",
        f"changed  spec/{SCENARIO}",
        "changed  spec/turns/usage",
    ]
    project.harness("snapshots", "review", "kept", "--accept-all")
    project.accepted().write_text("hello\n", "utf-8")
    said = project.harness("snapshots", "list", "kept")
    assert said.status == 2
    new, damaged, usage = said.out.splitlines()
    assert (new, usage) == ("accepted spec/turns/new", "accepted spec/turns/usage")
    where = f"kept/spec/{SCENARIO}.transcript:1"
    assert damaged.startswith(f"damaged  spec/{SCENARIO}: {where}: no snapshot: ")
    assert said.err == "1 cannot be read: play the scenario with --snapshots, and review"
    assert project.harness("snapshots", "list", "kept", "turns/usage").status == 0


def test_unused_ones_are_removed_when_asked(project: Project) -> None:
    SnapshotFolder(project.snapshots).note_unused(
        "spec", "turns/usage", "no scenario has this id any more"
    )
    project.harness("snapshots", "review", "kept", "--reject-all")
    SnapshotFolder(project.snapshots).note_unused(
        "spec", "turns/usage", "no scenario has this id any more"
    )
    said = project.harness("snapshots", "review", "kept", "--check")
    assert said.status == 1
    assert "unused spec/turns/usage: no whole run plays it" in said.out
    said = project.harness("snapshots", "review", "kept", "--remove-unused")
    assert said.out.splitlines() == ["removed spec/turns/usage", "nothing waits for review"]
    assert not project.accepted("turns/usage").exists()


def test_unreadable_snapshots_are_reported_with_their_line(project: Project) -> None:
    project.pending().write_text("hello\n", "utf-8")
    said = project.harness("snapshots", "review", "kept", "--accept-all")
    assert said.status == 1
    assert f"kept/.pending/spec/{SCENARIO}.transcript:1: no snapshot" in said.err
    assert kept(project, "turns/usage") == LOST
    said = project.harness("snapshots", "review", "kept", "--reject-all")
    assert said.out.splitlines()[-1] == "nothing waits for review"
    text = project.accepted().read_text("utf-8")
    project.accepted().write_text(text.replace(STARTED, f"<<<<<<< HEAD\n{STARTED}"), "utf-8")
    said = project.harness("snapshots", "review", "kept", "--check")
    assert f"{SCENARIO}.transcript:7: a merge left this" in said.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("review", "nowhere"), "nowhere does not exist: harness run … --snapshots nowhere"),
        (("list", "file"), "file is no folder"),
        (("summary", "kept", "--markdown", "no/such/file.md"), "no/such/file.md: No such file"),
        (("review", "kept", "--check", "--accept-all"), "one of them only"),
    ],
)
def test_mistakes_are_told_in_one_line(project: Project, words: list[str], told: str) -> None:
    (project.path / "file").touch()
    said = project.harness("snapshots", *words)
    assert said.status == 2
    assert told in said.err
    assert "Traceback" not in said.err
