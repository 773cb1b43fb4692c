"""The rules on MCP servers judge the events of `agent exec` as they judge a session."""

import pytest

from harness.faults.base import Fault
from harness.faults.stored import apply, change
from harness.faults.tables.mcp_servers import FAULTS
from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Verdict
from harness.protocol.spec.loading import load_book
from harness.trace.surfaces import EXEC
from harness.trace.trace import Trace
from tests.rules.good_mcp import exec_mcp_played, mcp_played

# What is noted of servers is the same on both surfaces; an item has another form.
OF_ITEMS = "mcp-server-other-result-shown"
OF_MARKS = [one for one in FAULTS if one.id != OF_ITEMS]


def verdicts(trace: Trace) -> dict[str, set[Verdict]]:
    found: dict[str, set[Verdict]] = {}
    rules = [one for name, one in all_rules().items() if name.startswith("mcp-server.")]
    for row in judge(load_book(), trace, rules):
        found.setdefault(row.rule, set()).add(row.verdict)
    return found


def test_each_rule_passes_on_both() -> None:
    rules = {one.rule for one in FAULTS}
    assert all(EXEC in all_rules()[one].also_on for one in rules)
    passed = {one: {Verdict.PASS} for one in rules}
    assert verdicts(mcp_played()) == verdicts(exec_mcp_played()) == passed


@pytest.mark.parametrize("fault", OF_MARKS, ids=lambda fault: fault.id)
def test_requests_to_mcp_servers_are_judged_in_a_stream_too(fault: Fault) -> None:
    assert verdicts(apply(fault, exec_mcp_played()))[fault.rule] == {Verdict.FAIL}


def test_another_result_in_a_stream_is_noticed() -> None:
    trace = exec_mcp_played()

    def other(value: dict[str, dict[str, object]]) -> object:
        value["item"]["result"] = {"content": [{"type": "text", "text": "the sum is 6"}]}
        return value

    ends = [one for one in trace.frames if b'"item.completed"' in one.raw and b"mcp" in one.raw]
    assert verdicts(change(trace, ends, other))["mcp-server.result-shown"] == {Verdict.FAIL}
