"""A deviation that a profile inherits is removed by the lines that the report prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.client.target.profile import Deviation, Profile, load_profile
from harness.report.results.entry_removal import removal_of

OWN = """name = "mine"
extends = "codex-0.107"
without = ["lifted"]

[[deviations]]
rule = "turn.completes"
reason = "mine"
"""


def entry_of(profile: Profile, rule: str, scenario: str = "") -> Deviation:
    return next(
        one
        for one in profile.deviations
        if one.rule == rule and (not scenario or one.scenario == scenario)
    )


def test_lines_remove_an_entry_of_a_built_in_profile_and_nothing_else(tmp_path: Path) -> None:
    profile = load_profile("codex-0.107")
    mine = tmp_path / "mine.toml"
    for entry in profile.deviations[::9]:
        advice, lines = removal_of(entry, profile)
        assert "built in (profile codex:" in advice
        mine.write_text(lines)
        after = load_profile(str(mine))
        expected = [one for one in profile.deviations if one != entry]
        assert sorted(map(repr, after.deviations)) == sorted(map(repr, expected))


def test_a_profile_of_ones_own_gets_the_line_for_its_own_file(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(OWN)
    profile = load_profile(str(mine))
    advice, lines = removal_of(entry_of(profile, "item.command-output"), profile)
    assert advice.startswith("it is inherited from profile codex:")
    assert advice.endswith(f"write this in {mine}")
    assert lines == 'without = ["lifted", \'deviations."item.command-output"\']'
    mine.write_text(OWN.replace('without = ["lifted"]', lines))
    assert "item.command-output" not in {one.rule for one in load_profile(str(mine)).deviations}


def test_an_entry_of_ones_own_file_is_named_by_its_place(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(OWN)
    profile = load_profile(str(mine))
    own = entry_of(profile, "turn.completes")
    assert removal_of(own, profile) == (f"it is at {mine}:6:8", "")


@pytest.mark.parametrize("name", ["codex-0.107", "reference"])
def test_an_entry_of_a_baseline_file_needs_no_lines(name: str) -> None:
    assert removal_of(Deviation(rule="x", reason="r"), load_profile(name)) == ("", "")
