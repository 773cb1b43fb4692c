"""The two releases of a bisection's result side by side: what each of them sent."""

from collections.abc import Iterator, Sequence

from harness.judge.judge import judge
from harness.judge.rules.discovery import every_rule
from harness.judge.verdict import Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.report.compare.values import PLAYED
from harness.report.results.report import Proof, Report, ScenarioResult
from harness.report.results.rerun_command import near_path
from harness.report.wire_lines import frame_line, load_stored, proof_lines
from harness.search.releases.question import Question
from harness.trace.frame import Frame
from harness.trace.marks import StepBegins
from harness.trace.trace import Trace

# The messages that are shown of a scenario's step, or of the end of a trace.
MAX_MESSAGES = 8


def side_lines(question: Question, report: Report, other: Report) -> list[str]:
    """Return what one release did: its finding, or what it did where the other has the finding."""
    if proof := question.proof(report):
        return _violation_lines(proof)
    if proof := question.proof(other):
        return _kept_lines(question, proof, _scenario(report, proof.scenario))
    names = question.broken_in(report) or question.broken_in(other) or question.scenarios
    result, others = _scenario(report, names[0]), _scenario(other, names[0])
    if result is None:
        return ["not played"]
    failing = next((one for one in (result, others) if one and one.messages), result)
    line = failing.messages[0][2] if failing.messages else 0
    return [*_outcome_lines(result), *_step_lines(result, line)]


def _violation_lines(proof: Proof) -> list[str]:
    row, trace = proof.row, load_stored(proof.trace)
    lines = [f"{row.subject}: expected {row.expected}; actual {row.actual}"]
    if trace is None:
        return lines
    if not row.frames:
        return [*lines, *_frame_lines(trace.frames[-MAX_MESSAGES:])]
    return [*lines, *proof_lines(trace, row.frames, row.places)]


def _kept_lines(question: Question, proof: Proof, result: ScenarioResult | None) -> list[str]:
    """Return the messages by which a release keeps the rule, or nearest to what the other sent."""
    if result is None:
        return ["the scenario was not played"]
    trace = load_stored(result.trace)
    if trace is None or result.verdict not in PLAYED:
        return _outcome_lines(result)
    rows = judge(load_book(), trace, [every_rule()[question.finding]])
    kept = [row for row in rows if row.verdict is Verdict.PASS and row.frames]
    if row := _most_alike(kept, proof.row):
        return [f"{row.subject}: the rule is kept", *proof_lines(trace, row.frames)]
    broken = load_stored(proof.trace)
    frames = [broken.frames[seq] for seq in proof.row.frames] if broken else []
    methods = {frame.method for frame in frames}
    same = [frame for frame in trace.frames if frame.method and frame.method in methods]
    if same:
        return [
            "the rule finds nothing broken; the same messages:",
            *_frame_lines(same[:MAX_MESSAGES]),
        ]
    names = ", ".join(sorted(filter(None, methods)))
    words = f"no {names} in its {len(trace.frames)} messages" if names else "nothing to judge"
    return [f"{words}; the last:", *_frame_lines(trace.frames[-MAX_MESSAGES:])]


def _most_alike(rows: Sequence[Row], broken: Row) -> Row | None:
    """Return the row whose subject shares most words with the broken one's, such as an id."""
    words = set(broken.subject.split())
    return max(rows, key=lambda row: len(words & set(row.subject.split())), default=None)


def _outcome_lines(scenario: ScenarioResult) -> list[str]:
    lines = [f"{scenario.verdict}{f': {scenario.reason}' if scenario.reason else ''}"]
    return lines + [
        f"{name}: {message}" for name, message, _ in scenario.messages if message != scenario.reason
    ]


def _step_lines(scenario: ScenarioResult, line: int) -> list[str]:
    """Return the first messages since the step in this line began, or the last of the trace."""
    trace = load_stored(scenario.trace)
    if trace is None or not trace.frames:
        return []
    begin = _step_begin(trace, line)
    frames = trace.frames[begin:][:MAX_MESSAGES] if begin else trace.frames[-MAX_MESSAGES:]
    return list(_frame_lines(frames))


def _step_begin(trace: Trace, line: int) -> int:
    marks = [mark.after + 1 for mark in trace.marks_of(StepBegins) if mark.body.line == line]
    return marks[0] if line and marks else 0


def _frame_lines(frames: Sequence[Frame]) -> Iterator[str]:
    return map(frame_line, frames)


def _scenario(report: Report, name: str) -> ScenarioResult | None:
    return next((one for one in report.scenarios if one.id == name), None)


def trace_path(report: Report, scenario: str) -> str:
    """Return the stored trace of a scenario, as a user would type it; "" if there is none."""
    result = _scenario(report, scenario)
    return near_path(result.trace) if result and result.trace else ""
