"""`harness profile`: a resolved profile is printed as it is used, with the origin of each line."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.commands.profiles import built_in_rows, profile_json, profile_lines
from harness.client.target.profile import Profile, builtin_names, load_profile, parse_profile

ROOT = Path(__file__).parents[3] / "harness/client/target/profiles"


def plain(profile: Profile) -> dict[str, object]:
    values = profile.model_dump(mode="json", exclude={"version", "extends"})
    for row in (*values["deviations"], *values["tools"]):
        del row["since"], row["until"]
    return values


@pytest.mark.parametrize("name", builtin_names())
def test_printed_profile_has_the_same_values(name: str) -> None:
    profile = load_profile(name)
    printed = "\n".join(profile_lines(profile))
    assert plain(parse_profile(printed, "printed.toml")) == plain(profile)


def test_each_line_names_the_line_that_it_comes_from_and_the_range(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('name = "own"\nextends = "codex"\n[bounds]\nstop = 3.0\n')
    lines = list(profile_lines(load_profile(str(own), "0.171.0")))
    assert lines[0].startswith("# 0.171.0 is newer than the newest known release")
    source = (ROOT / "codex.toml").read_text().splitlines()

    def origin(start: str) -> str:
        return next(line for line in lines if line.startswith(start)).partition("  # ")[2]

    assert origin("bounds.stop = 3.0") == f"{own}:4:8"
    assert origin("home_env") == "dialect codex-0.169"
    for start, text, ranges in (
        ("command =", "command = [", ""),
        ("bounds.step =", "bounds.step = 8", " (since 0.150.0)"),
        ('    "compaction-turn"', '{ name = "compaction-turn"', " (since 0.169.0)"),
    ):
        place, _, words = origin(start).partition(" (")
        line = int(place.split(":")[1])
        assert text in source[line - 1]
        assert words == ranges[2:]
    assert profile_json(load_profile(str(own)))["places"]["bounds.stop"] == f"{own}:4:8"


def test_a_family_is_listed_once_with_its_releases() -> None:
    assert [(row["name"], row.get("newest")) for row in built_in_rows()] == [
        ("codex", "0.169.0"),
        ("reference", None),
        ("spec", None),
    ]
