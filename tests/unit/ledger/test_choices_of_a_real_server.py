"""Choices that the observers read from recordings of a real server, compared with known values.

The values come from the description of its behaviour, not from the observers.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from harness.client.target.profile import load_profile
from harness.judge.ledger.record import Record, record_trace
from harness.protocol.spec.loading import load_book
from harness.trace.foreign import load_any
from harness.trace.surface.registry import classify_of

FOLDER = Path(__file__).parents[3] / "fixtures" / "traces" / "real-0.107.0"
BOOK = load_book()
NAMES = load_profile("codex-0.107").names

KNOWN = [
    ("two_turns", "turn-start.while-active", "", "granted, a new id"),
    ("interrupt_stream", "item.completed-when-cut", "agentMessage, interrupted", "no"),
    ("interrupt_stream", "turn.final-status-order", "interrupted", "the status first"),
    ("patch_decline", "event.diff-when-none", "a change that is declined", "no"),
    ("patch_multi", "event.diff-often", "", "more often than once after each file change"),
    ("patch_accept", "item.file-change-kind", "", "an object with type, type add"),
    ("patch_accept", "item.file-change-diff", "add", "the content"),
    ("err_http500", "errors.final-notified", "", "yes"),
    ("err_http500", "thread-status.after-failure", "", "systemError"),
    ("err_http500", "turn-error.info-form", "", "string"),
    ("err_disconnect_retry_ok", "errors.turn-goes-on", "", "the turn ends as completed"),
    ("handshake", "rpc.handshake", "the result of initialize", "userAgent"),
    ("list_pages", "thread-status.loaded-shown", "thread/list", "the live status"),
    ("list_pages", "thread-list.direction", "createdAt", "the newest first"),
    ("loaded_unsubscribe", "loading.order", "", "the reply, notLoaded, thread/closed"),
    ("resume_fork_read", "item.id-stable", "thread/read", "other ids in the history"),
    ("resume_fork_read", "thread-fork.turns-shown", "thread/started", "turns with their items"),
    ("steer", "turn-steer.shown", "the turn is completed", "as a userMessage"),
    ("skills", "skill-error.fields", "", "message, path"),
    ("skills", "skills-list.disabled-listed", "", "listed with enabled false"),
    ("review", "item.review-begins", "the result", "reviewThreadId, turn"),
    ("compact_manual", "thread-compact.turn", "", "no turn/started for it"),
    ("compact_manual", "event.compaction-names", "", "thread/compacted"),
    ("compact_auto", "thread-compact.turn", "", "within the turn that needs it"),
    (
        "dynamic_tools",
        "item.dynamic-tool-flow",
        "item/tool/call",
        "arguments, callId, threadId, tool, turnId",
    ),
    ("cmd_accept_session", "approval.same-operation", "the same words", "not asked about"),
    (
        "cmd_shell_accept",
        "approval.offered-decisions",
        "",
        "yes: accept, acceptWithExecpolicyAmendment, cancel",
    ),
    (
        "interrupt_approval",
        "approval.interrupted",
        "the question",
        "no serverRequest/resolved before the turn ends",
    ),
    ("cmd_output_deltas_shell", "item.output-order", "", "in another order than the deltas"),
    ("plain_turn", "rpc.response-order", "turn/start", "the response first"),
    ("plain_turn", "rpc.jsonrpc-member", "", "not sent"),
    ("plain_turn", "thread.preview-absent", "a new thread", "empty string"),
    ("errors", "rpc.error-response", "", "error with code, message; code is number"),
    ("errors", "rpc.unknown-method", "a method that nothing names", "refused: -32600"),
    ("model_reroute", "event.reroute-reason", "", "highRiskCyberActivity"),
    ("web_search", "item.web-search-payloads", "search", "queries, query, type"),
]


@cache
def record_of(name: str) -> Record:
    path = FOLDER / f"{name}.jsonl"
    return record_trace(BOOK, load_any(path, BOOK.paths_of, names=NAMES, classify_of=classify_of))


@pytest.mark.parametrize(
    ("trace", "point", "about", "value"), KNOWN, ids=[f"{one[0]}-{one[1]}" for one in KNOWN]
)
def test_known_choices_of_the_server_are_seen(
    trace: str, point: str, about: str, value: str
) -> None:
    seen = [(one.situation, one.value) for one in record_of(trace).choices if one.point == point]
    assert (about, value) in seen


@pytest.mark.parametrize("trace", sorted({one[0] for one in KNOWN}))
def test_no_observer_breaks_on_a_recording(trace: str) -> None:
    assert record_of(trace).crashes == []
