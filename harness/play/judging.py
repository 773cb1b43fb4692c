"""The outcome of a scenario, from its run: rules, own expectations, missing capabilities.

In a scenario with faults each fault must act, and only the expected rules may fail.
"""

from collections.abc import Collection, Iterator, Sequence

from harness.client.target.profile import Deviation, Profile
from harness.judge.base import Monitor
from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Place, Row, Verdict
from harness.play.agent_exec.evidence import absent_from_exec
from harness.play.capability_evidence import absent_needs
from harness.play.output_pieces import describe_small_pieces
from harness.play.run import Run
from harness.play.session.servers import SetupFailed
from harness.play.times import measure_times, slow_step_findings
from harness.protocol.spec.book import Book
from harness.protocol.values import show_path
from harness.report.results.baseline import mark_known_finding, mark_known_row
from harness.report.results.outcome import SLOW_STEP, Finding, ScenarioOutcome
from harness.report.results.report import NOT_OFFERED
from harness.scenario.exec_expect import ExecReading
from harness.scenario.expect import Problem, SessionReading
from harness.scenario.expect import unmet_expectations as unmet_expectations
from harness.scenario.identity import is_bundled
from harness.scenario.loader import Loaded
from harness.scenario.sdk_results import results_by_alias
from harness.scenario.steps.context import FailureKind
from harness.scenario.surfaces import needs_agent
from harness.trace.surfaces import COMMAND, EXEC, SDK
from harness.trace.trace import End
from harness.trace.views import Conversation, conversation_of


def check_faults(loaded: Loaded, run: Run, rows: Sequence[Row]) -> list[Finding]:
    """Return findings for faults that never acted, and for unexpected verdicts of rules.

    A broken rule of the level MUST has to be listed in `expect`; others may be.
    """
    findings = list(_idle_fault_findings(loaded, run))
    broken = {row.rule: row for row in rows if row.verdict in (Verdict.FAIL, Verdict.KNOWN)}
    named = loaded.scenario.expect.violations
    for index, rule in enumerate(named):
        if rule not in broken:
            message = f"{rule} was expected to fail, but it found nothing wrong"
            line = loaded.line_of("expect", "violations", index)
            findings.append(Finding("scenario.fault-unnoticed", message, line))
    unnamed = sorted(
        rule
        for rule, row in broken.items()
        if rule not in named and row.level is Level.MUST and row.verdict is Verdict.FAIL
    )
    if unnamed:
        message = (
            f"with the faults at work more rules are broken: {', '.join(unnamed)}; name them under "
            "expect: violations if the faults are why"
        )
        findings.append(Finding("scenario.fault-breaks-more", message, loaded.line_of("faults")))
    return findings


def _idle_fault_findings(loaded: Loaded, run: Run) -> Iterator[Finding]:
    for index, missing in run.idle_faults.items():
        entry = loaded.scenario.faults[index]
        name = entry.fault or entry.operation
        reason = f": {missing}" if missing else ""
        message = f"the fault {name} never acted{reason}"
        yield Finding("scenario.fault-idle", message, loaded.line_of("faults", index))


_FINDING_IDS = {
    FailureKind.TIMEOUT: "scenario.timeout",
    FailureKind.REFUSED: "scenario.expectation",
    FailureKind.OTHER_END: "scenario.expectation",
    FailureKind.NOT_OFFERED: "scenario.expectation",
}
# Steps that wait for messages that a server need not send.
_WAITING_STEPS = ("wait", "answer")
# Finding for a rule that judged nothing in a scenario that covers it.
_NO_WITNESS = "scenario.no-witness"
_BUSY = "liveness.turn-does-not-end"


def outcome_of(
    run: Run,
    loaded: Loaded,
    book: Book,
    profile: Profile,
    entries: Sequence[Deviation],
    rules: dict[str, type[Monitor]],
    offered: Collection[str] = (),
) -> ScenarioOutcome:
    """Judge one run and return its outcome; `offered` are capabilities that probes have shown."""
    rows = [mark_known_row(row, loaded.id, entries) for row in _judge_run(run, book, rules)]
    conversation = conversation_of(run.trace)
    small_pieces = describe_small_pieces(run)
    # A run that broke off early does not show which capabilities are absent.
    missing = [] if _broke_off(run) else _find_absent_needs(loaded, run, conversation, profile)
    # A rule that needs an absent capability does not apply: missing messages do not break it.
    rows = [row for row in rows if not set(missing) & set(rules[row.rule].needs)]
    outcome = ScenarioOutcome(
        id=loaded.id,
        path=str(loaded.path),
        title=loaded.scenario.title,
        verdict=Verdict.PASS,
        rows=rows,
        end=str(run.trace.end),
        stderr=run.stderr,
        seconds=run.seconds,
        played=run.unmet is None and run.is_complete,
        awaited=run.awaited_notification,
    )
    is_unsayable = run.unmet is not None and run.unmet.kind is FailureKind.NOT_SAYABLE
    findings = (
        []
        if missing or small_pieces or is_unsayable
        else _scenario_findings(run, loaded, conversation, rows, profile, rules)
    )
    # Bundled scenarios are known to exercise the rules they cover: this server took another path.
    idle = [one for one in findings if one.id == _NO_WITNESS and is_bundled(loaded.path)]
    findings = [one for one in findings if one not in idle]
    if loaded.scenario.faults:
        # Messages that faults changed count neither for the server nor against it.
        findings += [] if missing or is_unsayable else check_faults(loaded, run, rows)
        outcome.rows = rows = [row for row in rows if row.verdict is Verdict.ERROR]
    outcome.times = measure_times(run, loaded, profile)
    slow = slow_step_findings(outcome.times, loaded, profile)
    outcome.findings = findings = [
        mark_known_finding(finding, loaded.id, entries)
        for finding in (*run.findings, *findings, *slow)
    ]
    # A time that the server does not promise is no reason to fail.
    findings = [one for one in findings if one.id != SLOW_STEP or one.level is Level.MUST]
    if any(row.verdict is Verdict.ERROR for row in rows):
        outcome.verdict = Verdict.ERROR
        outcome.reason = "a rule, or the harness itself, broke while judging"
    elif any(f.id.startswith("setup.") for f in findings):
        # It is chance which scenario meets it first, so none that depends on it is judged.
        outcome.rows = []
        outcome.verdict = Verdict.NOT_EXERCISED
        outcome.reason = next(f.id for f in findings if f.id.startswith("setup."))
    elif is_unsayable and run.unmet is not None:
        outcome.verdict, outcome.reason = Verdict.NOT_APPLICABLE, run.unmet.message
        outcome.rows = [row for row in rows if row.verdict is not Verdict.PASS]
    elif missing:
        outcome.verdict = Verdict.NOT_APPLICABLE
        # If one need is missing and another was shown by a probe, only the first is the reason.
        named = [need for need in missing if need not in offered] or missing
        outcome.reason, outcome.missing = _not_offered_reason(named), tuple(named)
        # It stopped at the missing capability, at a point that depends on chance, so it proves no
        # rule. A violation counts in any case.
        outcome.rows = [row for row in rows if row.verdict is not Verdict.PASS]
    elif any(not finding.known for finding in findings):
        outcome.verdict = Verdict.FAIL
        outcome.reason = next(f.message for f in findings if not f.known)
    elif findings:
        outcome.verdict = Verdict.KNOWN
        outcome.reason = findings[0].known
    elif small_pieces:
        outcome.verdict = Verdict.NOT_EXERCISED
        outcome.reason = small_pieces
    elif idle:
        outcome.verdict = Verdict.NOT_EXERCISED
        outcome.reason = idle[0].message
    return outcome


def _judge_run(run: Run, book: Book, rules: dict[str, type[Monitor]]) -> list[Row]:
    """Return the rows of the rules; those of a trace that was judged when it ended are reused."""
    if run.rows is not None and rules.items() <= all_rules().items():
        return [row for row in run.rows if row.rule in rules]
    return judge(book, run.trace, rules=rules.values())


def blocked_outcome(loaded: Loaded, finding: Finding) -> ScenarioOutcome:
    """Return the outcome of a scenario that was not played, since the set-up had failed."""
    return ScenarioOutcome(
        id=loaded.id,
        path=str(loaded.path),
        title=loaded.scenario.title,
        verdict=Verdict.NOT_EXERCISED,
        # The whole message is printed once, with the finding.
        reason=f"{finding.id}: {finding.message.split(';')[0]}",
    )


def inapplicable_outcome(loaded: Loaded, missing: list[str]) -> ScenarioOutcome:
    """Return the outcome of a scenario that was not played, since the target lacks its needs."""
    return ScenarioOutcome(
        id=loaded.id,
        path=str(loaded.path),
        title=loaded.scenario.title,
        verdict=Verdict.NOT_APPLICABLE,
        reason=_not_offered_reason(missing),
        missing=tuple(missing),
        # Nothing is left to play, so baseline entries about it can be checked.
        played=True,
    )


def _find_absent_needs(
    loaded: Loaded, run: Run, conversation: Conversation, profile: Profile
) -> list[str]:
    if loaded.surface == EXEC or (loaded.surface == SDK and needs_agent(loaded.scenario)):
        return absent_from_exec(loaded, run, profile)
    if loaded.surface in (COMMAND, SDK):
        return []
    return absent_needs(loaded, run, conversation, profile)


def _not_offered_reason(missing: list[str]) -> str:
    return f"{NOT_OFFERED}{', '.join(missing)}"


def setup_outcome(
    loaded: Loaded, failed: SetupFailed, book: Book, rules: dict[str, type[Monitor]]
) -> ScenarioOutcome:
    """Return the outcome of the scenario during which the set-up failed."""
    outcome = blocked_outcome(loaded, failed.finding)
    outcome.findings = [failed.finding]
    # Messages before the failure are judged; missing ones are not (the end is CLOSED).
    outcome.rows = judge(book, failed.trace, rules=rules.values())
    return outcome


def _scenario_findings(
    run: Run,
    loaded: Loaded,
    conversation: Conversation,
    rows: Sequence[Row],
    profile: Profile,
    rules: dict[str, type[Monitor]],
) -> list[Finding]:
    findings: list[Finding] = []
    unmet = run.unmet
    if run.has_died:
        step, line = (f"step {unmet.step}", unmet.line) if unmet else ("its last step", 1)
        when = f"in {step}" if unmet and unmet.kind is FailureKind.CRASH else f"after {step}"
        findings.append(Finding("scenario.crash", f"{_describe_end(run)} {when}", line))
    elif run.overflow:
        findings.append(Finding(_BUSY, f"the server floods: {run.overflow}", 1))
    elif run.ending.liveness:
        message = (
            f"the server was still busy at the scenario's bound of {run.bound:g} s: "
            f"{run.ending.liveness}"
        )
        findings.append(Finding(_BUSY, message, 1))
    elif run.ending.end is End.TIMED_OUT:
        outstanding = ", ".join(run.ending.outstanding_work)
        message = f"still outstanding at the scenario's bound of {run.bound:g} s: {outstanding}"
        findings.append(Finding("scenario.timeout", message, 1))
    if unmet is not None:
        message = f"step {unmet.step}: {unmet.message}"
        if unmet.kind is not FailureKind.CRASH:
            findings.append(Finding(_FINDING_IDS[unmet.kind], message, unmet.line))
        elif not findings:
            # We had closed the last connection, and the restarted server did not answer.
            findings.append(Finding("scenario.crash", message, unmet.line))
    elif not findings:
        evidence = (
            ExecReading(results_by_alias(loaded.surface, run.trace, run.cast.turns))
            if loaded.surface in (EXEC, SDK)
            else SessionReading(run.cast, conversation)
        )
        problems = unmet_expectations(loaded.scenario, evidence, run.model, run.cwd)
        findings += [_expectation_finding(problem, loaded) for problem in problems]
        # A broken rule may be the reason why another judged nothing, and matters more.
        if not any(row.verdict is Verdict.FAIL and row.level is Level.MUST for row in rows):
            findings += _no_witness_findings(loaded, rows, profile, rules)
    return findings


def _expectation_finding(problem: Problem, loaded: Loaded) -> Finding:
    return Finding(
        "scenario.expectation",
        problem.message,
        loaded.line_of(*problem.place),
        places=tuple(Place(seq, show_path(spot.path), spot.offset) for seq, spot in problem.spots),
        detail=problem.detail,
    )


def _broke_off(run: Run) -> bool:
    """Return whether the server broke off before it could show its capabilities.

    A timeout alone is not enough: the awaited message may be the one that is not offered.
    """
    unmet = run.unmet
    stuck = (
        unmet is not None and unmet.kind is FailureKind.TIMEOUT and unmet.step not in _WAITING_STEPS
    )
    return stuck or not run.is_complete


def _describe_end(run: Run) -> str:
    if run.status is None:
        return "the server closed its output and went on running,"
    how = f"by signal {-run.status}" if run.status < 0 else f"with exit status {run.status}"
    return f"the server ended by itself {how}"


def _no_witness_findings(
    loaded: Loaded,
    rows: Sequence[Row],
    profile: Profile,
    rules: dict[str, type[Monitor]],
) -> list[Finding]:
    """Return findings for covered rules that judged nothing in the scenario.

    There are none for a target whose capabilities are probed: it may omit messages that the
    specification makes optional. The report lists the rules that no scenario exercised.
    """
    if profile.capabilities == "probe":
        return []
    judged_rules = {row.rule for row in rows}
    findings: list[Finding] = []
    for index, rule_id in enumerate(loaded.scenario.covers):
        rule = rules.get(rule_id)
        if rule is None or rule_id in judged_rules or not rule_applies(rule, profile):
            continue
        if rule.surface != loaded.surface:
            continue  # The play on the other surface exercises it.
        message = f"{rule_id} is covered by this scenario and judged nothing in it"
        findings.append(Finding(_NO_WITNESS, message, loaded.line_of("covers", index)))
    return findings


def rule_applies(rule: type[Monitor], profile: Profile) -> bool:
    """Return whether a target declares the needs of a rule, or is probed for them."""
    declared = profile.capabilities
    return declared == "probe" or all(need in declared for need in rule.needs)
