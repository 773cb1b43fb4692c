"""The number of lanes changes no row, on correct and on broken servers."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from .judging import SERVERS, Ran, command, run_pytest

pytestmark = [pytest.mark.socket, pytest.mark.slow]

AREAS = ("turns/", "interrupts/", "plans/")
LANES = (1, 4, 16)
NODE = shutil.which("node")
# The broken ones fall silent, and break a rule in each scenario. Where one tells the end of a turn
# twice, chance says when, and so whether other rules have anything to judge.
OTHERS = {
    "plain": f"{sys.executable} {SERVERS / 'plain' / 'plain.py'}",
    "odd": f"{NODE} {SERVERS / 'odd' / 'odd.mjs'}",
    "never_interrupted": command("broken/never_interrupted"),
    "invalid_utf8": command("broken/invalid_utf8"),
}


def rows_of(ran: Ran) -> dict[str, tuple[str, frozenset[str]]]:
    """Return the verdict of each scenario and the rules that it broke."""
    broken: dict[str, set[str]] = {}
    for rule in ran.report["rules"]:
        for one in rule.get("violations", ()):
            broken.setdefault(one["scenario"], set()).add(rule["id"])
    return {
        one["id"]: (one["verdict"], frozenset(broken.get(one["id"], ())))
        for one in ran.report["scenarios"]
    }


def check_lanes(words: list[str], place: Path, mark: str) -> Ran:
    runs = [run_pytest(*words, f"--lanes={n}", *AREAS, folder=place, mark=mark) for n in LANES]
    for run in runs[1:]:
        assert run.verdicts == runs[0].verdicts
        assert rows_of(run) == rows_of(runs[0])
        assert run.status == runs[0].status
    return runs[0]


def test_reference_server_is_green_on_any_number_of_lanes(place: Path, mark: str) -> None:
    ran = check_lanes(["--target", "reference"], place, mark)
    assert ran.status == 0, ran.text


@pytest.mark.runs
@pytest.mark.parametrize("server", OTHERS)
def test_any_number_of_lanes_finds_the_same(server: str, place: Path, mark: str) -> None:
    if server == "odd" and NODE is None:
        pytest.skip("the odd server needs node, which is not installed")
    ran = check_lanes(["--server-cmd", OTHERS[server], "--timeout-scale", "0.5"], place, mark)
    assert ran.status == int(server not in ("plain", "odd")), ran.text
