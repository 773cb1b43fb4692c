"""Updates of a baseline file: the new entries, and the rest of the file unchanged."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.judge.verdict import Level, Verdict
from harness.report.results.baseline import load_baseline
from harness.report.results.baseline_update import (
    MAX_SCENARIOS_NAMED,
    Change,
    apply_change,
    entry_lines,
    new_entries,
    replace_file,
)
from harness.report.results.rejudge import apply_entries
from tests.unit.results.outcomes import LAST, ONCE, Finding, entry, failed, outcome, passed

FILE = '''\
# What we know about our server.

# told in issue 7
[[deviations]]  # the first
rule = "turn.completed-once"
reason = """
# no comment, but a reason
[[deviations]]
"""

# about the second
[[deviations]]
rule = "turn.completes"
# a word within it
reason = "r"

[[deviations]]
rule = "turn.completed-last"
reason = "the last"
# the end of the file
'''


def entries_of(*outcomes, loose=(), **more):
    given: dict[str, Any] = {"reason": "r", "levels": (Level.MUST,), **more}
    return new_entries(outcomes, loose, **given)


def edited(path: Path, text: str, change: Change) -> str:
    path.write_text(text, "utf-8", newline="")
    new = apply_change(text, load_baseline(path), change)
    path.write_text(new, "utf-8", newline="")
    kept = load_baseline(path).entries
    assert len(kept) == text.count("\nrule = ") - len(change.indexes_removed) + len(
        change.entries_added
    )
    return new


def test_each_rule_and_scenario_that_counts_has_an_entry() -> None:
    lost = Finding("scenario.timeout", "nothing came")
    bad = outcome("a/one", failed(ONCE), failed(ONCE, "turn v"), passed(LAST))
    bad.findings = [lost]
    found = entries_of(bad, outcome("a/two", failed(ONCE)))
    assert [(one.rule, one.scenario) for one in found] == [
        ("scenario.timeout", "a/one"),
        (ONCE, "a/one"),
        (ONCE, "a/two"),
    ]


def test_known_findings_and_those_that_do_not_count_get_no_entry() -> None:
    known = failed(LAST)
    known = outcome("a/one", failed(ONCE, level=Level.SHOULD), known)
    apply_entries(known, [entry(LAST)])
    known.findings = [
        Finding("hygiene.panic", "it panicked", level=Level.INFO),
        Finding("scenario.crash", "it ended", known="we know"),
        Finding("setup.not-started", "it ended"),
        Finding("harness.worker-died", "it died"),
    ]
    assert entries_of(known) == []
    strict = entries_of(known, levels=(Level.MUST, Level.SHOULD))
    assert [one.rule for one in strict] == [ONCE]


def test_a_rule_that_is_broken_in_many_scenarios_has_one_entry_for_all() -> None:
    few = [outcome(f"a/s{number}", failed(ONCE)) for number in range(MAX_SCENARIOS_NAMED)]
    assert len(entries_of(*few)) == MAX_SCENARIOS_NAMED
    (one,) = entries_of(*few, outcome("a/more", failed(ONCE)))
    assert one.scenario == "*"


def test_findings_of_many_scenarios_have_an_entry_each() -> None:
    failing = [outcome(f"a/s{number}") for number in range(MAX_SCENARIOS_NAMED + 1)]
    for one in failing:
        one.findings = [Finding("scenario.expectation", f"{one.id} went wrong")]
    assert [entry.scenario for entry in entries_of(*failing)] == [one.id for one in failing]


def test_flaky_findings_are_marked_flaky() -> None:
    odd = outcome("a/one", failed(ONCE))
    odd.findings = [Finding("unsteady", "not always", level=Level.INFO)]
    (one,) = entries_of(odd)
    assert one.flaky


def test_an_entry_is_written_as_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    full = entry(
        scenario="a/[x]*",
        reason='"why"\\ \n\x7f\x1b # not é',
        flaky=True,
        expires=date(2027, 1, 31),
    )
    for one in (full, entry()):
        path.write_text("\n".join(entry_lines(one)), "utf-8")
        assert load_baseline(path).entries == (one,)
    assert "scenario" not in "".join(entry_lines(entry()))


def test_an_entry_is_taken_out_and_every_comment_stays(tmp_path: Path) -> None:
    new = edited(tmp_path / "known.toml", FILE, Change((), (0,)))
    gone = {"[[deviations]]  # the first", 'rule = "turn.completed-once"', 'reason = """'}
    gone |= {"# no comment, but a reason", "[[deviations]]", '"""'}
    assert "# told in issue 7\n# about the second\n[[deviations]]\nrule" in new
    assert all(line in new or line in gone for line in FILE.splitlines())


def test_the_last_entry_is_taken_out_and_what_follows_it_stays(tmp_path: Path) -> None:
    new = edited(tmp_path / "known.toml", FILE, Change((), (1, 2)))
    assert new.endswith('"""\n\n# about the second\n# the end of the file\n')


def test_entries_are_added_at_the_end_and_the_rest_is_as_it_was(tmp_path: Path) -> None:
    new = edited(tmp_path / "known.toml", FILE, Change((entry(scenario="b"), entry())))
    assert new.startswith(FILE)
    assert new.count('\n\n[[deviations]]\nrule = "turn.completed-once"\n') == 2


def test_ends_of_lines_stay_those_of_the_file(tmp_path: Path) -> None:
    new = edited(tmp_path / "known.toml", FILE.replace("\n", "\r\n"), Change((entry(),), (1,)))
    assert new.count("\n") == new.count("\r\n")


def test_a_file_without_entries_of_their_own_lines_is_refused_at_its_place(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    text = 'deviations = [{rule = "turn.completes", reason = "r"}]\n'
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError, match=r"known.toml:1:15: write each entry below a line"):
        apply_change(text, load_baseline(path), Change((), (0,)))


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text("old", "utf-8")
    path.chmod(0o640)
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    replace_file(link, "new\r\n")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new\r\n", 0o640)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["known.toml", "link.toml"]


def test_an_outcome_is_known_only_where_all_that_failed_it_is() -> None:
    both = outcome("a/one", failed(ONCE), verdict=Verdict.FAIL, reason="why")
    both.findings = [Finding("scenario.crash", "a"), Finding("scenario.timeout", "b")]
    apply_entries(both, [entry("scenario.crash"), entry(ONCE)])
    assert both.verdict is Verdict.FAIL
    assert [row.verdict for row in both.rows] == [Verdict.KNOWN]
    apply_entries(both, [entry("scenario.timeout", reason="second")])
    assert (both.verdict, both.reason) == (Verdict.KNOWN, "known")
