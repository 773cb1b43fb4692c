"""Profiles of several releases: ranges, the release that a server says, and unknown releases."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.client.target.profile import Profile, load_profile, parse_profile
from harness.errors import UsageError
from harness.model.tools import ToolRow
from harness.protocol.releases import holds_for, numbers_of
from tests.processes import ROOT

FAMILY = """name = "mine"
title = "mine {release}"
extends = "none"
command = "mine --stdio"
capabilities = ["core", { name = "plan", since = "1.5" }, { name = "skills", until = "1.5" }]
[version]
oldest = "1.0"
newest = "2.0"
[[releases]]
since = "1.5"
bounds.step = 8
home."config.toml".a.b = 2
[[releases]]
until = "1.5"
home."config.toml".a.b = 1
[[tools]]
intent = "run"
name = "old"
until = "1.2"
[[deviations]]
rule = "turn.completes"
reason = "before"
until = "1.5"
[[deviations]]
rule = "turn.id-shape"
reason = "ids"
[[deviations]]
rule = "turn.completes"
reason = "after"
since = "1.5"
"""


def family(release: str = "") -> Profile:
    return parse_profile(FAMILY, "mine.toml", release=release)


def summary(profile: Profile) -> tuple[object, ...]:
    return (
        profile.capabilities,
        profile.bounds.step,
        cast("Any", profile.home["config.toml"])["a"]["b"],
        [tool.name for tool in profile.tools],
        [one.reason for one in profile.deviations],
    )


def test_each_release_gets_the_rows_of_its_range() -> None:
    old = (["core", "skills"], 5.0, 1, ["old"], ["before", "ids"])
    new = (["core", "plan"], 8.0, 2, [], ["ids", "after"])
    assert summary(family("1.0.3")) == old
    assert summary(family("1.4.9")) == (*old[:3], [], old[4])
    assert summary(family("1.5.0-beta.1")) == new
    assert summary(family()) == summary(family("2.0")) == summary(family("7")) == new
    assert summary(family("0.1")) == old


def test_a_value_is_named_by_its_place_in_the_file_whatever_was_left_out() -> None:
    profile = family("1.5")
    assert str(profile.place("deviations", 1, "reason")) == "mine.toml:29:10"
    assert str(profile.place("bounds", "step")) == "mine.toml:11:15"


def test_name_title_and_note_say_the_release() -> None:
    for release, name, note in (
        ("1.5.0", "mine-1.5", ""),
        ("2.1", "mine-2.1", "2.1 is newer than the newest known release 2.0: judged as that; "),
        ("0.9", "mine-0.9", "0.9 is older than the oldest known release 1.0: judged as that"),
        ("", "mine", "the server did not say its release: judged as 2.0, the newest that"),
    ):
        profile = family(release)
        assert profile.edition is not None
        assert profile.name == name
        assert profile.title == f"mine {release or '(release not known)'}"
        told = profile.edition.note("mine")
        assert told.startswith(note) if note else not told
        assert profile.edition.news == ("new since 2.0" if release == "2.1" else "")


def test_a_profile_that_extends_releases_keeps_its_own_rows_in_range(tmp_path: Path) -> None:
    (tmp_path / "family.toml").write_text(FAMILY)
    own = tmp_path / "own.toml"
    own.write_text(
        'name = "own"\nextends = "family.toml"\nwithout = [\'deviations."turn.id-shape"\']\n'
        '[[releases]]\nsince = "1.8"\nwithout = [\'deviations."turn.completes"\']\n'
        '[[deviations]]\nrule = "turn.completes"\nreason = "own"\nuntil = "1.1"\n'
    )
    reasons = {
        release: [one.reason for one in load_profile(str(own), release).deviations]
        for release in ("1.0", "1.2", "1.7", "1.9")
    }
    assert reasons == {"1.0": ["own"], "1.2": ["before"], "1.7": ["after"], "1.9": []}
    # What is left out need not be inherited by each release, only by one.
    own.write_text('name = "own"\nextends = "family.toml"\nwithout = ["tools.old"]\n')
    assert load_profile(str(own), "1.0").tools == load_profile(str(own), "1.5").tools == []
    own.write_text('name = "own"\nextends = "codex-0.118"\n[bounds]\nstep = 9\n')
    pinned = load_profile(str(own), "0.150.0")
    assert pinned.edition is not None
    assert pinned.edition.is_named
    assert (pinned.edition.release, pinned.dialect) == ("0.118.0", "codex-0.118")


MISTAKES = {
    "no-release": ('since = "new"', "here:16:9: deviations.since: 'new' is not a release; "),
    "no-range": (
        'since = "1.5"\nuntil = "1.5"',
        "here:13:1: deviations: until 1.5 is not later than since 1.5",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_wrong_range_is_one_line(case: str) -> None:
    text, expected = MISTAKES[case]
    head = FAMILY.partition("[[releases]]")[0] + "\n\n\n\n"
    row = f'[[deviations]]\nrule = "turn.completes"\nreason = "r"\n{text}\n'
    with pytest.raises(UsageError) as caught:
        parse_profile(head + row, "here")
    assert str(caught.value).startswith(expected)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('[version]\noldest = "1.0"\nnewest = "2.0"\n', "", "here:5:42: nothing says of which rel"),
        ("bounds.step = 8", "bounds.stap = 8", "here:11:8: unknown key 'stap'; did you mean 'stop"),
        ("bounds.step = 8", 'name = "x"', "here:11:1: releases: 'name' cannot differ between"),
        (
            'newest = "2.0"',
            "pattern = 'v1'\nnewest = \"2.0\"",
            "here:8:11: version.pattern: 'v1' h",
        ),
        ('name = "plan", ', 'nam = "plan", ', "here:5:16: capabilities: expected names of capab"),
    ],
)
def test_a_mistake_in_a_profile_of_releases_is_one_line(old: str, new: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_profile(FAMILY.replace(old, new), "here")
    assert str(caught.value).startswith(expected)


# Of the resolved profiles without deviations, when each end was a file of its own.
ENDS = {"codex-0.107": "a68f5f083d915b9f", "codex-0.169": "11eac1338ee24af8"}
# Their deviations then: ends, rule, scenario, `flaky`, pinned text. New ones may come beside them.
ROWS = (ROOT / "fixtures/codex_ends.tsv").read_text("utf-8").splitlines()


@pytest.mark.parametrize("name", ENDS)
def test_the_ends_of_the_family_have_what_they_had_as_files_of_their_own(name: str) -> None:
    profile = load_profile(name)
    members = profile.model_dump(
        mode="json", exclude_unset=True, exclude={"version", "releases", "deviations"}
    )
    text = json.dumps(members, sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == ENDS[name]
    rows = {
        f"{one.rule}\t{one.scenario}\t{'flaky' * one.flaky}\t{one.pinned}".rstrip()
        for one in profile.deviations
    }
    release = name.removeprefix("codex-")
    expected = {row.partition("\t")[2] for row in ROWS if release in row.partition("\t")[0]}
    assert expected - rows == set()


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("codex-cli 0.118.0\n", "0.118.0"),
        ("WARNING: x\ncodex-cli 0.119.0-alpha.3\n", "0.119.0-alpha.3"),
        ("harness/0.171.0 (Debian 12.0.0; x86_64) xterm (harness; 1)", "0.171.0"),
        ("env (GNU coreutils) 9.1", ""),
        ("Python 3.11.2", ""),
        ("", ""),
    ],
)
def test_the_release_of_codex_is_found_in_what_it_prints_and_nowhere_else(
    text: str, release: str
) -> None:
    assert load_profile("codex").version.find_release(text) == release


NUMBERS = st.lists(st.integers(0, 30), min_size=1, max_size=4)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_ranges_agree_with_the_order_of_numbers(
    one: list[int], two: list[int], it: list[int]
) -> None:
    since, until, release = (".".join(map(str, numbers)) for numbers in (one, two, it))
    width = max(map(len, (one, two, it)))
    low, high, at = ([*numbers, *[0] * (width - len(numbers))] for numbers in (one, two, it))
    assert holds_for(release, {"since": since, "until": until}) == (low <= at < high)
    assert numbers_of(f"{release}-rc.1") == numbers_of(release)


def test_a_tool_with_a_range_becomes_a_row_of_the_scripted_model() -> None:
    (tool,) = parse_profile(FAMILY, "mine.toml", release="1.0").tools
    assert ToolRow(**tool.row()) == ToolRow("run", "old")
