"""Every id that a report can print is explained: rules, requirements, findings of any kind."""

import re
from pathlib import Path

import pytest

from harness.cli.commands.explain import explain
from harness.cli.commands.vocabulary import LEVELS, VERDICTS
from harness.errors import UsageError
from harness.judge.missing_messages import Treatment
from harness.judge.rules.discovery import every_rule
from harness.judge.verdict import Level, Verdict
from harness.protocol.spec.findings import finding_kinds
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.rows import Capability
from harness.scenario.bundled import bundled_files, bundled_ids
from harness.scenario.loader import load_scenario

ROOT = Path(__file__).parents[3]


def told(name: str) -> str:
    return "\n".join(explain(name))


@pytest.mark.parametrize("name", finding_kinds())
def test_a_finding_is_explained_with_its_causes_and_what_to_do(name: str) -> None:
    text = " ".join(told(name).split())
    kind = finding_kinds()[name]
    assert text.startswith(f"{name} (finding)")
    assert all(" ".join(cause.split()) in text for cause in kind.causes)
    assert " ".join(kind.advice.split()) in text
    assert ("[[deviations]]" in text) is kind.accepted


def test_every_requirement_is_explained_with_its_clause_and_its_rules() -> None:
    for requirement in load_book().requirements:
        text = told(requirement.id)
        assert f"requirement {requirement.id} ({requirement.clause.basis})" in text
        assert f"line {requirement.clause.line}" in text
        assert all(rule in text for rule in requirement.rules if requirement.id not in every_rule())
        assert re.search("judged by|no rule judges it|Judges|Records|Walks", text), requirement.id


def test_a_requirement_that_no_rule_judges_says_why() -> None:
    excluded = next(one for one in load_book().requirements if one.excluded)
    assert "no rule judges it: " in told(excluded.id)


def test_a_requirement_that_is_lighter_than_its_words_says_why() -> None:
    lighter = load_book().requirement("errors.mid-turn")
    assert f"no MUST, since: {lighter.lighter}" in told(lighter.id)


def test_an_id_is_taken_as_pytest_prints_it() -> None:
    assert told("rules::turn.completes") == told("turn.completes")
    assert told("findings::setup.not-started") == told("setup.not-started")


def test_an_unknown_id_is_answered_with_the_nearest_of_all_kinds() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'hygiene.panic'"):
        told("hygiene.panik")


@pytest.mark.parametrize("one", load_book().capabilities, ids=lambda one: one.id)
def test_a_capability_is_explained_with_its_probe_and_who_needs_it(one: Capability) -> None:
    text = " ".join(told(one.id).split())
    assert text.startswith(f"{one.id} (capability): {one.title}")
    for part in (one.description, one.probe, *load_book().methods_of(one.id)):
        assert " ".join(part.split()) in text
    assert re.search(r"bundled scenarios that need it: \d+: \S+/\S+|no bundled scenario", text)


def test_the_scenarios_that_need_a_capability_are_counted() -> None:
    count = sum("history" in _needs(name) for name in bundled_ids())
    text = " ".join(told("history").split())
    assert f"bundled scenarios that need it: {count}: " in text


def _needs(name: str) -> list[str]:
    return load_scenario(bundled_files()[name]).needs


def test_all_capabilities_are_listed() -> None:
    lines = told("capabilities").splitlines()
    for one in load_book().capabilities:
        assert any(line.split() == [one.id, *one.title.split()] for line in lines)


def test_a_bundled_scenario_is_explained_with_its_file() -> None:
    text = told("turns/plain-turn")
    assert text.startswith("turns/plain-turn (bundled scenario): A plain turn")
    assert f"file: {bundled_files()['turns/plain-turn']}" in text.splitlines()
    assert "needs: " in text
    assert "covers: " in text


def test_verdicts_and_levels_are_explained_as_the_page_on_reports_says() -> None:
    page = (ROOT / "docs" / "reports.md").read_text("utf-8")
    for verdict, (means, pytest_word) in VERDICTS.items():
        assert f"| {verdict.value} | {means} | {pytest_word} |" in page
        assert told(verdict.value).startswith(f"{verdict.value} (verdict): {means}")
        assert told(verdict.value.lower()).startswith(told(verdict.value))
    for level, (basis, counts) in LEVELS.items():
        assert f"| {level.value} | {basis} | {counts} |" in page
        assert told(level.value).startswith(f"{level.value} (level): {basis}")
    assert (list(VERDICTS), list(LEVELS)) == (list(Verdict), list(Level))


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("reasonin", "reasoning"),
        ("turns/plain-turm", "turns/plain-turn"),
        ("NOT_EXERCISD", "NOT_EXERCISED"),
        ("turn.complets", "turn.completes"),
    ],
)
def test_the_nearest_is_looked_for_among_words_of_every_kind(asked: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"did you mean '{near}'"):
        told(asked)


def test_every_word_of_the_protocol_is_explained() -> None:
    book = load_book()
    for row in (*book.methods, *book.events):
        text = told(row.method)
        assert row.method in text
        for clause in row.clauses:
            assert clause.removeprefix("?") in text, row.method
        assert re.search(r", line \d+", text), row.method
    for point in book.unspecified:
        assert f"{point.document}, " in told(point.id)
        assert f"line {point.line}" in told(point.id)
    for name in ("commandExecution", "TurnError", "AgentErrorInfo", "SandboxPolicy"):
        assert re.search(r", line \d+", told(name)), name


def test_a_notification_is_explained_by_the_clauses_that_mention_it() -> None:
    text = told("thread/closed")
    for requirement in ("event.thread-closed", "loading.unsubscribe-last"):
        assert f"requirement {requirement} (" in text


@pytest.mark.parametrize("code", ["-32700", "-32600", "-32601", "-32602", "-32603", "-32001"])
def test_an_error_code_is_explained_by_what_the_text_leaves_open(code: str) -> None:
    text = told(code)
    assert text.startswith(f"{code} (error code): ")
    assert "names no codes" in text
    assert "rpc.error-response (left open by the text)" in text


def test_a_word_with_two_meanings_has_both() -> None:
    assert "plan (capability)" in told("plan")
    assert "plan (item type)" in told("plan")
    assert "ERROR (verdict)" in told("error")
    assert "error (notification" in told("error")


def test_a_misspelt_method_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'turn/start'"):
        told("turn/strat")


def test_a_rule_is_explained_with_its_class_and_place() -> None:
    for name in every_rule():
        found = re.search(r"^its class: (\w+) at (\S+):(\d+)$", told(name), re.MULTILINE)
        assert found, name
        line = Path(found[2]).read_text(encoding="utf-8").splitlines()[int(found[3]) - 1]
        assert line.startswith(("class ", "@")), name


@pytest.mark.parametrize("treatment", list(Treatment))
def test_the_treatment_of_missing_messages_is_explained(treatment: Treatment) -> None:
    assert told(treatment).startswith(f"{treatment} (missing messages): a message that never came")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("untrusted", "approvalPolicy of ThreadStartParams: `never`, `untrusted`, "),
        ("decline", "requirement approval.decline (STATED)"),
        ("aggregatedOutput", "aggregatedOutput of CommandExecutionItem: string or null"),
        ("status", "status of Turn: `inProgress`, `completed`, `interrupted`, `failed`"),
    ],
)
def test_members_and_values_are_explained_with_their_places(word: str, expected: str) -> None:
    assert expected in " ".join(told(word).split())
