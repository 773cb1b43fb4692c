"""Every id that a report can print is explained: rules, requirements, findings of any kind."""

import re

import pytest

from harness.report.tracecheck import UsageProblem
from harness.rules.base import all_rules
from harness.spec.book import load_book
from harness.spec.findings import finding_kinds
from harness.suite.explain import explain


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
        assert all(rule in text for rule in requirement.rules if requirement.id not in all_rules())
        assert re.search("judged by|no rule judges it|Judges|Records|Walks", text), requirement.id


def test_a_requirement_that_no_rule_judges_says_why() -> None:
    excluded = next(one for one in load_book().requirements if one.excluded)
    assert "no rule judges it: " in told(excluded.id)


def test_an_id_is_taken_as_pytest_prints_it() -> None:
    assert told("rules::turn.completes") == told("turn.completes")
    assert told("findings::setup.not-started") == told("setup.not-started")


def test_an_unknown_id_is_answered_with_the_nearest_of_all_kinds() -> None:
    with pytest.raises(UsageProblem, match=r"did you mean 'hygiene.panic'"):
        told("hygiene.panik")
