"""`make rule` and `make prove`, in a copy of what they read and write."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.faults.base import all_faults
from harness.judge.rules.discovery import all_rules
from harness.trace.surfaces import SESSION
from tests.rules.case import all_cases

ROOT = Path(__file__).parents[2]
NEW, NEIGHBOUR = "turn.ends-late", "turn.completed-once"
WRITTEN = ("fixtures/matrix.yaml", "fixtures/golden_findings.txt", "docs/rules.md")
LOAD = (
    "from harness.judge.rules.discovery import all_rules;"
    "from harness.faults.base import all_faults;"
    "from tests.rules.case import all_cases;"
    "print(len(all_rules()), len(all_faults()), len(list(all_cases())))"
)

pytestmark = pytest.mark.slow


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return copy_into(tmp_path)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout for tests that change nothing in it."""
    return copy_into(tmp_path_factory.mktemp("untouched"))


def copy_into(tmp_path: Path) -> Path:
    """Copy what the tools read and write into a folder; return it."""
    # With the compiled files: a copy has the times by which Python knows that they are valid.
    for name in ("harness", "tools", "tests/rules", "tests/golden"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("tests/__init__.py", "README.md", "pyproject.toml"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, tmp_path / name)
    for name in ("fixtures", "docs"):
        (tmp_path / name).mkdir()
        for path in (ROOT / name).iterdir():
            copy = tmp_path / name / path.name
            if path.is_dir():
                copy.symlink_to(path)
            else:
                shutil.copy(path, copy)
    for name in ("scenarios", "reference_server"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def run(folder: Path, *words: str) -> tuple[int, str]:
    ran = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return ran.returncode, ran.stdout + ran.stderr


def state(folder: Path) -> dict[str, str]:
    files = [*folder.rglob("*.py"), *folder.rglob("*.yaml"), *folder.rglob("*.txt")]
    return {str(path): path.read_text("utf-8") for path in files}


def test_the_rows_of_a_rule_are_restored_and_no_others(checkout: Path) -> None:
    before = {name: (checkout / name).read_text("utf-8") for name in WRITTEN}
    matrix, golden, _ = ((checkout / name) for name in WRITTEN)
    matrix.write_text(matrix.read_text("utf-8").replace("turn.completed-once", "turn.completes"))
    lines = golden.read_text("utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(f"{NEIGHBOUR}: ")]
    golden.write_text("".join(kept).replace(f"{NEIGHBOUR} ", f"{NEIGHBOUR} 0"), "utf-8")
    status, said = run(checkout, "-m", "tools.prove", NEIGHBOUR)
    assert status == 0, said
    assert "class: harness/judge/rules/turns/" in said
    assert "missing" not in said
    after = {name: (checkout / name).read_text("utf-8") for name in WRITTEN}
    assert after["fixtures/golden_findings.txt"] == before["fixtures/golden_findings.txt"]
    assert after["docs/rules.md"] == before["docs/rules.md"]
    assert "(matrix changed)" in said


def test_a_rule_that_objects_to_correct_conversations_is_not_proved(checkout: Path) -> None:
    path = checkout / "harness/judge/rules/turns/announcements.py"
    condition = "if TURN.next_states(turn_state(turn, before=frame)):"
    text = path.read_text("utf-8")
    assert text.count(condition) == 1
    path.write_text(text.replace(condition, "if not turn:"), "utf-8")
    status, said = run(checkout, "-m", "tools.prove", NEIGHBOUR)
    assert status == 1
    assert "missing: agreement with good/plain-turn: the rule objects at MUST to turn " in said
    assert "missing: agreement with legal/" in said


def test_a_new_rule_has_four_parts_to_fill_in_until_which_it_is_not_proved(checkout: Path) -> None:
    status, said = run(checkout, "-m", "tools.scaffold", NEW, NEIGHBOUR)
    assert status == 0, said
    places = {line.split(":")[0] for line in said.splitlines() if ":" in line and "/" in line}
    assert {Path(place).parent.as_posix() for place in places} == {
        "harness/judge/rules/turns",
        "harness/protocol/spec/requirements",
        "harness/faults/tables",
        "tests/rules",
    }
    assert "FILL IN: line, heading, basis, level, from; they are still those of" in said
    status, said = run(checkout, "-m", "tools.prove", NEW)
    assert status == 1, said
    assert "missing: a case that is judged as written:" in said
    assert "test_a_rule_fails_its_bad_trace_at_the_right_frames[turn.ends-late]" in said
    assert "missing: a rule that notices the fault: FILL-IN-turn-ends-late on plain-turn" in said


def test_a_rule_can_be_begun_beside_any_that_judges_a_session(checkout: Path) -> None:
    """One of each module of rules; the others are refused, and leave no part behind."""
    rules = [rule for rule in all_rules().values() if rule.surface == SESSION]
    neighbours = {rule.__module__: rule for rule in rules}
    words = [(f"{rule.id}-too", rule.id) for rule in neighbours.values()]
    # All in one process, so that each sees what stands in the files and not what was begun.
    script = f"from tools.scaffold import main\nfor words in {words!r}:\n    main(*words)"
    # The copy has the same modules.
    before = (len(all_rules()), len(all_faults()), len(list(all_cases())))
    status, said = run(checkout, "-c", script)
    assert status == 0, said
    status, after = run(checkout, "-c", LOAD)
    assert status == 0, after
    assert [int(count) for count in after.split()] == [count + len(words) for count in before]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((NEIGHBOUR, NEIGHBOUR), "the rule turn.completed-once exists already"),
        (("Turn", NEIGHBOUR), "'Turn' is not an id of a rule"),
        (("turn.other", "turn.completed-onse"), "turn.completed-once"),
        (("exec.other", "exec.turn-ends"), "does not judge the session protocol"),
        (("duty.other", "duty.answers"), "unknown rule 'duty.answers'"),
    ],
)
def test_a_rule_that_cannot_be_begun_is_refused_in_one_line(
    untouched: Path, words: tuple[str, str], message: str
) -> None:
    before = state(untouched)
    status, said = run(untouched, "-m", "tools.scaffold", *words)
    assert (status, len(said.splitlines())) == (1, 1), said
    assert message in said
    assert state(untouched) == before
