"""`make rule` and `make prove`, in a copy of what they read and write."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEW, NEIGHBOUR = "turn.ends-late", "turn.completed-once"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    skipped = shutil.ignore_patterns("__pycache__", "node_modules", ".harness")
    for name in ("harness", "reference_server", "tools", "fixtures", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=skipped, symlinks=True)
    for name in ("rules", "golden"):
        shutil.copytree(ROOT / "tests" / name, folder / "tests" / name, ignore=skipped)
    for name in ("tests/__init__.py", "README.md", "pyproject.toml"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, folder / name)
    (folder / "scenarios").symlink_to(ROOT / "scenarios")
    return folder


def run(folder: Path, *words: str) -> tuple[int, str]:
    ran = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return ran.returncode, ran.stdout + ran.stderr


def test_a_rule_that_is_proved_is_said_to_be_and_nothing_is_rewritten(checkout: Path) -> None:
    written = ("fixtures/matrix.yaml", "fixtures/golden_findings.txt", "docs/rules.md")
    before = [(checkout / name).read_text("utf-8") for name in written]
    status, said = run(checkout, "tools.prove", NEIGHBOUR)
    assert status == 0, said
    assert "class: harness/judge/rules/turns/" in said
    assert "missing" not in said
    assert [(checkout / name).read_text("utf-8") for name in written] == before


def test_a_new_rule_has_four_parts_to_fill_in_until_which_it_is_not_proved(checkout: Path) -> None:
    status, said = run(checkout, "tools.scaffold", NEW, NEIGHBOUR)
    assert status == 0, said
    places = {line.split(":")[0] for line in said.splitlines() if ":" in line and "/" in line}
    assert {Path(place).parent.as_posix() for place in places} == {
        "harness/judge/rules/turns",
        "harness/protocol/spec/requirements",
        "harness/faults/tables",
        "tests/rules",
    }
    status, said = run(checkout, "tools.prove", NEW)
    assert status == 1, said
    assert "missing: a bad trace that fails as written; its rows: none" in said
    assert "missing: a rule that notices the fault: FILL-IN-ends-late on plain-turn" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((NEIGHBOUR, NEIGHBOUR), "the rule turn.completed-once exists already"),
        (("Turn", NEIGHBOUR), "'Turn' is not an id of a rule"),
        (("turn.other", "turn.completed-onse"), "turn.completed-once"),
    ],
)
def test_a_rule_that_cannot_be_begun_is_refused_in_one_line(
    checkout: Path, words: tuple[str, str], message: str
) -> None:
    status, said = run(checkout, "tools.scaffold", *words)
    assert (status, len(said.splitlines())) == (1, 1), said
    assert message in said
