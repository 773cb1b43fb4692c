"""The number of lanes changes no row, on correct and on broken servers."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from .judging import SERVERS, Ran, command, run_pytest

pytestmark = [pytest.mark.socket, pytest.mark.slow]

AREAS = ("turns/", "interrupts/", "plans/")
NODE = shutil.which("node")
# The broken ones fall silent, and break a rule in each scenario. Where one tells the end of a turn
# twice, chance says when, and so whether other rules have anything to judge.
OTHERS = {
    "plain": f"{sys.executable} {SERVERS / 'plain' / 'plain.py'}",
    "odd": f"{NODE} {SERVERS / 'odd' / 'odd.mjs'}",
    "never_interrupted": command("broken/never_interrupted"),
    "invalid_utf8": command("broken/invalid_utf8"),
}
CORRECT = ("plain", "odd")
# One lane is compared with four and with sixteen, each on a correct server and on a broken one.
MORE_LANES = {"plain": 4, "odd": 16, "never_interrupted": 16, "invalid_utf8": 4}


def breaches(ran: Ran) -> dict[str, list[str]]:
    """Return the scenarios in which each rule was broken."""
    return {rule["id"]: sorted(rule["broken_in"]) for rule in ran.report["rules"]}


def check_lanes(words: list[str], place: Path, mark: str, lanes: Sequence[int]) -> Ran:
    runs = [run_pytest(*words, f"--lanes={n}", *AREAS, folder=place, mark=mark) for n in lanes]
    for run in runs[1:]:
        assert run.verdicts == runs[0].verdicts
        assert breaches(run) == breaches(runs[0])
        assert run.status == runs[0].status
    return runs[0]


def test_reference_server_is_green_on_any_number_of_lanes(place: Path, mark: str) -> None:
    # Sixteen servers that start at once beside other tests take longer than one.
    words = ["--target", "reference", "--timeout-scale", "2"]
    ran = check_lanes(words, place, mark, (1, 4, 16))
    assert ran.status == 0, ran.text


@pytest.mark.runs
@pytest.mark.parametrize("server", OTHERS)
def test_any_number_of_lanes_finds_the_same(server: str, place: Path, mark: str) -> None:
    if server == "odd" and NODE is None:
        pytest.skip("the odd server needs node, which is not installed")
    scale = "2" if server in CORRECT else "0.5"
    words = ["--server-cmd", OTHERS[server], "--timeout-scale", scale]
    ran = check_lanes(words, place, mark, (1, MORE_LANES[server]))
    assert ran.status == int(server not in CORRECT), ran.text
    assert bool(breaches(ran)["frame.well-formed"]) is (server == "invalid_utf8")
