"""Rules that depend on whether client or server ended first read both marks, in order."""

import ast
from dataclasses import replace
from pathlib import Path

from harness.judge.judge import feed_trace
from harness.judge.missing_messages import Treatment, decide_treatment
from harness.judge.rules.discovery import all_rules
from harness.play.client_duties.unanswered_requests import decide_for_client
from harness.protocol.spec.loading import load_book
from harness.trace.marks import ClientLeft, Closed, RecorderNote
from harness.trace.trace import End, Mark, Trace
from tests.rules.approval_talk import Approvals, command_item
from tests.rules.traces import Talk

JUDGES = Path(__file__).parents[2] / "harness" / "judge"
EITHER = ({"Leaving"}, {"ClientLeft", "Closed"})


def left_at(trace: Trace, seconds: float, *, then_lasts: float = 0.0) -> Trace:
    """The trace of a recorder whose client left so long after the last message."""
    last = trace.frames[-1]
    left = Mark(last.at + seconds, last.seq, ClientLeft("c1"))
    ended = Mark(left.at + then_lasts, last.seq, RecorderNote("", server_ended=True, status=0))
    return replace(trace, marks=[*trace.marks, left, ended], end=End.CLOSED)


def treatment(trace: Trace) -> Treatment:
    """Return the treatment of the messages that the server never sent."""
    judge = feed_trace(load_book(), trace, all_rules().values())
    return decide_treatment(trace, judge.open_ledgers, settle=1.0, settled=False).treatment


def answer_treatment(trace: Trace) -> Treatment:
    """Return the treatment of the answers that the client never sent."""
    questions = [one for one in trace.frames if one.method.endswith("requestApproval")]
    return decide_for_client(trace, questions, settle=1.0, settled=False).treatment


def test_every_rule_that_reads_one_mark_of_leaving_reads_the_other() -> None:
    for path in JUDGES.rglob("*.py"):
        names = {
            alias.name
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module == "harness.trace.marks"
            for alias in node.names
        } & {Closed.__name__, ClientLeft.__name__, "Leaving"}
        # The harness closes connections on purpose: no duty, and no silence of the server.
        only_clients = "client_duties" in path.parts or path.name == "missing_messages.py"
        assert not names or names in EITHER or (only_clients and names == {"ClientLeft"}), path


def test_only_the_silence_before_the_client_left_counts_against_the_server() -> None:
    hanging = Talk().start_thread().start_turn().trace(End.CLOSED)
    assert treatment(left_at(hanging, 0.2, then_lasts=5.0)) is Treatment.NOT_JUDGED
    assert treatment(left_at(hanging, 5.0)) is Treatment.SUSPECTED


def test_question_is_judged_if_the_client_left_long_after_it() -> None:
    asked = Approvals().running().started(command_item()).question().trace(End.CLOSED)
    assert answer_treatment(left_at(asked, 0.2, then_lasts=5.0)) is Treatment.NOT_JUDGED
    assert answer_treatment(left_at(asked, 5.0)) is Treatment.JUDGED
