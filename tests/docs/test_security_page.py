"""docs/security.md: each claim names tests, and they are there."""

import ast
import re

import pytest
from markdown_pages import ROOT

PAGE = (ROOT / "docs/security.md").read_text("utf-8")
HEADER = "| claim | where | test |"
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
PLACE = re.compile(r"`([\w/]+\.py)`")


def claims() -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    for table in PAGE.split(HEADER)[1:]:
        rows = table.split("\n\n")[0].splitlines()[2:]
        for row in rows:
            claim, where, tests = (cell.strip() for cell in row.strip("| ").split(" | "))
            found.append((claim, where, tests))
    return found


def functions_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_there_are_claims() -> None:
    assert len(claims()) > 25
    assert len({claim for claim, _, _ in claims()}) == len(claims())


@pytest.mark.parametrize("claim", claims(), ids=lambda claim: claim[0][:60])
def test_a_claim_names_tests_and_places_that_are_there(claim: tuple[str, str, str]) -> None:
    _, where, tests = claim
    named = TEST.findall(tests)
    assert named, "a claim without a test is a wish"
    assert [test for path, test in named if test not in functions_in(path)] == []
    places = [place for place in PLACE.findall(where) if not place.startswith("tests/")]
    assert [place for place in places if not (ROOT / "reference_server" / place).exists()] == []
