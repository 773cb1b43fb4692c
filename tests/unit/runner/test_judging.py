"""Outcome of a scenario from a run made by hand: the right finding, and no other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.client.target.profile import Profile
from harness.judge.verdict import Verdict
from harness.model.model import ScriptedModel
from harness.model.wire.responses import ResponsesEncoder
from harness.play.judging import blocked_outcome, outcome_of
from harness.play.run import Run
from harness.report.results.outcome import Finding, ScenarioOutcome
from harness.scenario.ending import TraceEnding
from harness.scenario.identity import bundled_folder
from harness.scenario.loader import Loaded, load_text
from harness.scenario.player import Cast, StepFailure
from harness.scenario.steps.context import FailureKind
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder
from harness.trace.trace import End
from tests.unit.results.outcomes import BOOK, RULES, entry

SCENARIO = """
title: a scenario
covers: [{covers}]
needs: [{needs}]
client:
  - start_thread: {{as: t}}
  - start_turn: {{thread: t, text: hello, as: u}}
expect:
  model_calls: {calls}
"""
SAID = [
    (Direction.TO_TARGET, {"method": "initialize", "id": 1, "params": {}}),
    (Direction.FROM_TARGET, {"id": 1, "result": {}}),
]
TIMED_OUT = StepFailure(
    FailureKind.TIMEOUT, "start_thread", 6, "waited 5 s for an answer; it did not come"
)


def scenario(covers: str = "", needs: str = "", calls: int = 0) -> Loaded:
    return load_text(SCENARIO.format(covers=covers, needs=needs, calls=calls), name="mine")


def run(
    ended: TraceEnding,
    unmet: StepFailure | None = None,
    *,
    also: Sequence[dict[str, Any]] = (),
    **more: Any,
) -> Run:
    recorder = Recorder()
    for direction, message in (*SAID, *((Direction.FROM_TARGET, one) for one in also)):
        recorder.record(json.dumps(message).encode(), direction)
    recorder.trace.end = ended.end
    model = ScriptedModel([], ResponsesEncoder())
    fields: dict[str, Any] = {"stderr": "last words", "seconds": 1.5, "bound": 20.0, **more}
    return Run(recorder.trace, Cast(), unmet, ended, model, Path("/nowhere"), **fields)


def judge(
    made: Run, loaded: Loaded | None = None, *entries: Any, **profile: Any
) -> ScenarioOutcome:
    one = Profile(name="p", **profile)
    return outcome_of(made, loaded or scenario(), BOOK, one, entries, RULES)


def findings(outcome: ScenarioOutcome) -> list[tuple[str, str]]:
    return [(finding.id, finding.message) for finding in outcome.findings]


def test_run_to_the_end_passes() -> None:
    outcome = judge(run(TraceEnding(End.QUIESCENT)))
    assert (outcome.verdict, outcome.findings, outcome.played) == (Verdict.PASS, [], True)
    assert (outcome.end, outcome.stderr, outcome.seconds) == ("quiescent", "last words", 1.5)


def test_step_in_vain_is_a_time_out_at_its_line() -> None:
    outcome = judge(run(TraceEnding(End.QUIESCENT), TIMED_OUT))
    message = "step start_thread: waited 5 s for an answer; it did not come"
    assert findings(outcome) == [("scenario.timeout", message)]
    assert outcome.findings[0].line == 6
    assert (outcome.verdict, outcome.reason, outcome.played) == (Verdict.FAIL, message, False)


@pytest.mark.parametrize(
    ("status", "how"),
    [
        (3, "the server ended by itself with exit status 3"),
        (0, "the server ended by itself with exit status 0"),
        (-11, "the server ended by itself by signal 11"),
        (None, "the server closed its output and went on running,"),
    ],
)
def test_end_unasked_is_a_crash_with_its_status(status: int | None, how: str) -> None:
    crash = StepFailure(FailureKind.CRASH, "start_thread", 6, "the server closed the connection")
    outcome = judge(run(TraceEnding(End.EXITED), crash, status=status))
    assert findings(outcome) == [("scenario.crash", f"{how} in step start_thread")]
    assert outcome.findings[0].line == 6


def test_end_unasked_after_the_last_step_is_a_crash_too() -> None:
    outcome = judge(run(TraceEnding(End.EXITED), status=1))
    message = "the server ended by itself with exit status 1 after its last step"
    assert findings(outcome) == [("scenario.crash", message)]


def test_end_unasked_after_a_step_in_vain_is_both() -> None:
    outcome = judge(run(TraceEnding(End.EXITED), TIMED_OUT, status=1))
    assert [name for name, _ in findings(outcome)] == ["scenario.crash", "scenario.timeout"]


def test_flood_is_liveness_and_no_crash() -> None:
    crash = StepFailure(FailureKind.CRASH, "start_thread", 6, "more than 9 messages")
    outcome = judge(run(TraceEnding(End.CLOSED), crash, overflow="more than 9 messages"))
    assert findings(outcome) == [
        ("liveness.turn-does-not-end", "the server floods: more than 9 messages")
    ]


def output(*pieces: str) -> list[dict[str, Any]]:
    """Return the messages that stream a command's output in these pieces."""
    about = {"threadId": "t", "turnId": "u", "itemId": "i"}
    method = "item/commandExecution/outputDelta"
    return [{"method": method, "params": {**about, "delta": piece}} for piece in pieces]


def test_output_in_small_pieces_is_no_flood() -> None:
    crash = StepFailure(FailureKind.CRASH, "start_thread", 6, "more than 99 messages")
    closed, full = TraceEnding(End.CLOSED), "more than 99 messages"
    small = judge(run(closed, crash, overflow=full, also=output(*["\u00e9"] * 97)))
    assert (small.verdict, findings(small)) == (Verdict.NOT_EXERCISED, [])
    expected = "194 bytes of output came in 97 messages; a trace holds no more of them"
    assert small.reason == expected
    for also in (
        output(*["x"] * 96, ""),
        output(*["x" * 200_000] * 97),
        [{"method": "warning", "params": {}}] * 97,
    ):
        flood = judge(run(closed, crash, overflow=full, also=also))
        assert flood.verdict is Verdict.FAIL
        assert findings(flood)[0][0] == "liveness.turn-does-not-end"


def test_server_busy_at_the_bound_is_liveness() -> None:
    outcome = judge(run(TraceEnding(End.TIMED_OUT, ("child processes 7",), "child processes 7")))
    assert findings(outcome) == [
        (
            "liveness.turn-does-not-end",
            "the server was still busy at the scenario's bound of 20 s: child processes 7",
        )
    ]


def test_ours_outstanding_at_the_bound_is_a_time_out_of_the_scenario() -> None:
    outcome = judge(run(TraceEnding(End.TIMED_OUT, ("1 open model stream(s)",))))
    assert findings(outcome) == [
        (
            "scenario.timeout",
            "still outstanding at the scenario's bound of 20 s: 1 open model stream(s)",
        )
    ]


def test_refusal_and_other_end_are_expectations() -> None:
    for kind in (FailureKind.REFUSED, FailureKind.OTHER_END):
        outcome = judge(run(TraceEnding(End.QUIESCENT), StepFailure(kind, "wait", 6, "no")))
        assert findings(outcome) == [("scenario.expectation", "step wait: no")]


def test_unmet_expectation_stands_at_expect() -> None:
    outcome = judge(run(TraceEnding(End.QUIESCENT)), scenario(calls=2))
    never = "model calls: expected 2; found 0 (the model was never called)"
    assert findings(outcome) == [("scenario.expectation", never)]
    assert outcome.findings[0].line == 9


def test_expectations_are_not_asked_of_a_run_that_was_broken_off() -> None:
    outcome = judge(run(TraceEnding(End.QUIESCENT), TIMED_OUT), scenario(calls=2))
    assert [name for name, _ in findings(outcome)] == ["scenario.timeout"]


def test_covered_rule_that_judged_nothing_has_no_witness() -> None:
    covering = scenario(covers="turn.completes")
    outcome = judge(run(TraceEnding(End.QUIESCENT)), covering, capabilities=["core"])
    message = "turn.completes is covered by this scenario and judged nothing in it"
    assert findings(outcome) == [("scenario.no-witness", message)]
    assert outcome.findings[0].line == 3


def test_bundled_scenario_in_which_a_rule_judged_nothing_is_not_exercised() -> None:
    covering = replace(scenario(covers="turn.completes"), path=bundled_folder() / "x/mine.yaml")
    outcome = judge(run(TraceEnding(End.QUIESCENT)), covering, capabilities=["core"])
    reason = "turn.completes is covered by this scenario and judged nothing in it"
    assert (outcome.verdict, outcome.reason) == (Verdict.NOT_EXERCISED, reason)
    assert findings(outcome) == []


def test_nobody_can_say_what_an_unknown_server_gives_a_rule_to_judge() -> None:
    outcome = judge(run(TraceEnding(End.QUIESCENT)), scenario(covers="turn.completes"))
    assert (outcome.verdict, findings(outcome)) == (Verdict.PASS, [])


def test_a_breach_speaks_for_a_scenario_in_which_another_rule_judged_nothing() -> None:
    stray = {"id": 99, "result": {}}
    made = run(TraceEnding(End.QUIESCENT), also=[stray])
    outcome = judge(made, scenario(covers="turn.completes"), capabilities=["core"])
    assert "response.known-id" in {row.rule for row in outcome.rows if row.verdict is Verdict.FAIL}
    assert findings(outcome) == []


def test_covered_rule_that_judged_something_has_its_witness() -> None:
    assert (
        judge(run(TraceEnding(End.QUIESCENT)), scenario(covers="request.answered")).findings == []
    )


def test_known_finding_makes_the_scenario_known() -> None:
    outcome = judge(
        run(TraceEnding(End.QUIESCENT), TIMED_OUT), None, entry("scenario.timeout", reason="slow")
    )
    assert (outcome.verdict, outcome.reason) == (Verdict.KNOWN, "slow")


def test_one_unknown_finding_beside_a_known_one_fails() -> None:
    made = run(TraceEnding(End.EXITED), TIMED_OUT, status=1)
    outcome = judge(made, None, entry("scenario.timeout"))
    assert outcome.verdict is Verdict.FAIL
    assert outcome.reason.startswith("the server ended by itself")


def test_need_that_is_not_offered_does_not_apply() -> None:
    outcome = judge(run(TraceEnding(End.QUIESCENT)), scenario(needs="model-retry", calls=3))
    assert outcome.verdict is Verdict.NOT_APPLICABLE
    assert outcome.reason == "the server does not offer model-retry"
    assert outcome.missing == ("model-retry",)
    assert outcome.findings == []


def test_need_that_a_probe_has_shown_is_not_the_reason() -> None:
    one = scenario(needs="model-retry, idle-timeout", calls=3)
    made = run(TraceEnding(End.QUIESCENT))
    for offered, missing in (
        ((), ("model-retry", "idle-timeout")),
        (("model-retry",), ("idle-timeout",)),
        # A probe may have seen less than the scenario needs.
        (("model-retry", "idle-timeout"), ("model-retry", "idle-timeout")),
    ):
        outcome = outcome_of(made, one, BOOK, Profile(name="p"), (), RULES, offered)
        assert (outcome.verdict, outcome.missing) == (Verdict.NOT_APPLICABLE, missing)


def test_a_rule_that_does_not_apply_gives_no_witness_and_still_shows_a_breach() -> None:
    for needs, verdicts in (("", {Verdict.PASS, Verdict.FAIL}), ("model-retry", {Verdict.FAIL})):
        made = run(TraceEnding(End.QUIESCENT))
        recorder = Recorder()
        for direction, message in (*SAID, (Direction.FROM_TARGET, {"id": 99, "result": {}})):
            recorder.record(json.dumps(message).encode(), direction)
        made.trace.frames[:] = recorder.trace.frames
        outcome = judge(made, scenario(needs=needs))
        assert {row.verdict for row in outcome.rows} == verdicts
        assert "response.known-id" in {r.rule for r in outcome.rows if r.verdict is Verdict.FAIL}


def test_rule_that_needs_what_is_not_offered_judges_nothing() -> None:
    progress = {"method": "item/mcpToolCall/progress", "params": {}}
    for needs, verdicts in (("mcp-tools", [Verdict.FAIL]), ("mcp-tools, steering", [])):
        made = run(TraceEnding(End.QUIESCENT))
        recorder = Recorder()
        for direction, message in (*SAID, (Direction.FROM_TARGET, progress)):
            recorder.record(json.dumps(message).encode(), direction)
        made.trace.frames[:] = recorder.trace.frames
        lacking = StepFailure(
            FailureKind.TIMEOUT, "wait", 6, "it is not offered", capability="mcp-tools"
        )
        made.unmet = lacking if not verdicts else None
        rows = judge(made, scenario(needs=needs)).rows
        found = [row.verdict for row in rows if row.rule == "mcp.progress-of-call"]
        assert found == verdicts


def test_need_that_is_declared_is_promised() -> None:
    made = run(TraceEnding(End.QUIESCENT))
    needy = scenario(needs="model-retry", calls=3)
    outcome = judge(made, needy, capabilities=["core", "model-retry"])
    assert outcome.verdict is Verdict.FAIL
    undeclared = judge(made, needy, capabilities=["core"])
    assert undeclared.verdict is Verdict.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("ended", "unmet"),
    [
        (TraceEnding(End.QUIESCENT), TIMED_OUT),
        (TraceEnding(End.EXITED), None),
        (TraceEnding(End.TIMED_OUT, (), "it keeps sending messages"), None),
        (TraceEnding(End.CLOSED), None),
    ],
)
def test_server_that_broke_off_is_not_said_to_lack_anything(
    ended: TraceEnding, unmet: StepFailure | None
) -> None:
    made = run(ended, unmet, overflow="a flood" if ended.end is End.CLOSED else "")
    assert judge(made, scenario(needs="model-retry")).verdict is Verdict.FAIL


def test_set_up_finding_leaves_nothing_judged() -> None:
    made = run(TraceEnding(End.QUIESCENT))
    made.findings.append(Finding("setup.model-not-called", "never"))
    outcome = judge(made)
    assert (outcome.verdict, outcome.reason) == (Verdict.NOT_EXERCISED, "setup.model-not-called")
    assert outcome.rows == []


def test_blocked_scenario_says_why_and_has_no_finding_of_its_own() -> None:
    outcome = blocked_outcome(scenario(), Finding("setup.not-started", "exit status 3"))
    assert outcome.verdict is Verdict.NOT_EXERCISED
    assert outcome.reason == "setup.not-started: exit status 3"
    assert (outcome.findings, outcome.played) == ([], False)


FAULTY = """
title: a scenario with faults
faults:
  - duplicate: x/y
  - drop: x/z
client:
  - start_thread: {as: t}
expect:
  violations: [response.once, turn.completes]
"""


def test_a_scenario_with_faults_says_which_rules_notice_them() -> None:
    """One of the two rules is broken, a third is too, and one fault never acted."""
    said = [{"id": 1, "result": {}}, {"method": "turn/completed", "params": 7}]
    made = run(TraceEnding(End.QUIESCENT), also=said, idle_faults={1: "no x/z"})
    outcome = judge(made, load_text(FAULTY, name="mine"))
    found = {finding.id: (finding.message, finding.line) for finding in outcome.findings}
    assert found["scenario.fault-idle"] == ("the fault drop never acted: no x/z", 5)
    assert found["scenario.fault-unnoticed"] == (
        "turn.completes was expected to fail, but it found nothing wrong",
        9,
    )
    message, line = found["scenario.fault-breaks-more"]
    assert "more rules are broken: frame.well-formed; name them under" in message
    assert line == 4
    assert (outcome.verdict, outcome.rows) == (Verdict.FAIL, [])


def test_a_scenarios_own_faults_are_no_breach_of_the_server() -> None:
    text = FAULTY.replace(", turn.completes", "")
    made = run(TraceEnding(End.QUIESCENT), also=[{"id": 1, "result": {}}])
    outcome = judge(made, load_text(text, name="mine"))
    assert (outcome.verdict, outcome.rows, outcome.findings) == (Verdict.PASS, [], [])
