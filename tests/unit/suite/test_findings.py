"""The list of findings is closed: what the code can find, what the page describes, no more."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from harness.rules.base import all_rules
from harness.suite.findings import FINDINGS, OF_THE_RUN

ROOT = Path(__file__).resolve().parents[3]
FAMILIES = {name.split(".")[0] for name in (*FINDINGS, *OF_THE_RUN) if "." in name}
ID = re.compile(rf"(?:{'|'.join(sorted(FAMILIES))})\.[a-z]+(?:-[a-z]+)*")


def made_in_the_code() -> set[str]:
    """Every text in the code that has the form of a finding's id; hygiene names go without."""
    found: set[str] = set()
    for file in (ROOT / "harness/suite").rglob("*.py"):
        if file.name == "findings.py":
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= {node.value} if ID.fullmatch(node.value) else set()
            if isinstance(node, ast.Call) and file.name == "hygiene.py":
                name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                if name == "_add" and isinstance(node.args[0], ast.Constant):
                    found.add(f"hygiene.{node.args[0].value}")
    return found


def test_every_finding_that_the_code_makes_is_listed() -> None:
    alone = {name for name in FINDINGS if "." not in name}
    assert made_in_the_code() == {*FINDINGS, *OF_THE_RUN} - alone
    assert alone == {"leaks-state", "unsteady"}


def test_every_finding_is_described_in_the_page_about_reports() -> None:
    page = (ROOT / "docs/reports.md").read_text("utf-8")
    described = set(re.findall(r"^\| `([a-z.-]+)` \|", page, re.M))
    assert described >= set(FINDINGS)
    assert {name for name in described if ID.fullmatch(name)} <= {*FINDINGS, *OF_THE_RUN}


def test_no_finding_has_the_id_of_a_rule() -> None:
    assert not set(FINDINGS) & set(all_rules())
