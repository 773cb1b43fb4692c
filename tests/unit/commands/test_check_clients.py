"""`harness check --side client`: findings, duties that were kept, owed answers, JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli.commands.check import Sides, check_files
from harness.cli.commands.check_clients import check_client
from harness.cli.commands.show import show_trace
from harness.errors import UsageError
from harness.trace.store import TraceFormatError

ROOT = Path(__file__).parents[3]
DUTIFUL = ROOT / "fixtures/traces/clients/dutiful.jsonl"
STEER = ROOT / "fixtures/traces/real-0.107.0/steer.jsonl"
QUESTION = {
    "method": "item/fileChange/requestApproval",
    "id": 0,
    "params": {"threadId": "thr_1", "turnId": "turn_1", "itemId": "item_1"},
}


def said(*paths: Path, **how: Any) -> tuple[int, list[str]]:
    lines: list[str] = []
    return check_files(paths, say=lines.append, **how), lines


def recording(tmp_path: Path, *rows: tuple[float, str, Any]) -> Path:
    path = tmp_path / "recording.jsonl"
    entries = [{"t": at, "dir": towards, "msg": message} for at, towards, message in rows]
    path.write_text("".join(json.dumps(one) + "\n" for one in entries), "utf-8")
    return path


def test_a_client_that_keeps_its_duties_is_green() -> None:
    status, lines = said(DUTIFUL, side=Sides.CLIENT)
    assert status == 0
    assert lines[0].endswith("; the client's duties: 20 kept, 0 broken, 0 never came up")
    assert "duty.answer-known" in lines[1]


@pytest.mark.parametrize(("strict", "verdict"), [(False, "GREEN"), (True, "RED")])
@pytest.mark.parametrize("side", [Sides.CLIENT, Sides.SERVER])
def test_broken_should_counts_with_strict_on_either_side(
    tmp_path: Path, side: Sides, strict: bool, verdict: str
) -> None:
    path = ROOT / "fixtures/traces/real-0.107.0/archive.jsonl"
    if side is Sides.CLIENT:
        path = recording(tmp_path, (0.0, "C>S", {"method": "thread/list", "id": 1}))
    report = tmp_path / "report.json"
    status, lines = said(path, side=side, strict=strict, json_target=str(report))
    assert "SHOULD " in lines[0]
    assert status == int(strict)
    assert json.loads(report.read_text("utf-8"))["verdict"] == verdict


def test_a_broken_duty_is_told_with_its_clause_and_message() -> None:
    status, lines = said(STEER, side=Sides.CLIENT)
    assert status == 1
    assert "2 broken (MUST 1, SHOULD 2)" in lines[0]
    text = "\n".join(lines)
    assert "MUST   duty.params-complete: request turn/steer id 8 (#24, line 25)" in text
    assert (
        "clause   turn-steer.params: turn/steer needs threadId, input and expectedTurnId." in text
    )
    assert "actual   params.expectedTurnId: missing; params has threadId, input" in text
    assert '→ #24 {"method":"turn/steer","id":8' in text
    assert lines[-1].startswith("         duty.") or lines[-1].startswith("  never: ")


def test_servers_are_judged_without_the_duties_and_both_sides_one_after_the_other() -> None:
    _, server = said(STEER)
    _, client = said(STEER, side=Sides.CLIENT)
    _, both = said(STEER, side=Sides.BOTH)
    assert not any("duty." in line for line in server)
    assert both[: len(server) + len(client)] == [*server, *client]


def test_deliberate_breaches_in_a_recording_count(tmp_path: Path) -> None:
    entry = {"t": 0.0, "dir": "C>S", "raw": '{"method":'}
    path = tmp_path / "raw.jsonl"
    path.write_text(json.dumps(entry) + "\n", "utf-8")
    found = check_client(path)
    assert [one.rule for one in found.duties if one.verdict == "FAIL"] == ["duty.message-form"]
    assert found.red


@pytest.mark.parametrize(
    ("last", "settled", "suspected", "broken"),
    [(0.5, False, 0, 0), (3.0, False, 1, 0), (3.0, True, 0, 1), (0.5, True, 0, 1)],
)
def test_an_answer_that_never_came_is_suspected_after_a_silence_and_judged_when_settled(
    tmp_path: Path, last: float, settled: bool, suspected: int, broken: int
) -> None:
    path = recording(
        tmp_path, (0.0, "S>C", QUESTION), (last, "S>C", {"method": "thread/news", "params": {}})
    )
    found = check_client(path, settled=settled)
    assert len(found.trace_check.suspected_rows) == suspected
    failed = [one.rule for one in found.duties if one.verdict == "FAIL"]
    assert failed == ["duty.answers"] * broken
    assert found.red is bool(broken)


def test_no_answer_is_owed_to_a_server_that_ended(tmp_path: Path) -> None:
    ended = {"note": "server stdout EOF", "rc": 1}
    path = recording(tmp_path, (0.0, "S>C", QUESTION), (9.0, "##", ended))
    found = check_client(path)
    assert found.trace_check.suspected_rows == []
    assert "and the server ended" in "\n".join(found.lines())


def test_the_verdicts_go_to_a_file(tmp_path: Path) -> None:
    report = tmp_path / "duties.json"
    assert said(DUTIFUL, STEER, side=Sides.BOTH, json_target=str(report))[0] == 1
    found = json.loads(report.read_text("utf-8"))
    assert found["verdict"] == "RED"
    assert [file["side"] for file in found["files"]] == ["server", "client"] * 2
    found["files"] = [file for file in found["files"] if file["side"] == "client"]
    assert [one["verdict"] for one in found["files"]] == ["GREEN", "RED"]
    first = found["files"][1]["duties"][0]
    assert set(first) == {"rule", "level", "verdict", "clause", "expected", "actual", "wire"}
    duties = {one["rule"]: one for one in found["files"][1]["duties"]}
    assert duties["duty.params-complete"]["verdict"] == "FAIL"
    assert duties["duty.answers"]["verdict"] == "NOT_EXERCISED"


def test_verdicts_on_servers_go_to_a_file_too(tmp_path: Path) -> None:
    report = tmp_path / "new" / "servers.json"
    said(DUTIFUL, json_target=str(report))
    [file] = json.loads(report.read_text("utf-8"))["files"]
    assert (file["side"], file["verdict"]) == ("server", "GREEN")
    assert file["findings"] == []


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"file/x\.json: file is not a folder"):
        said(DUTIFUL, side=Sides.CLIENT, json_target=str(tmp_path / "file" / "x.json"))


def test_a_trace_without_a_session_has_no_client_to_judge() -> None:
    with pytest.raises(TraceFormatError, match="no duty judges a client on the surface 'exec'"):
        check_client(ROOT / "fixtures/traces/good/exec-plain.jsonl")


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("serverRequest/resolved", {"threadId": "thr_1", "requestId": 0}),
        ("serverRequest/resolved", {"threadId": "thr_1"}),
        ("turn/completed", {"threadId": "thr_1", "turn": {"id": "turn_1", "status": "completed"}}),
        ("thread/closed", {"threadId": "thr_1"}),
    ],
)
def test_a_question_that_the_server_ended_is_not_waited_for(
    tmp_path: Path, method: str, params: dict[str, Any]
) -> None:
    path = recording(
        tmp_path,
        (0.0, "S>C", QUESTION),
        (0.5, "S>C", {"method": method, "params": params}),
        (4.0, "##", {"note": "the end"}),
    )
    _, lines = said(path, side=Sides.CLIENT, settled=False)
    assert not any("was not answered" in line for line in lines)
    assert not any("had not answered" in line for line in said(path)[1])
    assert "to answer" not in "\n".join(show_trace(path).lines())
