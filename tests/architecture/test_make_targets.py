"""Tests that `make test` leaves out have targets of their own, and `make all`, which CI calls."""

import re
from pathlib import Path

import pytest

from harness.model.tool_parts import Patch, Run
from harness.scenario.bundled import bundled_ids, bundled_scenario

ROOT = Path(__file__).parents[2]
RECIPES = dict(
    re.findall(r"^(\w+):[^\n]*\n((?:\t[^\n]*\n)+)", (ROOT / "Makefile").read_text("utf-8"), re.M)
)
LEFT_OUT = re.findall(r"not (\w+)", RECIPES["test"])


def test_make_test_says_what_it_leaves_out() -> None:
    assert len(LEFT_OUT) == 6
    assert f'-m "{" and ".join(f"not {name}" for name in LEFT_OUT)}"' in RECIPES["test"]


@pytest.mark.parametrize("mark", LEFT_OUT)
def test_tests_left_out_have_a_target_that_runs_all_of_them(mark: str) -> None:
    command = next(line for line in RECIPES[mark].splitlines() if "pytest" in line)
    assert f" -m {mark} " in command
    assert re.search(r" -[kx] ", command) is None
    folders = [ROOT / word for word in command.split() if word.startswith("tests/")]
    marked = [
        path
        for path in (ROOT / "tests").rglob("*.py")
        if f"pytest.mark.{mark}" in path.read_text("utf-8") and path != Path(__file__)
    ]
    assert marked
    assert [path for path in marked if not any(path.is_relative_to(one) for one in folders)] == []


def test_make_all_runs_every_test() -> None:
    (command,) = (line for line in RECIPES["all"].splitlines() if "pytest" in line)
    assert "tests/" not in command
    # The first -m is Python's.
    assert re.search(r" -[kx] | -m (?!pytest)", command) is None


def test_ci_runs_every_test() -> None:
    assert "make all" in (ROOT / ".ci" / "run").read_text("utf-8").splitlines()


def test_make_bare_plays_every_scenario_that_runs_a_command_or_changes_a_file() -> None:
    script = (ROOT / "tools" / "bare.sh").read_text("utf-8")
    tags = {tag for option in re.findall(r"--tag (\S+)", script) for tag in option.split(",")}
    acting = [
        loaded
        for loaded in map(bundled_scenario, bundled_ids())
        if any(isinstance(entry, Run | Patch) for _, entry in loaded.scenario.model_entries())
    ]
    assert len(acting) > 150
    assert [loaded.id for loaded in acting if loaded.tags.isdisjoint(tags)] == []
