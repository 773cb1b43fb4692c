"""Frozen suites: their ids stay, and mistakes in their files have a place."""

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.judge.rules.discovery import every_rule
from harness.play.config import later_entries
from harness.protocol.spec.loading import load_book
from harness.protocol.suites import load_suite, suite_names
from harness.scenario.bundled import bundled_ids


@pytest.mark.parametrize("name", suite_names())
def test_every_id_of_a_suite_still_exists(name: str) -> None:
    suite = load_suite(name)
    assert len(suite.rules) > 300
    assert suite.rules <= set(every_rule())
    assert suite.scenarios <= bundled_ids()
    assert suite.requirements <= {one.id for one in load_book().requirements}


def test_a_later_rule_is_known_in_every_scenario(tmp_path: Path) -> None:
    file = tmp_path / "old.suite"
    file.write_text("# ours\n\nrule turn.completes\nscenario turns/plain-turn\n")
    suite = load_suite(str(file))
    entries = later_entries(suite, ["turn.completes", "turn.completed-once"])
    assert [(one.rule, one.scenario) for one in entries] == [("turn.completed-once", "*")]
    assert str(file) in entries[0].reason
    note = suite.note(["turn.completes", "a.b"], ["turns/plain-turn", "x", "y"])
    assert note.endswith("later rules: 1, which do not count; later scenarios: 2, not played")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rule a.b\nrules c.d\n", "old.suite:2: expected a line such as 'rule turn.completes'"),
        ("rule\n", "old.suite:1: expected a line"),
        ("rule a b\n", "old.suite:1: expected a line"),
    ],
)
def test_a_mistake_in_a_suite_has_a_place(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "old.suite"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        load_suite(str(file))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("9.9", "unknown suite; known: 1.0, or a file"),
        ("no/such.suite", "cannot be read: .*No such file"),
    ],
)
def test_a_suite_that_is_not_there_is_named(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"--suite {name}: {message}"):
        load_suite(name)
