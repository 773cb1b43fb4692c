"""Rollouts: written records, and reading of complete, truncated and foreign files."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from model_side import CREATED, Reply, delta, opened, says
from session_peer import session

from harness.protocol.wire.error import TurnError
from harness.protocol.wire.input import TextInput
from harness.protocol.wire.item import AgentMessageItem, UserMessageItem
from reference_server.config.home import Home
from reference_server.rollout.conversation import ABORTED
from reference_server.rollout.fold import UnreadableRollout, fold, mark_running
from reference_server.rollout.reader import RolloutReader, read_rollout
from reference_server.rollout.records import (
    CompactedRecord,
    HistoryRecord,
    ItemRecord,
    NameRecord,
    Record,
    RollbackRecord,
    ThreadRecord,
    TurnCompletedRecord,
    TurnStartedRecord,
)
from reference_server.rollout.store import RolloutStore
from reference_server.rollout.writer import MAX_OPEN, FileRecorder
from reference_server.settings import ThreadSettings, sandbox_policy

SETTINGS = ThreadSettings(
    model="m",
    model_provider="p",
    cwd="/w",
    approval_policy="never",
    sandbox=sandbox_policy("read-only"),
)
USER = UserMessageItem(id="item_1", content=[TextInput(text="hi")])
AGENT = AgentMessageItem(id="item_2", text="there")
FAILURE = TurnError(message="m", agent_error_info="Other", additional_details="d")


def message(role: str) -> dict[str, Any]:
    """A Responses API item of the conversation."""
    return {"type": "message", "role": role, "content": []}


def records() -> list[Record]:
    later = SETTINGS.model_copy(update={"model": "n"})
    return [
        ThreadRecord(at=1.5, id="thr_1", settings=SETTINGS),
        TurnStartedRecord(at=2, turn_id="turn_1", settings=SETTINGS),
        ItemRecord(at=3, turn_id="turn_1", item=USER),
        HistoryRecord(at=4, turn_id="turn_1", items=[message("user")]),
        ItemRecord(at=5, turn_id="turn_1", item=AGENT),
        TurnCompletedRecord(at=6, turn_id="turn_1", status="completed", error=None),
        TurnStartedRecord(at=7, turn_id="turn_2", settings=later),
        TurnCompletedRecord(at=8, turn_id="turn_2", status="failed", error=FAILURE),
    ]


def types_in(path: Path) -> list[str]:
    return [json.loads(line)["type"] for line in path.read_text().splitlines()]


def write(path: Path, lines: list[Record]) -> None:
    recorder = FileRecorder(path)
    for line in lines:
        recorder.append(line)
    recorder.close()


def test_written_records_are_read_back(tmp_path) -> None:
    path = tmp_path / "a" / "b.jsonl"
    write(path, records())
    thread = read_rollout(path)
    assert thread == fold(records())
    assert (thread.id, thread.preview, thread.settings.model) == ("thr_1", "hi", "n")
    assert (thread.created_at, thread.updated_at) == (1.5, 8)
    assert thread.history == [message("user")]
    assert thread.turns[0].items == [USER, AGENT]
    assert [(t.id, t.status, t.error) for t in thread.turns] == [
        ("turn_1", "completed", None),
        ("turn_2", "failed", FAILURE),
    ]


def test_a_file_cut_anywhere_reads_as_a_beginning_of_the_whole(tmp_path, caplog) -> None:
    path = tmp_path / "r.jsonl"
    write(path, records())
    data = path.read_bytes()
    first = data.index(b"\n")
    for size in range(first, len(data)):
        path.write_bytes(data[:size])
        thread = read_rollout(path)
        # A line that lacks only its newline is whole.
        whole = data[:size].count(b"\n") + (data[size : size + 1] == b"\n")
        assert thread == fold(records()[:whole]), size


def test_a_turn_without_an_end_reads_as_interrupted() -> None:
    [turn] = fold(records()[:3]).turns
    assert (turn.status, turn.error) == ("interrupted", None)


def test_the_last_name_counts_and_none_takes_it_away() -> None:
    named = [*records(), NameRecord(at=9, name="a"), NameRecord(at=10, name="b")]
    assert (fold(named).name, fold(named).updated_at) == ("b", 10)
    assert fold([*named, NameRecord(at=11, name=None)]).name is None


def test_a_rollback_drops_turns_and_what_they_said() -> None:
    first = fold(records()[:6])
    both = [*records(), HistoryRecord(at=9, turn_id="turn_2", items=[message("more")])]
    dropped = fold([*both, RollbackRecord(at=10, num_turns=1)])
    assert (dropped.turns, dropped.history) == (first.turns, first.history)
    # Asked for more than there are: none is left.
    assert fold([*both, RollbackRecord(at=10, num_turns=10**30)]).history == []
    assert fold([*both, RollbackRecord(at=10, num_turns=10**30)]).turns == []


def test_a_rollback_to_before_a_compaction_brings_the_conversation_back() -> None:
    short = CompactedRecord(at=9, turn_id="turn_2", history=[message("summary")])
    later = TurnStartedRecord(at=10, turn_id="turn_3", settings=SETTINGS)
    said = HistoryRecord(at=11, turn_id="turn_3", items=[message("late")])
    lines = [*records()[:7], short, later, said]
    assert fold([*lines, RollbackRecord(at=12, num_turns=1)]).history == [message("summary")]
    assert fold([*lines, RollbackRecord(at=12, num_turns=2)]).history == [message("user")]


def test_a_call_whose_server_died_gets_an_output_before_the_next_turn() -> None:
    call = {"type": "custom_tool_call", "call_id": "c", "name": "n", "input": ""}
    answered = {"type": "function_call", "call_id": "d", "name": "n", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "d", "output": "fine"}
    lines = [
        *records()[:2],
        HistoryRecord(at=3, turn_id="turn_1", items=[call, answered]),
        HistoryRecord(at=3, turn_id="turn_1", items=[output]),
    ]
    mended = {"type": "custom_tool_call_output", "call_id": "c", "output": ABORTED}
    assert fold(lines).history == [call, answered, output, mended]
    lines += [TurnStartedRecord(at=4, turn_id="turn_2", settings=SETTINGS)]
    lines += [HistoryRecord(at=5, turn_id="turn_2", items=[message("user")])]
    assert fold(lines).history == [call, answered, output, mended, message("user")]


def test_a_line_that_is_still_being_written_is_read_when_it_is_whole(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    whole = b"".join(record.encode() + b"\n" for record in records())
    reader = RolloutReader(path)
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        reader.read()
    path.write_bytes(whole)
    reader.read()
    assert reader.finish() == fold(records())


def test_who_runs_the_turn_shows_it_in_progress() -> None:
    thread = fold(records()[:3])
    mark_running(thread, "turn_1")
    assert thread.turns[0].status == "inProgress"


def test_lines_that_are_no_records_are_skipped(tmp_path, caplog) -> None:
    path = tmp_path / "r.jsonl"
    write(path, records())
    lines = path.read_bytes().splitlines(keepends=True)
    odd = [b"\n", b"nonsense\n", b'{"type":"from-the-future","at":9}\n', b"\xff\n", b"[]\n"]
    path.write_bytes(b"".join([lines[0], *odd, *lines[1:]]))
    assert read_rollout(path) == fold(records())
    assert f"{path}:3" in caplog.text


def test_a_file_that_holds_no_thread_is_unreadable(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    for content in (b"", b"nonsense\n", records()[1].encode() + b"\n"):
        path.write_bytes(content)
        with pytest.raises(UnreadableRollout):
            read_rollout(path)


def test_a_record_after_a_torn_line_begins_a_line_of_its_own(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    write(path, records()[:2])
    with path.open("ab") as file:
        file.write(b'{"type":"item","at":3,"tur')
    write(path, records()[2:])
    assert read_rollout(path) == fold(records())


@pytest.mark.skipif(sys.platform != "linux", reason="counts open files by /proc")
def test_more_threads_can_be_written_than_files_are_open(tmp_path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    paths = [tmp_path / f"{number}.jsonl" for number in range(MAX_OPEN + 10)]
    recorders = [FileRecorder(path) for path in paths]
    for record in records():
        for recorder in recorders:
            recorder.append(record)
    recorders[0].sync()
    assert len(os.listdir("/proc/self/fd")) <= before + MAX_OPEN
    for recorder in recorders:
        recorder.close()
    # Others of this process may have closed files of their own meanwhile.
    assert len(os.listdir("/proc/self/fd")) <= before
    for path in paths:
        assert read_rollout(path) == fold(records())


def test_a_rollout_that_is_gone_is_not_begun_anew(tmp_path) -> None:
    recorders = [FileRecorder(tmp_path / f"{number}.jsonl") for number in range(MAX_OPEN + 1)]
    (tmp_path / "0.jsonl").unlink()
    with pytest.raises(FileNotFoundError):
        recorders[0].append(records()[0])
    with pytest.raises(FileNotFoundError):
        recorders[0].close()
    for recorder in recorders[1:]:
        recorder.close()


def test_threads_are_found_by_their_whole_id(tmp_path) -> None:
    store = RolloutStore(Home(tmp_path))
    for thread in ("thr_1", "thr_11", "thr_111"):
        write(store.new_path(thread, 0.0), [ThreadRecord(at=0, id=thread, settings=SETTINGS)])
    found = store.find("thr_11")
    assert found is not None
    assert found.relative_to(tmp_path).as_posix() == (
        "sessions/1970/01/01/rollout-1970-01-01T00-00-00-thr_11.jsonl"
    )
    assert store.find("thr_1111") is None
    assert store.find("thr_*") is None


async def test_a_client_is_told_only_what_is_in_the_file(tmp_path) -> None:
    """The server is not asked to end: the file is read as a crash would leave it."""
    never = anyio.Event()
    held = Reply([CREATED, opened(), delta("a"), never])
    async with session(tmp_path, [says("b"), held]) as peer:
        answer = await peer.request("thread/start")
        path = Path(answer["result"]["thread"]["path"])
        done = await peer.run_turn("thr_1", "one")
        cut = await peer.start_turn("thr_1", "two")
        await peer.event("item/agentMessage/delta", turnId=cut)
        left = read_rollout(path)
    assert [(t.id, t.status) for t in left.turns] == [
        (done["id"], "completed"),
        (cut, "interrupted"),
    ]
    told = [p["item"] for p in peer.params_of("item/completed") if p["turnId"] == done["id"]]
    assert [item.plain() for item in left.turns[0].items] == told
    assert [item.type for item in left.turns[1].items] == ["userMessage"]
    assert types_in(path)[-1] == "turn-completed"
