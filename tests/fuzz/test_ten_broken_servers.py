"""Fuzzing finds the bugs of ten broken servers (`broken_servers`), which no scenario finds."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level
from harness.scenario.loader import load
from tests.conformance.bugs.forking import forked
from tests.conformance.judging import judged, leftovers
from tests.fuzz.broken_servers.registry import FURTHER, HUNTED, SEQUENCES, every
from tests.processes import MARK

pytestmark = [pytest.mark.slow, pytest.mark.socket, pytest.mark.usefixtures("place")]
BROKEN = every()
SERVER = Path(__file__).with_name("broken_servers")
SOUND = f"'{sys.executable}' -m reference_server app-server"
# `make test` plays the sequences of two; `make bugs` those of all.
SAMPLE = ("output-of-the-second-call-goes-to-the-first", "resumed-twice-must-be-left-twice")
ALL = [pytest.param(one, marks=() if one in SAMPLE else pytest.mark.bugs) for one in BROKEN]
MAX_STEPS = 10


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to run in; afterwards no process may be left."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert leftovers(mark) == []


def command(name: str) -> str:
    return f"'{sys.executable}' '{SERVER}' {name} app-server"


def test_there_are_ten_and_ten_and_each_has_words_a_rule_and_a_sequence() -> None:
    assert (len(every(HUNTED)), len(every(FURTHER)), len(BROKEN)) == (10, 10, 20)
    assert {path.name.split(".")[0] for path in SEQUENCES.iterdir()} == set(BROKEN)
    for one in BROKEN.values():
        assert "Sequence: " in one.what, one.name
        assert "Breaks " in one.what, one.name
        assert all_rules()[one.tells].level is Level.MUST


@pytest.mark.parametrize("name", ALL)
def test_its_sequence_is_red_on_it(name: str) -> None:
    broken = BROKEN[name]
    shown = load(broken.sequence)
    assert len(shown.scenario.client) <= MAX_STEPS
    with forked(str(SERVER), "tests.fuzz.broken_servers.serving:serve"):
        on_it = judged(command(name), [shown], target="reference", scale=0.4)
    assert broken.tells in on_it.failed_rules()
    assert "Traceback" not in on_it.outcomes[shown.id].stderr, "the patch itself is broken"


def test_no_sequence_is_red_on_the_server_without_their_bugs() -> None:
    shown = [load(broken.sequence) for broken in BROKEN.values()]
    without = judged(SOUND, shown, target="reference", scale=1)
    assert (set(without.verdicts().values()), without.failed_rules()) == ({"PASS"}, [])
