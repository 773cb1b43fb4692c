"""Bytes that are not UTF-8: over lines a server goes on, over a WebSocket it must close (RFC 6455).

Neither who closes nor who lets such a frame pass is red there, and other clients are not disturbed:
the ledger says which it was. A server that sends such a frame itself breaks a MUST.
"""

import shlex
import sys
from pathlib import Path

import pytest

from harness.judge.ledger.record import record_trace
from harness.protocol.spec.loading import load_book
from harness.trace.store import load
from tests.processes import COMMANDS

from .judging import SERVERS, bundled, judged

pytestmark = [pytest.mark.slow, pytest.mark.socket]

BOOK = load_book()
PLAIN = "turns/plain-turn"
ALONE, BESIDE = "language/no-text", "clients/no-text-by-another"
AGENT = [str(COMMANDS / "agent"), "app-server", "--listen"]
STRICT = [*AGENT, "{listen}"]
BEFORE = [sys.executable, str(SERVERS / "lenient_text.py"), "{listen}"]
LENIENT = [*BEFORE, *AGENT, "ws://127.0.0.1:0"]
EACH = [sys.executable, str(SERVERS / "listening.py"), "{listen}"]


@pytest.mark.parametrize(
    ("server", "closes"),
    [pytest.param(STRICT, True, id="closes"), pytest.param(LENIENT, False, id="lets-it-pass")],
)
@pytest.mark.usefixtures("place")
def test_over_a_websocket_neither_answer_is_red(server: list[str], closes: bool) -> None:
    found = judged(shlex.join(server), bundled(ALONE, BESIDE), target="reference", scale=1.0)
    assert found.verdicts() == {ALONE: "NOT_APPLICABLE", BESIDE: "PASS"}, found.issues()
    assert found.scenario(ALONE).missing == ("json-lines",)
    assert not found.report.red, found.issues()
    trace = Path(found.scenario(BESIDE).trace).read_text("utf-8")
    assert ("1007 (invalid frame payload data)" in trace) is closes
    record = record_trace(BOOK, load(Path(found.scenario(BESIDE).trace)))
    choices = [one for one in record.choices if one.point == "rpc.malformed-lines"]
    value = "the connection is closed, 1007" if closes else "not answered"
    assert [(one.situation, one.value) for one in choices] == [("not UTF-8", value)]


@pytest.mark.usefixtures("place")
def test_a_server_that_sends_no_text_is_red_with_the_byte_as_proof() -> None:
    server = [*BEFORE[:2], "--spoils", *BEFORE[2:], *AGENT, "ws://127.0.0.1:0"]
    found = judged(shlex.join(server), bundled(PLAIN), target="reference", scale=1.0)
    assert "frame.well-formed" in found.failed_rules()
    rows = [row for row in found.outcomes[PLAIN].rows if row.rule == "frame.well-formed"]
    assert any("no UTF-8 from byte" in row.actual for row in rows)


@pytest.mark.usefixtures("place")
def test_an_example_that_closes_is_not_red_and_says_nothing_of_itself() -> None:
    found = judged(shlex.join(EACH), bundled(ALONE, BESIDE), scale=1.0)
    assert found.verdicts()[ALONE] == "NOT_APPLICABLE"
    assert not found.report.red
    assert found.issues() == {}


@pytest.mark.usefixtures("place")
def test_over_lines_it_is_played() -> None:
    found = judged(shlex.join(AGENT[:-1]), bundled(ALONE), target="reference", scale=1.0)
    assert found.verdicts() == {ALONE: "PASS"}


@pytest.mark.usefixtures("place")
def test_an_entry_of_a_baseline_about_it_is_not_stale_over_a_websocket(tmp_path: Path) -> None:
    known = tmp_path / "known.toml"
    entry = {"rule": "scenario.crash", "scenario": ALONE, "reason": "it ends"}
    lines = "\n".join(f'{name} = "{value}"' for name, value in entry.items())
    known.write_text(f"[[deviations]]\n{lines}\n", "utf-8")
    told = str(known)
    found = judged(shlex.join(LENIENT), bundled(ALONE), target="reference", baseline=told)
    assert found.issues() == {}
    assert found.report.unchecked == [f"scenario.crash (scenario {ALONE})"]
    by_lines = judged(shlex.join(AGENT[:-1]), bundled(ALONE), target="reference", baseline=told)
    assert list(by_lines.issues()) == ["baseline.stale"]
