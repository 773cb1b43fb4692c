"""Every combination of policy, decision and final status of an approval has a scenario.

Read from the reviewed transcripts of the reference server: which questions were asked under which
policy, how the client answered, how the item ended, and that a rule judged it there. So a
combination that no scenario plays is a failure that names it. What `never` and `reject` let run and
keep from running is read in the same way; and where nothing may be done, a scenario looks at the
workspace.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.scenario.bundled import bundled_scenario
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder
from harness.trace.trace import End, Header, Trace
from tests.conformance.transcript_extension import transcripts

COMMAND, FILE = "commandExecution", "fileChange"
QUESTIONS = {f"item/{kind}/requestApproval": kind for kind in (COMMAND, FILE)}
ASKING = ("untrusted", "on-request", "on-failure")

# Which decision can end in which status, and the rule that must have judged it there. The text has
# accept and decline for a file change; servers take two more, of which no rule speaks.
STATUSES = {
    (COMMAND, "accept"): ("approval.accepted-runs", ("completed", "failed")),
    (COMMAND, "acceptForSession"): ("approval.accepted-runs", ("completed", "failed")),
    (COMMAND, "acceptWithExecpolicyAmendment"): ("approval.accepted-runs", ("completed", "failed")),
    (COMMAND, "applyNetworkPolicyAmendment"): ("approval.final-item", ("completed", "failed")),
    (COMMAND, "decline"): ("approval.denied-not-run", ("declined",)),
    (COMMAND, "cancel"): ("approval.denied-not-run", ("declined",)),
    (FILE, "accept"): ("approval.accepted-runs", ("completed", "failed")),
    (FILE, "decline"): ("approval.denied-not-run", ("declined",)),
    (FILE, "acceptForSession"): ("", ("completed",)),
    (FILE, "cancel"): ("", ("declined",)),
}
WANTED = [
    (policy, kind, decision, status)
    for policy in ASKING
    for (kind, decision), (_, statuses) in STATUSES.items()
    for status in statuses
]

# Nobody is asked: what ran, what ran within the sandbox and failed, what was kept from running.
UNASKED = [
    ("never", COMMAND, "completed"),
    ("never", COMMAND, "failed"),
    ("never", FILE, "completed"),
    ("never", FILE, "failed"),
    ("reject", COMMAND, "completed"),
    ("reject", COMMAND, "declined"),
    ("reject", FILE, "declined"),
]


@dataclass(slots=True)
class Played:
    """An item of a command or a file change as a transcript has it.

    `decisions` are the answers to the questions about it, "" where an answer is none.
    """

    scenario: str
    policy: str
    kind: str
    subject: str
    status: str = ""
    decisions: list[str] = field(default_factory=list[str])


class Reader:
    """Reader of one transcript; `items` are its commands and file changes by turn and id.

    `interrupted` has the ids of interrupted turns.
    """

    def __init__(self, scenario: str, transcript: str) -> None:
        self.scenario = scenario
        self.items: dict[tuple[str, str], Played] = {}
        self.interrupted: set[str] = set()
        self._policies: dict[str, str] = {}
        # Each client of a transcript has request ids of its own.
        self._client = ""
        self._asked: set[Any] = set()
        self._questions: dict[Any, Played] = {}
        recorder = Recorder(Header(target="reference", profile="spec", scenario=self.scenario))
        for line in transcript.splitlines():
            if line.startswith(("-> ", "<- ")):
                towards = Direction.TO_TARGET if line.startswith("->") else Direction.FROM_TARGET
                recorder.record(line[3:].encode(), towards)
                # Some lines are malformed on purpose, and some requests refused.
                with contextlib.suppress(json.JSONDecodeError):
                    self._take(json.loads(line[3:]))
            elif line.startswith("client "):
                self._client = line
        self.trace: Trace = recorder.trace
        self.trace.end = End.QUIESCENT

    def _take(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "thread/start":
                self._asked.add((self._client, message["id"]))
            case "turn/start" if "approvalPolicy" in params:
                self._policies[params["threadId"]] = params["approvalPolicy"]
            case "item/completed" | "item/started" if params["item"]["type"] in (COMMAND, FILE):
                self._item(params).status = params["item"]["status"]
            case "turn/completed" if params["turn"]["status"] == "interrupted":
                self.interrupted.add(params["turn"]["id"])
            case method if method in QUESTIONS:
                key = (params["turnId"], params["itemId"])
                self._questions[self._client, message["id"]] = self.items[key]
            case None:
                self._answer(message)
            case _:
                pass

    def _item(self, params: dict[str, Any]) -> Played:
        key = (params["turnId"], params["item"]["id"])
        if key not in self.items:
            policy = self._policies.get(params["threadId"], "")
            subject = f"item {key[1]} of turn {key[0]}"
            kind = params["item"]["type"]
            self.items[key] = Played(self.scenario, policy, kind, subject)
        return self.items[key]

    def _answer(self, message: dict[str, Any]) -> None:
        result = message.get("result") or {}
        key = (self._client, message["id"])
        if key in self._asked:
            self._asked.discard(key)
            if "approvalPolicy" in result:
                self._policies[result["thread"]["id"]] = result["approvalPolicy"]
        elif key in self._questions:
            decision = result.get("decision")
            given = decision if isinstance(decision, str) else ""
            self._questions.pop(key).decisions.append(given)


@cache
def readers() -> tuple[Reader, ...]:
    return tuple(Reader(*one) for one in sorted(transcripts().items()))


@cache
def judged(scenario: str) -> list[Row]:
    reader = next(one for one in readers() if one.scenario == scenario)
    return judge(load_book(), reader.trace, all_rules().values())


def items() -> list[Played]:
    return [item for reader in readers() for item in reader.items.values()]


def is_judged(item: Played, rule: str) -> bool:
    rows = judged(item.scenario)
    here = [row for row in rows if row.rule == rule and row.subject == item.subject]
    return [row.verdict for row in here] == [Verdict.PASS]


def looks_at_the_workspace(scenario: str) -> bool:
    expect = bundled_scenario(scenario).scenario.expect
    return bool(expect.workspace) or any(outcome.workspace for outcome in expect.any_of)


@pytest.mark.parametrize("cell", WANTED, ids=["-".join(cell) for cell in WANTED])
def test_decision_is_played_and_judged(cell: tuple[str, str, str, str]) -> None:
    policy, kind, decision, status = cell
    rule, _ = STATUSES[kind, decision]
    played = [
        item
        for item in items()
        if (item.policy, item.kind, item.decisions, item.status)
        == (policy, kind, [decision], status)
    ]
    assert played, f"no scenario has a {kind} that is {status} after {decision} under {policy}"
    if rule:
        assert any(is_judged(item, rule) for item in played), f"{rule} has no witness in {played}"
    assert any(looks_at_the_workspace(item.scenario) for item in played)


@pytest.mark.parametrize("cell", UNASKED, ids=["-".join(cell) for cell in UNASKED])
def test_policy_that_asks_nobody_is_seen_by_what_ran(cell: tuple[str, str, str]) -> None:
    played = [
        item
        for item in items()
        if (item.policy, item.kind, item.status) == cell and not item.decisions
    ]
    assert any(looks_at_the_workspace(item.scenario) for item in played), f"none of {played}"


def test_nobody_is_asked_under_never_and_reject() -> None:
    asked = [one for one in items() if one.policy in ("never", "reject") and one.decisions]
    assert asked == []


def test_whatever_is_denied_is_looked_for_on_disk() -> None:
    denied = {one.scenario for one in items() if {"decline", "cancel"} & set(one.decisions)}
    assert [name for name in sorted(denied) if not looks_at_the_workspace(name)] == []


def test_whatever_an_interrupt_may_have_cut_is_looked_for_on_disk() -> None:
    cut = {
        reader.scenario
        for reader in readers()
        if any(turn in reader.interrupted for turn, _ in reader.items)
    }
    assert {"commands/interrupted", "commands/ignores-term", "approvals/cancel-command"} <= cut
    assert [name for name in sorted(cut) if not looks_at_the_workspace(name)] == []
