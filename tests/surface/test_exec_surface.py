"""A surface that is no session: programs that write events, run, recorded, stored and judged."""

import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from stream_rules import RULES

from harness.cli.commands.show import sent_bytes, show_trace
from harness.cli.commands.stored_traces import check_trace
from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Verdict
from harness.play.program_run import Program, run_program
from harness.protocol.spec.loading import load_book
from harness.trace.frame import Direction, Kind
from harness.trace.marks import ProgramEnded, ProgramErrors, ProgramStarted
from harness.trace.recorder import Recorder, TraceFull
from harness.trace.store import TraceFormatError, load, save
from harness.trace.surface.agent_exec import event_type
from harness.trace.surface.registry import SURFACES, classify_of, surface_named
from harness.trace.trace import End, Header, Trace

PROGRAM = Path(__file__).parents[2] / "fixtures" / "programs" / "stream.py"
BOUND = 20.0
pytestmark = pytest.mark.socket


def recorder(max_frames: int = 100) -> Recorder:
    header = Header(target="stream.py", surface="exec")
    return Recorder(header, classify=classify_of("exec"), max_frames=max_frames)


async def run(
    place: Path, *habits: str, into: Recorder | None = None, connection: str = "p1"
) -> Trace:
    into = into or recorder()
    program = Program([sys.executable, str(PROGRAM), *habits], place, {}, place, b"say hello\n")
    within = anyio.CancelScope(deadline=anyio.current_time() + BOUND)
    if "hangs" in habits:
        into.listeners.append(
            lambda frame: within.cancel() if event_type(frame) == "turn.started" else None
        )
    # Of the end of its input a program that hangs takes no notice: TERM follows at once.
    grace = 0.1 if "hangs" in habits else BOUND
    await run_program(into, program, connection=connection, scope=within, grace=grace)
    return into.trace


def verdicts(trace: Trace) -> dict[tuple[str, str], Verdict]:
    return {(row.rule, row.subject): row.verdict for row in judge(load_book(), trace, RULES)}


def failures(trace: Trace) -> set[tuple[str, str]]:
    return {key for key, verdict in verdicts(trace).items() if verdict is not Verdict.PASS}


async def test_a_run_is_recorded_with_its_input_lines_errors_and_end(tmp_path: Path) -> None:
    trace = await run(tmp_path, "fails", "noise")
    assert [(frame.kind, frame.direction) for frame in trace.frames] == [
        (Kind.INPUT, Direction.TO_TARGET),
        (Kind.EVENT, Direction.FROM_TARGET),
        (Kind.EVENT, Direction.FROM_TARGET),
        (Kind.MALFORMED, Direction.FROM_TARGET),
        (Kind.EVENT, Direction.FROM_TARGET),
    ]
    assert trace.frames[0].raw == b"say hello\n"
    assert trace.frames[4].json == {
        "type": "turn.failed",
        "error": {"message": "the model refused"},
    }
    argv = (sys.executable, str(PROGRAM), "fails", "noise")
    assert [mark.body for mark in trace.marks] == [
        ProgramStarted("p1", argv, str(tmp_path)),
        ProgramErrors("p1", "the model refused\n"),
        ProgramEnded("p1", status=1, push="none"),
    ]
    assert trace.end is End.QUIESCENT


async def test_a_stream_that_keeps_the_rules_passes_all_of_them(tmp_path: Path) -> None:
    assert verdicts(await run(tmp_path)) == {
        ("exec.thread-first", "turn 1 of p1"): Verdict.PASS,
        ("exec.end-is-last", "turn 1 of p1"): Verdict.PASS,
        ("exec.turn-ends", "turn 1 of p1"): Verdict.PASS,
        ("stream.status-tells-failure", "process p1"): Verdict.PASS,
    }


@pytest.mark.parametrize(
    ("habits", "found"),
    [
        (("fails",), set()),
        (("thread-late",), {("exec.thread-first", "turn 1 of p1")}),
        (("never-ends",), {("exec.turn-ends", "turn 1 of p1")}),
        (
            ("ends-twice",),
            {("exec.end-is-last", "turn 1 of p1"), ("stream.status-tells-failure", "process p1")},
        ),
    ],
)
async def test_a_habit_breaks_its_rule_live_and_stored(
    tmp_path: Path, habits: tuple[str, ...], found: set[tuple[str, str]]
) -> None:
    trace = await run(tmp_path, *habits)
    assert failures(trace) == found
    save(trace, tmp_path / "run.jsonl")
    stored = load(tmp_path / "run.jsonl", classify_of=classify_of)
    assert stored.header == trace.header
    assert [(one.raw, one.kind, one.connection) for one in stored.frames] == [
        (one.raw, one.kind, one.connection) for one in trace.frames
    ]
    assert [one.body for one in stored.marks] == [one.body for one in trace.marks]
    assert verdicts(stored) == verdicts(trace)


async def test_events_missing_from_a_program_that_we_ended_are_not_judged(tmp_path: Path) -> None:
    trace = await run(tmp_path, "hangs")
    assert trace.end is End.TIMED_OUT
    assert trace.marks[-1].body == ProgramEnded("p1", status=-15, push="TERM")
    assert ("exec.turn-ends", "turn 1 of p1") not in verdicts(trace)
    trace.end = End.QUIESCENT
    assert verdicts(trace)["exec.turn-ends", "turn 1 of p1"] is Verdict.FAIL


async def test_each_process_of_a_trace_is_judged_by_itself(tmp_path: Path) -> None:
    """Marks that name a process reach the rules of that one, though there are several."""
    both = recorder()
    await run(tmp_path, "ends-twice", into=both, connection="p1")
    await run(tmp_path, "thread-late", into=both, connection="p2")
    assert failures(both.trace) == {
        ("exec.end-is-last", "turn 1 of p1"),
        ("stream.status-tells-failure", "process p1"),
        ("exec.thread-first", "turn 1 of p2"),
    }
    assert verdicts(both.trace)["stream.status-tells-failure", "process p2"] is Verdict.PASS


async def test_a_program_that_writes_too_much_is_ended(tmp_path: Path) -> None:
    with pytest.raises(TraceFull):
        await run(tmp_path, "hangs", into=recorder(max_frames=2))


async def test_rules_of_one_surface_do_not_judge_another(tmp_path: Path) -> None:
    trace = await run(tmp_path, "noise", "thread-late")
    found = {row.rule for row in judge(load_book(), trace, all_rules().values())}
    assert found
    assert all(rule.startswith("exec.") for rule in found)
    as_session = replace(trace.header, surface="session")
    rows = judge(load_book(), replace(trace, header=as_session), [*all_rules().values(), *RULES])
    assert "frame.well-formed" in {row.rule for row in rows}
    assert not [row for row in rows if row.rule.startswith(("stream.", "exec."))]


async def test_check_judges_a_stored_run_and_shows_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    save(await run(tmp_path, "ends-twice"), path)
    checked = check_trace(path, rules=RULES)
    assert checked.red
    shown = "\n".join(checked.lines())
    assert "exec.end-is-last: turn 1 of p1" in shown
    assert '"message": "once more"' in shown
    assert any("program-ended" in line for line in show_trace(path).lines())
    assert sent_bytes(path) == b"say hello\n"


async def test_check_owes_nothing_where_the_file_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    save(await run(tmp_path, "never-ends"), path)
    assert check_trace(path, rules=RULES).red
    whole = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(whole[:-1]), "utf-8")
    cut = check_trace(path, rules=RULES)
    assert not cut.red
    assert "its file ends before the trace did" in "\n".join(cut.lines())
    assert check_trace(path, rules=RULES, settled=True).red


async def test_check_refuses_what_no_rule_judges(tmp_path: Path) -> None:
    """Nothing found is not nothing wrong."""
    path = tmp_path / "run.jsonl"
    save(await run(tmp_path), path)
    with pytest.raises(TraceFormatError, match="no rule judges the surface 'exec' yet"):
        check_trace(path, rules=[one for one in all_rules().values() if one.surface != "exec"])


async def test_a_reader_of_sessions_refuses_another_surface(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    save(await run(tmp_path), path)
    with pytest.raises(TraceFormatError, match="of the surface 'exec'; expected 'session'"):
        load(path)
    text = path.read_text("utf-8").replace('"surface":"exec"', '"surface":"smoke"')
    path.write_text(text, "utf-8")
    with pytest.raises(TraceFormatError, match="no surface 'smoke'; there are session, exec"):
        load(path, classify_of=classify_of)


def test_every_rule_is_of_a_surface_that_exists() -> None:
    assert {rule.surface for rule in all_rules().values()} <= set(SURFACES)
    assert [surface_named(name).name for name in SURFACES] == list(SURFACES)
