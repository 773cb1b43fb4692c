"""The story of a violation: requirement, expected, actual, wire lines, stderr, how to repeat it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from shlex import quote

import pytest

from harness.judge.verdict import Level, Place, Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.report.results.report import Issue, Proof, Report, RuleResult
from harness.report.story import issue_story, rule_story
from harness.report.wire_lines import frame_line
from harness.trace.frame import Damage, DamageKind, Direction
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


def story(
    trace: Path | str,
    *frames: tuple[int, ...],
    stderr: str = "",
    rule: str = RULE,
    clauses: tuple[str, ...] = (),
) -> str:
    proofs = [
        Proof(
            f"s{index}",
            Row(rule, f"turn {index}", Verdict.FAIL, Level.MUST, seqs, "one", "two", clauses),
            str(trace),
            "/there/s.scenario.yaml",
            stderr,
        )
        for index, seqs in enumerate(frames)
    ]
    result = RuleResult(rule, "A turn ends once", Level.MUST, Verdict.FAIL, proofs=proofs)
    return rule_story(result, load_book(), Report("p", "a 'b'"))


def test_verbose_story_names_the_class_of_the_rule() -> None:
    proof = Proof(
        "s", Row(RULE, "turn 0", Verdict.FAIL, Level.MUST, (), "one", "two"), "", "/s", ""
    )
    rule = RuleResult(RULE, "A turn ends once", Level.MUST, Verdict.FAIL, proofs=[proof])
    report = Report("p", "a 'b'")
    assert "judged by" not in rule_story(rule, load_book(), report)
    told = rule_story(rule, load_book(), report, verbose=True)
    assert re.search(r"judged by \w+ at harness/judge/rules/\S+\.py:\d+", told)


def test_clauses_of_no_requirement_leave_those_of_the_rule(trace: Path) -> None:
    assert story(trace, (20,), clauses=("no.such-clause",)) == story(trace, (20,))


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
        "by hand   harness show",
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
    assert "2 more subject(s) break this rule:" in told
    assert "  s2: turn 2: two" in told


def test_the_scenarios_that_break_a_rule_are_all_named(trace: Path) -> None:
    row = Row(RULE, "turn 0", Verdict.FAIL, Level.MUST, (1,), "one", "two")
    proofs = [Proof("s1", row, str(trace), "/s", "")]
    names = ["s1", "s2", "s3"]
    rule = RuleResult(RULE, "T", Level.MUST, Verdict.FAIL, proofs=proofs, broken_in=names)
    told = rule_story(rule, load_book(), Report("p", "a 'b'"))
    assert told.splitlines()[-1] == "broken in 3 scenarios: s1, s2, s3"


def test_story_is_told_without_a_trace_too(tmp_path: Path) -> None:
    for trace in ("", tmp_path / "none.jsonl"):
        told = story(trace, (1,))
        assert "actual    two" in told
        assert "wire (ms" not in told


def test_frame_line_says_direction_time_and_what_is_odd() -> None:
    recorder = Recorder(clock=iter((0.0, 0.0125)).__next__)
    frame = recorder.record(
        b"\xff\x1b[31m", Direction.TO_TARGET, damage=Damage(DamageKind.CUT_OFF, "odd")
    )
    assert frame_line(frame, marked=True) == "  *      12.5 → #0 \\xff\\x1b[31m  [odd]"


def placed(tmp_path: Path, messages: list[dict[str, object]], *places: Place) -> str:
    """The story of a finding about members of these messages."""
    recorder = Recorder(Header(profile="p"), clock=lambda: 0.0)
    for message in messages:
        recorder.record(json.dumps(message).encode(), Direction.FROM_TARGET)
    path = tmp_path / "placed.jsonl"
    save(recorder.trace, path)
    seqs = tuple(place.frame for place in places)
    row = Row(RULE, "turn u", Verdict.FAIL, Level.MUST, seqs, "one", "two", places=places)
    rule = RuleResult(RULE, "A turn ends once", Level.MUST, Verdict.FAIL)
    rule.proofs.append(Proof("s", row, str(path), "/there/s.scenario.yaml", ""))
    return rule_story(rule, load_book(), Report("p", "cmd"))


def test_the_member_that_is_wrong_is_shown_in_a_message_of_any_length(tmp_path: Path) -> None:
    items = [{"id": f"item-{number}", "text": "x" * 400} for number in range(50)]
    items[30]["text"] = "y" * 300 + "HERE" + "y" * 300
    message: dict[str, object] = {"method": "turn/completed", "params": {"items": items}}
    told = placed(tmp_path, [message], Place(0, "params.items[30].text", 300))
    line = next(line for line in told.splitlines() if line.startswith("  *"))
    assert "turn/completed" in line
    assert '"text": "' in line
    assert "HERE" in line
    assert len(line) < 500


def test_every_message_of_the_proof_is_shown_before_those_around_it(trace: Path) -> None:
    told = story(trace, tuple(range(0, 40, 3)))
    marked = [line for line in told.splitlines() if line.startswith("  *")]
    assert len(marked) == 14


def test_a_proof_of_more_messages_than_fit_tells_how_many_are_left_out(trace: Path) -> None:
    told = story(trace, tuple(range(40)))
    marked = [line for line in told.splitlines() if line.startswith("  *")]
    assert len(marked) == 14
    assert "      … 26 more message(s) of the proof" in told
    assert '"number": 39' in marked[-1]


def test_a_story_names_the_command_that_explains_its_requirement(trace: Path) -> None:
    told = story(trace, (1,))
    assert f"; harness explain {RULE}" in told
    assert "docs/" not in told


def test_a_story_shows_the_broken_requirements_first_and_names_the_others(trace: Path) -> None:
    broken = ("thread-unarchive.restores", "thread-list.cwd")
    shown = _shown_requirements(story(trace, (1,), rule="list.complete", clauses=broken))
    assert shown == [*broken]
    # Without clauses the requirements that name this rule before others are the first ones.
    told = story(trace, (1,), rule="list.complete")
    assert _shown_requirements(told)[:2] == ["thread-list.complete", "thread-unarchive.restores"]
    assert "and thread-list.archived, thread-list.cwd, thread-list.search-term\n" in told


def _shown_requirements(told: str) -> list[str]:
    lines = [line.split() for line in told.splitlines()]
    return [words[1].rstrip(":") for words in lines if words[:1] == ["requirement"]]


def test_a_finding_of_the_run_tells_what_it_means_and_how_to_see_it_again() -> None:
    issue = Issue("setup.not-started", "it ended", Level.MUST, repeat="harness doctor --target p")
    assert issue_story(issue).splitlines() == [
        "setup.not-started: it ended",
        "",
        "means     the server does not start, or ends before it answers; "
        "harness explain setup.not-started",
        "repeat    harness doctor --target p",
    ]
