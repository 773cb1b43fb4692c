"""No rule that binds fails a legal conversation, whatever its server and its client chose."""

import pytest
from hypothesis import given, settings

from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Verdict
from harness.protocol.spec.loading import load_book
from harness.trace.trace import Trace
from tests.rules.legal_conversations import conversations

# The profile of a long search asks for more.
EXAMPLES = max(200, settings().max_examples)


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(trace=conversations())
def test_no_rule_that_binds_fails_a_legal_conversation(trace: Trace) -> None:
    rows = [
        row for row in judge(load_book(), trace, all_rules().values()) if row.level is Level.MUST
    ]
    bad = [row for row in rows if row.verdict in (Verdict.FAIL, Verdict.ERROR)]
    assert [f"{row.rule} {row.subject}: {row.actual}" for row in bad] == []
