"""Texts that break terminals, files and parsers, at every member of every message, in every output.

Each output must be text in UTF-8 whose characters are printable, and must be read back as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from _pytest.junitxml import LogXML
from markdown_it import MarkdownIt

from harness.cli.commands.check_clients import check_client
from harness.cli.commands.ledger import ledger_rows
from harness.cli.commands.ledger import text_lines as ledger_lines
from harness.cli.commands.show import show_trace
from harness.cli.commands.stored_traces import TraceCheck, check_trace
from harness.cli.connect.display import Display
from harness.cli.suite.report_files import report_json
from harness.cli.suite.reporting import emit
from harness.cli.suite.rule_lines import RuleLines
from harness.cli.suite.run_history import keep_report
from harness.judge.ledger.record import record_trace
from harness.judge.rows import CRASH_SUBJECT
from harness.judge.verdict import Verdict
from harness.play.client_tests.connection import ConnectionResult
from harness.play.client_tests.problems import refused_requests
from harness.play.client_tests.report import lines_of, report_text
from harness.protocol.escapes import json_text
from harness.protocol.spec.item_types import required_members
from harness.protocol.spec.loading import load_book
from harness.report.compare.comparison import compare
from harness.report.compare.plain import to_plain as plain_comparison
from harness.report.compare.text import markdown as compare_page
from harness.report.compare.text import text_lines as compare_lines
from harness.report.compare.values import Run
from harness.report.diagram.mermaid import mermaid_text
from harness.report.diagram.svg import svg_text
from harness.report.github import annotations
from harness.report.html.page import run_page
from harness.report.json_form import read_report
from harness.report.markdown import markdown
from harness.report.results.outcome import Finding, ScenarioOutcome
from harness.report.results.report import Report
from harness.report.results.rerun_command import Programs
from harness.report.scenario_story import scenario_story
from harness.report.snapshot.changes import describe_changes
from harness.report.snapshot.difference_lines import diff_lines, unified_lines
from harness.report.snapshot.files import Snapshot, format_snapshot, parse_snapshot
from harness.report.snapshot.message import message_labels
from harness.report.snapshot.portable import transcript_of
from harness.report.story import issue_story, rule_story
from harness.report.terminal import summary
from harness.scenario.yaml12 import parse as parse_yaml
from harness.search.fuzz.sessions.search import FoundFailure
from harness.search.fuzz.store import Store, read_failure
from harness.trace.store import load, save
from harness.trace.surface.registry import classify_of
from harness.trace.trace import Trace
from tests.actions_runner import commands
from tests.golden.odd_texts import JOINED, NESTED, TEXTS, mark_samples, odd_conversations, samples
from tests.unit.report.html_pages import Page, assert_only_own_code
from tests.unit.results.outcomes import report_of

pytestmark = pytest.mark.slow
BOOK = load_book()
WORDS = [one if isinstance(one, str) else one.decode("utf-8", "backslashreplace") for one in JOINED]


@dataclass(frozen=True)
class Judged:
    """All conversations with the texts, stored and judged, and their report."""

    traces: list[Trace] = field(default_factory=list[Trace])
    checks: list[TraceCheck] = field(default_factory=list[TraceCheck])
    outcomes: list[ScenarioOutcome] = field(default_factory=list[ScenarioOutcome])

    @cached_property
    def report(self) -> Report:
        loose = tuple(Finding("setup.not-started", f"it said {words}") for words in WORDS)
        return report_of(*self.outcomes, loose=loose)


def judged_conversations(folder: Path) -> Judged:
    judged = Judged()
    for number, (_, trace) in enumerate(odd_conversations(*JOINED)):
        path = folder / f"{number}.jsonl"
        save(trace, path)
        assert [frame.raw for frame in load(path, classify_of=classify_of).frames] == [
            frame.raw for frame in trace.frames
        ]
        judged.checks.append(check_trace(path, settled=True))
        outcome = ScenarioOutcome(
            f"odd/{number}", f"/there/{number}.scenario.yaml", "a title", Verdict.FAIL
        )
        outcome.rows = judged.checks[-1].rows
        outcome.record = record_trace(BOOK, trace)
        outcome.findings = [
            Finding("scenario.expectation", f"found {words}", detail=(words,)) for words in WORDS
        ]
        # Each text in turn, since a report may show only a part of them all.
        words = WORDS[number % len(WORDS)]
        outcome.reason, outcome.stderr = f"found {words}", words
        outcome.trace = outcome.kept = str(path)
        judged.traces.append(trace)
        judged.outcomes.append(ScenarioOutcome.from_plain(outcome.to_plain()))
    return judged


def harmless(output: str | Iterable[str]) -> str:
    """Return the output after checking that it is UTF-8 and does not control a terminal."""
    text = output if isinstance(output, str) else "\n".join(output)
    text.encode("utf-8")
    odd = [line for line in text.split("\n") if not line.isprintable()]
    assert not odd, f"{[char for char in odd[0] if not char.isprintable()]} in {odd[0][:200]!r}"
    return text


def plain_json(text: str) -> Any:
    """Return the value of JSON that no parser rejects: no half of a pair, in escapes either."""
    value = json.loads(harmless(text))
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def test_every_member_of_every_kind_of_message_is_a_sample() -> None:
    kinds = {kind[2] for kind, _ in samples()}
    assert {row.method for row in (*BOOK.events, *BOOK.methods)} <= kinds
    assert required_members().keys() <= {kind[3] for kind, _ in samples()}
    assert len(TEXTS) >= 12
    kinds_of_marks = {kind for kind, _ in mark_samples()}
    assert {
        "model-call",
        "mcp-request",
        "program-errors",
        "recorder",
        "file-seen",
    } <= kinds_of_marks


def test_no_output_acts_or_breaks(tmp_path: Path) -> None:
    judged = judged_conversations(tmp_path)
    for check in CHECKS:
        check(judged, tmp_path)


def test_value_that_is_nested_deeply_breaks_no_rule_and_no_output(tmp_path: Path) -> None:
    for number, (name, trace) in enumerate(odd_conversations(NESTED)):
        save(trace, path := tmp_path / f"{number}.jsonl")
        shown = show_trace(path)
        harmless(shown.lines())
        harmless(mermaid_text(shown.diagram()))
        harmless(svg_text(shown.diagram()))
        crashed = [row.actual[-400:] for row in shown.violations if row.subject == CRASH_SUBJECT]
        assert crashed == [], name
        record_trace(BOOK, trace)
        transcript = transcript_of(trace, handshake=True, environment={})
        text = format_snapshot(Snapshot("a/b", "spec", transcript))
        assert format_snapshot(parse_snapshot(text.encode("utf-8"))) == text


def report_is_json_that_every_parser_reads(judged: Judged, folder: Path) -> None:
    path = folder / "report.json"
    text = report_json(judged.report, 1)
    path.write_text(text, "utf-8")
    assert plain_json(text)["red"] is True
    assert commands(text.splitlines()) == []
    assert report_json(read_report(path), 1) == text


def history_keeps_the_report(judged: Judged, folder: Path) -> None:
    config: Any = SimpleNamespace(base=folder, run="run")
    keep_report(judged.report, config, 1)
    assert plain_json((folder / "history" / "run" / "report.json").read_text("utf-8"))


def page_of_markdown_has_no_markup_of_a_server(judged: Judged, _: Path) -> None:
    page = harmless(markdown(judged.report, BOOK, "1"))
    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    inline = [inner for token in tokens for inner in token.children or ()]
    tags = {inner.content for inner in inline if inner.type == "html_inline"}
    assert tags <= {"<code>", "</code>"}


def page_for_browsers_runs_only_its_own_code(judged: Judged, _: Path) -> None:
    page = harmless(run_page(judged.report, BOOK, "1"))
    assert_only_own_code(Page(page))
    assert len(page) < 10_000_000


def terminal_gets_no_control_character(judged: Judged, _: Path) -> None:
    report = judged.report
    for names in (True, False):
        assert "verdict: RED" in harmless(summary(report, BOOK, names=names, whole=True))
    for rule in report.rules:
        harmless(rule_story(rule, BOOK, report))
    for issue in report.issues:
        harmless(issue_story(issue))
    for outcome in judged.outcomes:
        assert harmless(scenario_story(outcome, Programs("spec")))


def annotations_are_one_line_each(judged: Judged, folder: Path) -> None:
    lines = list(annotations(judged.report, folder))
    harmless(lines)
    assert [line.count("\n") for line in lines] == [0] * len(lines)
    assert len(commands(lines)) == len(lines)


def junit_file_is_xml(judged: Judged, folder: Path) -> None:
    xml = LogXML(str(folder / "r.xml"), "")
    hook = SimpleNamespace(
        pytest_runtest_logstart=lambda **_: None,
        pytest_runtest_logreport=lambda report: xml.pytest_runtest_logreport(report),
    )
    option = SimpleNamespace(harness_run=True, verbose=1)
    config: Any = SimpleNamespace(hook=hook, rootpath=folder, option=option)
    session: Any = SimpleNamespace(config=config, testscollected=0)
    xml.pytest_sessionstart()
    emit(judged.report, session, BOOK, RuleLines(config))
    for words in WORDS:
        xml.add_global_property("server", words)
    xml.pytest_sessionfinish()
    root = ElementTree.parse(folder / "r.xml").getroot()
    assert len(list(root.iter("testcase"))) >= len(judged.report.rules)


def show_check_and_connect_print_no_control_character(judged: Judged, _: Path) -> None:
    for check, outcome, trace in zip(judged.checks, judged.outcomes, judged.traces, strict=True):
        stored = show_trace(check.path)
        harmless(stored.lines())
        plain_json(json_text(stored.json()))
        harmless(stored.show_message(len(trace.frames) - 1).lines())
        diagram = stored.diagram()
        plain_json(json_text(diagram.as_json()))
        harmless(mermaid_text(diagram))
        ElementTree.fromstring(harmless(svg_text(diagram)).encode())
        harmless(check.lines())
        shown: list[str] = []
        display = Display(shown.append, BOOK, colour=False)
        for frame in trace.frames:
            display.user_spoke()
            display.show_frame(frame)
            display.show_whole(frame)
        for row in outcome.rows:
            display.show_finding(row, in_full=True)
        for words in WORDS:
            display.note(words)
        harmless(shown)


def results_of_clients_are_lines_and_json(judged: Judged, _: Path) -> None:
    for outcome, trace in zip(judged.outcomes, judged.traces, strict=True):
        if trace.header.surface == "session":
            check = check_client(Path(outcome.trace), settled=True)
            harmless(check.lines())
            refused = tuple(refused_requests(trace))
            result = ConnectionResult("1", "", tuple(WORDS), tuple(check.duties), refused=refused)
            harmless(lines_of(result))
            plain_json(report_text([result], []))
            plain_json(json_text(check.json()))


def comparison_and_ledger_have_no_control_character(judged: Judged, _: Path) -> None:
    report = judged.report
    fewer = report_of(*judged.outcomes[::2])
    for before, after in ((report, fewer), (fewer, report)):
        comparison = compare(Run("before", before), Run("after", after))
        harmless(compare_lines(comparison))
        harmless(compare_page(comparison))
        assert plain_json(json_text(plain_comparison(comparison)))
    run = Run("run", report)
    harmless(ledger_lines(run, ledger_rows(run)))


def snapshot_is_read_as_it_was_written(judged: Judged, _: Path) -> None:
    before = None
    for trace in judged.traces:
        transcript = transcript_of(trace, handshake=True, environment={})
        snapshot = Snapshot("odd/one", "spec", transcript)
        text = harmless(format_snapshot(snapshot))
        assert format_snapshot(parse_snapshot(text.encode("utf-8"))) == text
        harmless(describe_changes(before, transcript))
        harmless(unified_lines(diff_lines(before, transcript)))
        list(message_labels(transcript.messages))
        before = transcript


def store_of_failures_reads_what_it_keeps(judged: Judged, folder: Path) -> None:
    for words in WORDS:
        # YAML has no half of a surrogate pair.
        word = words.encode("utf-8", "backslashreplace").decode()
        document = {"title": word, word: [word, {word: word}]}
        failure = FoundFailure(document, words, words, judged.traces[0])
        store = Store(folder)
        kept = store.keep("sessions", failure, "spec")
        text = harmless(store.scenario(kept.id).read_text("utf-8"))
        assert parse_yaml(text.encode("utf-8"), "scenario").value == document
        harmless((folder / f"{kept.id}.json").read_text("utf-8"))
        assert read_failure(folder / f"{kept.id}.json") == kept


def row_of_a_rule_keeps_no_megabytes(judged: Judged, _: Path) -> None:
    rows = [row for outcome in judged.outcomes for row in outcome.rows]
    long = [row.rule for row in rows if len(row.subject + row.expected + row.actual) > 12_000]
    assert long == []


CHECKS = (
    report_is_json_that_every_parser_reads,
    history_keeps_the_report,
    page_of_markdown_has_no_markup_of_a_server,
    page_for_browsers_runs_only_its_own_code,
    terminal_gets_no_control_character,
    annotations_are_one_line_each,
    junit_file_is_xml,
    show_check_and_connect_print_no_control_character,
    results_of_clients_are_lines_and_json,
    comparison_and_ledger_have_no_control_character,
    snapshot_is_read_as_it_was_written,
    store_of_failures_reads_what_it_keeps,
    row_of_a_rule_keeps_no_megabytes,
)
