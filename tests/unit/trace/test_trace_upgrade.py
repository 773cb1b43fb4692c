"""Traces of version 1 in the current format: the same trace is read from both."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.trace.marks import MARKS_VERSION
from harness.trace.store import TraceFormatError, load
from harness.trace.trace import FORMAT_VERSION
from harness.trace.upgrade import upgrade_trace
from tests.unit.trace.test_mark_rows import FORMER

ROOT = Path(__file__).parents[3]
GOOD = sorted((ROOT / "fixtures/traces/good").glob("*.jsonl"))
FRAME: dict[str, Any] = {
    **{"frame": 0, "at": 0.01, "conn": "c1"},
    **{"dir": "to-target", "origin": "harness", "raw": '{"id": 1,  "method": "x\\ud83d"}'},
}


def old_trace(file: Path, *, cut: bool = False) -> Path:
    """Write a trace of version 1 with each kind of its marks."""
    rows: list[dict[str, Any]] = [
        {"trace": {"target": "old", "version": 1}},
        {**FRAME, "raw": "a line with \u2028 in it"},
        {**FRAME, "frame": 1, "raw": "", "note": "half a line", "at": 0.02},
        *({"mark": kind, "at": 0.03, "after": 1, "data": row} for kind, row, _ in FORMER),
        {"mark": "no-longer-there", "at": 0.03, "after": 1, "data": {}},
        {"end": "quiescent"},
    ]
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    file.write_text(text[:-4] if cut else text, "utf-8")
    return file


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut off"])
def test_an_upgraded_trace_is_read_as_before(tmp_path: Path, cut: bool) -> None:
    file = old_trace(tmp_path / "old.jsonl", cut=cut)
    before = load(file)
    assert upgrade_trace(file) is True
    after = load(file)
    assert [frame.raw for frame in after.frames] == [frame.raw for frame in before.frames]
    assert [frame.damage for frame in after.frames] == [frame.damage for frame in before.frames]
    assert after.marks == before.marks
    assert len(after.marks) == len(FORMER)
    assert after.end == before.end
    # A mark of a kind that is gone had a line of its own.
    assert [re.sub(r"\d+", "N", one) for one in after.damage] == [
        re.sub(r"\d+", "N", one) for one in before.damage
    ]
    head = json.loads(file.read_text("utf-8").splitlines()[0])["trace"]
    assert (head["version"], head["marks"]) == (FORMAT_VERSION, MARKS_VERSION)
    assert upgrade_trace(file) is False
    assert [one.name for one in tmp_path.iterdir()] == ["old.jsonl"]


def test_a_current_trace_keeps_every_byte(tmp_path: Path) -> None:
    file = tmp_path / "good.jsonl"
    file.write_bytes(GOOD[0].read_bytes())
    assert upgrade_trace(file) is False
    assert file.read_bytes() == GOOD[0].read_bytes()


def test_a_file_that_is_not_a_trace_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text('{"other": 1}\n')
    with pytest.raises(TraceFormatError, match=r"other\.jsonl:1: not a trace line"):
        upgrade_trace(file)
    assert file.read_text() == '{"other": 1}\n'
