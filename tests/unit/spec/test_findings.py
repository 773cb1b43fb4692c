"""The closed list of findings: every id that the code can give is in it, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.judge.rules.discovery import all_rules
from harness.protocol.spec.findings import accepted_ids, finding_kinds

ROOT = Path(__file__).parents[3]
ID = re.compile(
    r"(scenario|setup|liveness|hygiene|baseline|harness|fuzz|shard|snapshots|times)\.[a-z]+(-[a-z]+)*"
)
# Rooms in which findings are made.
FOLDERS = tuple(
    f"harness/{room}" for room in ("cli", "client", "play", "report", "scenario", "search")
)
# Files that mark the top of a project look like ids of `setup.*`.
FILES = {"setup.py", "setup.cfg"}


def _is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def _given() -> Iterator[str]:
    """Every literal of the code that is the id of a finding; `hygiene` adds its family itself."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            for node in ast.walk(tree):
                value = node.value if isinstance(node, ast.Constant) else None
                if not isinstance(value, str) or not ID.fullmatch(value):
                    continue
                if value not in FILES and not _is_module(value):
                    yield value
            if path.name == "outcome.py":
                yield from re.findall(r'"(leaks-state|unsteady)"', path.read_text("utf-8"))
    hygiene = (ROOT / "harness/play/hygiene.py").read_text("utf-8")
    for name in re.findall(r'self\._add\(\s*"([a-z-]+)"', hygiene):
        yield f"hygiene.{name}"


def test_every_finding_that_the_code_can_give_is_listed() -> None:
    given = set(_given())
    assert len(given) > 20
    assert given - set(finding_kinds()) == set()


def test_every_listed_finding_is_one_that_the_code_can_give() -> None:
    assert set(finding_kinds()) - set(_given()) == set()


@pytest.mark.parametrize("name", finding_kinds())
def test_a_listed_finding_says_what_it_means_what_causes_it_and_what_to_do(name: str) -> None:
    kind = finding_kinds()[name]
    assert "\n" not in kind.means
    assert kind.causes
    assert kind.advice.endswith(".")


def test_no_listed_finding_has_the_id_of_a_rule() -> None:
    assert set(finding_kinds()) & set(all_rules()) == set()


def test_a_baseline_does_not_accept_findings_of_the_run_itself() -> None:
    own = {name for name in finding_kinds() if name.startswith("snapshots.")}
    assert own
    assert set(finding_kinds()) - accepted_ids() == {
        "baseline.stale",
        "baseline.expired",
        "baseline.expires-soon",
        "harness.trouble",
        "harness.worker-died",
        "shard.incomplete",
        "shard.missing",
        *own,
    }
