"""Findings of all rules in all small conversations, compared with the reviewed ones."""

from collections import Counter

import pytest

from harness.protocol.spec.loading import load_book
from harness.report.story import MAX_REQUIREMENTS_SHOWN
from tests.golden.conversations import builds, conversations, printed
from tests.golden.findings import ROOT, STORED, Findings, found_in, keep, kept_rows, story

HINT = "python -m tests.golden.findings writes the file anew; review the rows that it prints"


@pytest.fixture(scope="module")
def findings() -> Findings:
    return found_in(conversations())


@pytest.mark.slow
def test_the_rules_find_what_was_reviewed(findings: Findings) -> None:
    stored = STORED.read_text("utf-8")
    if findings.text() == stored:
        keep(findings)
        return
    lines, expected = (dict.fromkeys(text.splitlines()) for text in (findings.text(), stored))
    changed = [f"- {line}" for line in expected if line not in lines]
    changed += [f"+ {line}" for line in lines if line not in expected]
    before = kept_rows()
    rows = [] if before is None else story(before, findings.rows)
    pytest.fail("\n".join([f"{len(changed)} lines differ; {HINT}", *changed[:40], *rows]))


@pytest.mark.slow
def test_each_finding_shows_the_requirement_that_it_breaks(findings: Findings) -> None:
    gaps: list[str] = []
    for rule, broken in findings.broken.items():
        of_rule = {requirement.id for requirement in load_book().requirements_of(rule)}
        for clauses, name in broken.items():
            named = set(clauses) or of_rule
            # Without clauses a report shows those of the rule, but no more than these.
            if not named <= of_rule or not 0 < len(named) <= MAX_REQUIREMENTS_SHOWN:
                gaps.append(f"{rule} {clauses} in {name}")
    assert gaps == []


def test_each_conversation_has_a_name_of_its_own() -> None:
    names = Counter(name for name, _ in builds())
    assert [name for name, times in names.items() if times > 1] == []


def test_a_conversation_is_printed_as_the_trace_that_it_is() -> None:
    stored = (ROOT / "fixtures" / "traces" / "good" / "plain-turn.jsonl").read_text("utf-8")
    assert printed("good/plain-turn") == stored


def test_an_unknown_conversation_is_answered_with_a_near_name() -> None:
    with pytest.raises(SystemExit, match="did you mean 'good/plain-turn'"):
        printed("good/plain-turns")
