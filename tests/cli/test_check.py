"""`harness check`: many files, their total, what is owed, known deviations, names on the wire."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT, call

pytestmark = pytest.mark.slow

GOOD = ROOT / "fixtures/traces/good/plain-turn.jsonl"
REAL = ROOT / "fixtures/traces/real-0.107.0"
STOPPED = {"note": "server stdout EOF", "rc": 0}


def recorded(
    path: Path, source: Path = GOOD, *, drop: Sequence[str] = (), quiet: float = 2
) -> Path:
    """A trace of ours as others record it, without the messages of some methods."""
    rows: list[dict[str, Any]] = []
    for line in source.read_text("utf-8").splitlines():
        frame = json.loads(line)
        if "frame" not in frame:
            continue
        side = "C>S" if frame["dir"] == "to-target" else "S>C"
        message = json.loads(frame["raw"])
        if message.get("method") not in drop:
            rows.append({"t": frame["at"], "dir": side, "msg": message})
    rows.append({"t": rows[-1]["t"] + quiet, "dir": "##", "msg": STOPPED})
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_a_file_that_cannot_be_read_costs_that_file_alone(tmp_path: Path) -> None:
    bad, missing = tmp_path / "bad.jsonl", tmp_path / "missing.jsonl"
    bad.write_text("no trace\n")
    said = call("harness", "check", str(bad), str(GOOD), str(missing))
    assert said.status == 2
    assert [line.split(": ")[1] for line in said.err.splitlines()] == [f"{bad}:1", str(missing)]
    first, last = said.out.splitlines()
    assert re.fullmatch(rf"{re.escape(str(GOOD))}: \d+ messages, \d+ rules passed", first)
    assert last == "1 file(s): nothing found; 2 file(s) could not be read"


def test_both_sides_of_one_file_are_one_file() -> None:
    archived = str(GOOD.with_name("archived.jsonl"))
    alone = call("harness", "check", "--side", "both", str(GOOD))
    assert (alone.status, "file(s)" in alone.out) == (0, False)
    two = call("harness", "check", "--side", "both", str(GOOD), archived)
    assert two.out.splitlines()[-1].startswith("2 file(s): ")


def test_a_breach_weighs_more_than_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    said = call("harness", "check", str(REAL / "cmd_accept.jsonl"), str(tmp_path / "missing"))
    assert said.status == 1
    total = said.out.splitlines()[-1]
    assert "1 file(s): MUST 2, SHOULD 2, INFO 1; a MUST is broken in 1 of them" in total


def test_the_file_is_named_before_its_findings_and_a_hint_is_not_called_broken() -> None:
    said = call("harness", "check", str(REAL / "archive.jsonl"))
    assert said.status == 0
    assert said.out.splitlines()[0].startswith(f"{REAL / 'archive.jsonl'}: 59 messages, ")
    assert said.out.splitlines()[0].endswith("; SHOULD 2, INFO 2")
    assert "broken" not in said.out


def test_a_finding_has_its_line_its_clause_and_what_the_server_said(tmp_path: Path) -> None:
    said = call("harness", "check", str(REAL / "cmd_accept.jsonl"))
    found = re.search(r"shape\.server-request: .* \(#\d+, line (\d+)\)$", said.out, re.M)
    assert found
    line = (REAL / "cmd_accept.jsonl").read_text("utf-8").splitlines()[int(found[1]) - 1]
    assert json.loads(line)["msg"]["method"] == "item/commandExecution/requestApproval"
    assert re.search(
        r"clause   approval\.command-array: .*\n +session-protocol, .* line 297", said.out
    )
    source = GOOD.with_name("failed.jsonl")
    failed = recorded(tmp_path / "failed.jsonl", source, drop=["item/started"])
    again = call("harness", "check", str(failed))
    assert re.search(r"^         server   'stream closed'$", again.out, re.M)


def test_debts_after_a_silence_are_suspected_and_judged_with_settled(
    tmp_path: Path,
) -> None:
    path = recorded(tmp_path / "hanging.jsonl", drop=["turn/completed"])
    said = call("harness", "check", str(path))
    assert said.status == 0
    assert re.search(r"^  what never came is only suspected: it was silent for 2 s", said.out, re.M)
    assert re.search(r"^  suspected turn\.completes: ", said.out, re.M)
    assert re.search(r"MUST|broken", said.out) is None
    again = call("harness", "check", "--settled", str(path))
    assert again.status == 1
    assert re.search(r"^  MUST   turn\.completes: ", again.out, re.M)


def test_missing_messages_are_not_judged_if_the_recording_just_ends(tmp_path: Path) -> None:
    path = recorded(tmp_path / "cut.jsonl", drop=["turn/completed"], quiet=0)
    said = call("harness", "check", str(path))
    assert said.status == 0
    assert "what never came is not judged: it ends with its last message" in said.out
    assert "turn.completes" not in said.out


def test_notification_that_the_client_opted_out_of_is_not_missing() -> None:
    path = str(REAL / "handshake.jsonl")
    said = call("harness", "check", path, "--target", "codex-0.107", "--settled")
    assert said.status == 0, said.out
    assert re.search(r"^  note: the client opted out of .*, thread/started$", said.out, re.M)
    assert "thread.started-announced" not in said.out


def test_notification_that_comes_although_the_client_opted_out_is_judged(tmp_path: Path) -> None:
    lines = (REAL / "handshake.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    place = next(number for number, row in enumerate(rows) if "thread" in answer(row))
    message = started(rows[place]["msg"]["result"]["thread"])
    rows.insert(place + 1, {**rows[place], "msg": message})
    path = tmp_path / "opted.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    said = call("harness", "check", str(path), "--settled")
    assert not re.search(r"opted out of .*thread/started", said.out)
    assert "thread.started-announced" in said.out, "of the other thread none came"


def answer(row: dict[str, Any]) -> dict[str, Any]:
    return row["msg"].get("result") or {}


def started(thread: dict[str, Any]) -> dict[str, Any]:
    return {"method": "thread/started", "params": {"thread": thread}}


def test_known_deviations_of_a_profile_are_marked_with_their_reason() -> None:
    path = str(REAL / "cmd_accept.jsonl")
    said = call("harness", "check", path, "--target", "codex-0.107")
    assert said.status == 0
    assert re.search(r"^  KNOWN  shape\.server-request: ", said.out, re.M)
    assert re.search(r"^         known    \w", said.out, re.M)
    assert "MUST" not in said.out


def test_deviation_of_other_scenarios_does_not_hide_a_finding(tmp_path: Path) -> None:
    path = str(REAL / "patch_decline.jsonl")
    said = call("harness", "check", path, "--target", "codex-0.107", "--json", f"{tmp_path}/c.json")
    assert said.status == 1
    assert re.search(r"^  MUST   item\.completed-once: ", said.out, re.M)
    assert re.search(r"^         perhaps  known in approvals/\S+, .*: a declined", said.out, re.M)
    [result] = json.loads((tmp_path / "c.json").read_text("utf-8"))["files"]
    of_rule = {one["rule"]: one for one in result["findings"]}
    assert "a declined patch" in of_rule["item.completed-once"]["perhapsKnown"]
    assert of_rule["thread.id-shape"]["verdict"] == "KNOWN"
    assert of_rule["thread.id-shape"]["known"]


def test_a_finding_uses_the_names_that_the_server_writes(tmp_path: Path) -> None:
    text = GOOD.with_name("failed.jsonl").read_text("utf-8")
    path = tmp_path / "renamed.jsonl"
    path.write_text(
        text.replace(
            r"\"agentErrorInfo\": \"ResponseStreamDisconnected\"",
            r"\"codexErrorInfo\": \"responseStreamDisconnected\"",
        )
    )
    assert call("harness", "check", str(path)).status == 0, "a member that no rule knows"
    said = call("harness", "check", str(path), "--target", "codex-0.107")
    assert re.search(r"^  KNOWN  turn-error\.info-spelling: ", said.out, re.M)
    assert re.search(r"(expected|actual) .*agentErrorInfo", said.out) is None
    assert re.search(r'actual   params\.\S*\.codexErrorInfo: "responseStream', said.out)


def test_findings_that_are_alike_are_told_once_with_their_number(tmp_path: Path) -> None:
    many = GOOD.with_name("many-deltas.jsonl")
    path = recorded(tmp_path / "unstarted.jsonl", many, drop=["item/started"])
    said = call("harness", "check", str(path))
    assert said.status == 1
    assert len(re.findall(r"^  MUST   item\.completed-after-started: ", said.out, re.M)) == 1
    assert re.search(
        r"^         and 3 like it: item \S+ of turn \S+ \(#\d+, line \d+\), ", said.out, re.M
    )


def test_a_profile_that_does_not_exist_is_one_line() -> None:
    said = call("harness", "check", str(GOOD), "--target", "nope")
    assert said.status == 2
    assert "no profile 'nope'" in said.err
    assert said.out == ""
