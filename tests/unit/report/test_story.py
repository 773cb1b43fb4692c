"""The story of a violation: requirement, expected, actual, wire lines, stderr, how to repeat it."""

from __future__ import annotations

import json
from pathlib import Path
from shlex import quote

import pytest

from harness.report.model import Proof, Report, RuleResult
from harness.report.story import rule_story
from harness.report.wirelines import frame_line
from harness.rules.verdict import Level, Row, Verdict
from harness.spec.book import load_book
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder
from harness.trace.store import save
from harness.trace.trace import Header

RULE = "turn.completed-once"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Forty messages, one every millisecond."""
    now = iter(range(1000))
    recorder = Recorder(Header(profile="p"), clock=lambda: next(now) / 1000)
    for number in range(40):
        message = {"method": "thread/x", "params": {"number": number}}
        recorder.record(json.dumps(message).encode(), Direction.FROM_TARGET)
    path = tmp_path / "trace.jsonl"
    save(recorder.trace, path)
    return path


def story(trace: Path | str, *frames: tuple[int, ...], stderr: str = "") -> str:
    proofs = [
        Proof(
            f"s{index}",
            Row(RULE, f"turn {index}", Verdict.FAIL, Level.MUST, seqs, "one", "two"),
            str(trace),
            "/there/s.scenario.yaml",
            stderr,
        )
        for index, seqs in enumerate(frames)
    ]
    rule = RuleResult(RULE, "A turn ends once", Level.MUST, Verdict.FAIL, proofs=proofs)
    return rule_story(rule, load_book(), Report("p", "a 'b'"))


def test_story_has_its_parts_in_order(trace: Path) -> None:
    told = story(trace, (20,), stderr="first\nlast words\n")
    quoted = quote("a 'b'")
    parts = [
        f"{RULE} (MUST): A turn ends once",
        "requirement",
        "session-protocol",
        "subject   turn 0",
        "expected  one",
        "actual    two",
        "wire (ms since the trace began; * marks the proof):",
        "the end of the server's stderr:",
        "| last words",
        "scenario  /there/s.scenario.yaml:1",
        f"repeat    harness run --target p --server-cmd {quoted} --rule {RULE} ",
        "judge     harness check ",
        "without us",
    ]
    places = [told.find(part) for part in parts]
    assert -1 not in places, parts[places.index(-1)]
    assert places == sorted(places)


def test_wire_lines_are_those_around_the_proof(trace: Path) -> None:
    lines = [line for line in story(trace, (5, 30)).splitlines() if "thread/x" in line]
    numbers = [json.loads(line[line.index("{") :])["params"]["number"] for line in lines]
    assert numbers == [3, 4, 5, 6, 7, 28, 29, 30, 31, 32]
    assert [numbers[index] for index, line in enumerate(lines) if line.startswith("  *")] == [5, 30]
    assert "      …" in story(trace, (5, 30))


def test_proof_without_frames_shows_the_last_messages(trace: Path) -> None:
    assert '"number": 39' in story(trace, ())


def test_other_violations_are_counted_and_named(trace: Path) -> None:
    told = story(trace, (1,), (2,), (3,))
    assert "2 more violation(s) of this rule:" in told
    assert "  s2: turn 2: two" in told


def test_story_is_told_without_a_trace_too(tmp_path: Path) -> None:
    for trace in ("", tmp_path / "none.jsonl"):
        told = story(trace, (1,))
        assert "actual    two" in told
        assert "wire (ms" not in told


def test_frame_line_says_direction_time_and_what_is_odd() -> None:
    recorder = Recorder(clock=iter((0.0, 0.0125)).__next__)
    frame = recorder.record(b"\xff\x1b[31m", Direction.TO_TARGET, note="odd")
    assert frame_line(frame, marked=True) == "  *      12.5 → \\xff\\x1b[31m  [odd]"
