"""The conversations of a page: which ones it has, and that they are what the traces show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.judge.verdict import Place, Verdict
from harness.report.diagram.build import build_diagram
from harness.report.html.conversations import Conversations, pack, unpack
from harness.report.results.report import Report
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder
from harness.trace.store import load, save
from harness.trace.surface.registry import classify_of
from harness.trace.trace import Header
from tests.unit.report.html_pages import Element, Page, page_of
from tests.unit.results.outcomes import failed, outcome, passed, report_of


def stored_trace(folder: Path, name: str, messages: int = 3, text: str = "x") -> str:
    now = iter(range(100_000))
    recorder = Recorder(Header(profile="p"), clock=lambda: next(now) / 1000)
    for number in range(messages):
        message = {"method": "turn/completed", "params": {"number": number, "text": text}}
        recorder.record(json.dumps(message).encode(), Direction.FROM_TARGET)
    path = folder / f"{name}.jsonl"
    save(recorder.trace, path)
    return str(path)


def report_with(folder: Path) -> Report:
    row = failed("turn.completed-once", places=(Place(1, "params.number"),))
    bad = outcome("a/bad", row, kept=stored_trace(folder, "bad"), stderr="it crashed")
    good = outcome("a/good", passed("turn.completes"), kept=stored_trace(folder, "good", 40))
    return report_of(bad, good, outcome("a/none", verdict=Verdict.NOT_APPLICABLE))


def conversation_of(page: Page, place: Element) -> object:
    return unpack(page.with_id(f"conversation-{place.attributes['data-conversation']}").text)


def folds(page: Page) -> list[Element]:
    return [one for one in page.named("details") if "data-conversation" in one.attributes]


def test_conversation_of_a_finding_is_the_diagram_of_its_trace(tmp_path: Path) -> None:
    report = report_with(tmp_path)
    page = page_of(report)
    first, *others = folds(page)
    trace = load(tmp_path / "bad.jsonl", classify_of=classify_of)
    proof = next(rule for rule in report.rules if rule.proofs).proofs[0]
    plain = build_diagram(trace, [proof.row], stderr="it crashed").as_json()
    assert conversation_of(page, first) == json.loads(json.dumps(plain))
    marks = [mark for row in plain["rows"] for mark in row.get("marks", ())]
    assert [mark["path"] for mark in marks] == ["params.number"]
    numbers = [one.attributes["data-conversation"] for one in others]
    # The rows of both scenarios that have a trace; the first is the finding's too.
    assert numbers == [first.attributes["data-conversation"], "1"]


def test_conversation_whose_trace_is_gone_is_left_out(tmp_path: Path) -> None:
    report = report_with(tmp_path)
    (tmp_path / "bad.jsonl").unlink()
    (tmp_path / "good.jsonl").write_text("not a trace")
    page = page_of(report)
    assert folds(page) == []
    assert "turn.completed-once" in page.with_id("findings").text


def test_conversations_of_findings_are_kept_however_large_the_others_are(tmp_path: Path) -> None:
    small, large = stored_trace(tmp_path, "small"), stored_trace(tmp_path, "large", 400)
    needed = stored_trace(tmp_path, "needed", 500)
    room = len(pack(build_diagram(load(Path(small), classify_of=classify_of)).as_json()))
    conversations = Conversations(room)
    conversations.add_all([needed, ""], [large, small, needed], [])
    assert conversations.number(needed) == 0
    assert conversations.number(small) is conversations.number(large) is None
    assert conversations.left_out == 2
    for spare in (0, 10):
        roomy = Conversations(room + spare)
        roomy.add_all([], [large, small, ""], [])
        assert (roomy.number(small), roomy.number(large), roomy.left_out) == (0, None, 1)


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "\x1b[31m\u202e", "\ud800"])
def test_text_of_a_message_is_only_in_compressed_data(tmp_path: Path, text: str) -> None:
    row = failed("turn.completed-once", places=(Place(1, "params.text"),))
    bad = outcome("a/bad", row, kept=stored_trace(tmp_path, "bad", text=text))
    page = page_of(report_of(bad))
    data = conversation_of(page, folds(page)[0])
    assert json.dumps(data).isascii()
    script = page.with_id("conversation-0")
    assert script.attributes["type"] == "text/plain"
    assert not set(script.text) & set("<>&")


def test_line_of_ten_megabytes_is_shortened(tmp_path: Path) -> None:
    row = failed("turn.completed-once", places=(Place(1, "params.text"),))
    kept = stored_trace(tmp_path, "bad", text="y" * 10_000_000, messages=2)
    page = page_of(report_of(outcome("a/bad", row, kept=kept)))
    assert len(json.dumps(conversation_of(page, folds(page)[0]))) < 100_000
    assert len(page.source) < 1_000_000
