"""The same scenarios are green over each API by which a server can call its model.

The plain server translates its calls: `MODEL_WIRE` chooses the API.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from harness.judge.verdict import Verdict
from harness.model.encoder import RESPONSES_API
from harness.report.json_form import read_report
from harness.trace.marks import ModelCall
from harness.trace.store import load as load_trace
from tests.processes import run_warm

from .judging import SERVERS

pytestmark = [pytest.mark.socket, pytest.mark.slow]

WIRES = {
    "responses": RESPONSES_API,
    "chat": "Chat Completions",
    "messages": "Anthropic Messages",
}
SCENARIOS = (
    "approvals/accept-command",
    "approvals/decline-file-change",
    "approvals/on-request-accept",
    "commands/exit-code",
    "commands/two-at-once",
    "compaction/asked-for",
    "compaction/fails",
    "compaction/stored",
    "failures/bad-request",
    "failures/context-window",
    "failures/cut-after-a-call",
    "failures/cut-after-completed",
    "failures/cut-around-a-call",
    "failures/cut-at-events",
    "failures/disconnect-retry",
    "failures/error-event",
    "failures/http-500",
    "failures/malformed-event",
    "failures/odd-bodies",
    "failures/overloaded",
    "failures/rejected-image",
    "failures/retry-after",
    "failures/retry-twice",
    "failures/unauthorized",
    "files/add",
    "interrupts/during-a-command",
    "interrupts/twice",
    "plans/changed-twice",
    "steering/at-its-end",
    "steering/during-a-command",
    "steering/every-kind-of-input",
    "threads/fork",
    "threads/resume-after/patch",
    "tools/mcp-call",
    "tools/run-command",
    "tools/view-image",
    "turns/many-deltas",
    "turns/interrupt-mid-text",
    "turns/plain-turn",
    "turns/read-while-active",
    "turns/usage",
)
UNSAYABLE = {
    "turns/reasoning": "reasoning",
    "failures/cut-around-a-search": "web-search",
    "turns/reasoning-raw": "reasoning in {wire} is one text, not 2 blocks",
    "turns/phases": "a message of {wire} has no phase",
}


def test_there_are_forty_scenarios() -> None:
    assert len(set(SCENARIOS)) >= 40


@pytest.mark.parametrize("wire", WIRES)
def test_forty_scenarios_are_green_over_each_wire(wire: str, place: Path) -> None:
    command = json.dumps([sys.executable, str(SERVERS / "plain" / "plain.py")])
    env = f'MODEL_WIRE = "{wire}"\nPROVIDER_BASE_URL = "{{model_url}}"\n'
    profile = place / "plain.toml"
    profile.write_text(f'name = "plain"\ncommand = {command}\n[env]\n{env}', encoding="utf-8")
    words = ["--target", str(profile), "--lanes", "4", "--json", "report.json"]
    ran = run_warm(
        "harness", "run", *words, *SCENARIOS, *UNSAYABLE, cwd=place, together=True, bound=200
    )
    assert ran.status == 0, ran.out
    report = read_report(place / "report.json")
    found = {one.id: one for one in report.scenarios}
    others = {name: found[name].reason for name in SCENARIOS if found[name].verdict != Verdict.PASS}
    assert others == {}
    assert report.red_rules() == []
    for name, reason in UNSAYABLE.items():
        expected = Verdict.PASS if wire == "responses" else Verdict.NOT_APPLICABLE
        assert found[name].verdict is expected
        assert wire == "responses" or reason.format(wire=WIRES[wire]) in found[name].reason
    doctor = run_warm("harness", "doctor", "--target", str(profile), cwd=place, together=True)
    assert f"ok   it calls the model by {WIRES[wire]} (1 call(s))" in doctor.out
    trace = load_trace(place / found["turns/plain-turn"].trace)
    said = [mark.body.wire for mark in trace.marks_of(ModelCall)]
    assert said == ["" if wire == "responses" else WIRES[wire]]
