"""The parts that the benchmark measures with: they must not themselves be wrong."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.judge.rules.discovery import all_rules
from harness.search.mutation.result import Score
from tools.bench import fuzz, measures, one_shot, rules, suite, targets
from tools.bench.budgets import BUDGETS
from tools.bench.client import MeasurementFailed, running_server
from tools.bench.model import DELTAS, STREAM_WORD, Calls, answer
from tools.bench.stats import Absent, Figure

TALKER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    for number in range(3):
        print(json.dumps({"method": f"told/{number}", "params": {}}))
    if asked["method"] == "refuse":
        print(json.dumps({"id":asked["id"],"error":{"code":-1}}, separators=(",",":")))
    else:
        print(json.dumps({"id":asked["id"],"result":asked["params"]}, separators=(",",":")))
    print('{"method":"after"}', flush=True)
"""


def talker(tmp_path: Path, source: str = TALKER) -> Any:
    command = [sys.executable, "-S", "-c", source]
    return running_server(command, cwd=tmp_path, env={}, stderr=tmp_path / "stderr")


class FakeTransport(asyncio.WriteTransport):
    """Transport that keeps the bytes written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))


def post(body: bytes) -> bytes:
    head = f"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def unchunked(response: bytes) -> list[bytes]:
    """The chunks of a whole HTTP answer."""
    _, rest = response.split(b"\r\n\r\n", 1)
    chunks: list[bytes] = []
    while True:
        size, rest = rest.split(b"\r\n", 1)
        length = int(size, 16)
        if length == 0:
            assert rest == b"\r\n"
            return chunks
        chunks.append(rest[:length])
        assert rest[length : length + 2] == b"\r\n"
        rest = rest[length + 2 :]


def test_request_gives_the_result_of_its_own_answer(tmp_path: Path) -> None:
    with talker(tmp_path) as client:
        assert client.request("echo", {"n": 1}) == {"n": 1}
        assert client.request("echo", {"n": 2}) == {"n": 2}


def test_lines_behind_an_answer_stay_for_the_next_reader(tmp_path: Path) -> None:
    with talker(tmp_path) as client:
        client.request("echo", {})
        assert next(client.lines()) == b'{"method":"after"}'


def test_until_gives_everything_up_to_the_line_with_the_mark(tmp_path: Path) -> None:
    with talker(tmp_path) as client:
        client.send("echo", {})
        lines = client.read_until(b'"after"').splitlines()
        assert len(lines) == 5
        assert json.loads(lines[0])["method"] == "told/0"


def test_until_begins_with_what_was_read_before(tmp_path: Path) -> None:
    with talker(tmp_path) as client:
        client.request("echo", {})
        assert client.read_until(b'"after"') == b'{"method":"after"}\n'


def test_a_refused_request_fails_the_measurement(tmp_path: Path) -> None:
    with talker(tmp_path) as client, pytest.raises(MeasurementFailed, match="refuse was refused"):
        client.request("refuse", {})


def test_a_server_that_ends_fails_the_measurement_with_its_stderr(tmp_path: Path) -> None:
    source = "import sys; sys.stdin.readline(); sys.exit('no disk')"
    words = "the server ended; stderr: no disk"
    with talker(tmp_path, source) as client, pytest.raises(MeasurementFailed, match=words):
        client.request("echo", {})


def test_a_program_that_is_not_there_fails_the_measurement(tmp_path: Path) -> None:
    started = running_server(["no-such-program"], cwd=tmp_path, env={}, stderr=tmp_path / "stderr")
    with pytest.raises(MeasurementFailed, match="no-such-program"), started:
        pass


def test_model_sends_an_event_a_chunk() -> None:
    chunks = unchunked(answer(["a", "b"]))
    kinds = [chunk.split(b"\n", 1)[0].removeprefix(b"event: response.") for chunk in chunks]
    assert kinds == [
        b"created",
        b"output_item.added",
        b"output_text.delta",
        b"output_text.delta",
        b"output_item.done",
        b"completed",
    ]


def test_model_answers_each_request_of_a_connection_however_it_is_cut() -> None:
    calls, transport = Calls(b"short", b"long"), FakeTransport()
    calls.connection_made(transport)
    stream = post(b'{"input":"go"}') + post(f'"{STREAM_WORD}"'.encode()) + post(b"{}")
    for start in range(0, len(stream), 7):
        calls.data_received(stream[start : start + 7])
    assert transport.written == [b"short", b"long", b"short"]


def test_model_lists_nothing_when_models_are_asked_for() -> None:
    calls, transport = Calls(b"short", b"long"), FakeTransport()
    calls.connection_made(transport)
    calls.data_received(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
    body = transport.written[0].split(b"\r\n\r\n", 1)[1]
    assert json.loads(body)["data"] == []


def test_the_trace_of_the_rules_is_judged_by_all_and_found_right() -> None:
    found = rules.measure(frames=1)
    assert found["broken"] == []
    assert found["rules"] == len(all_rules())
    assert found["frames"] > rules.DELTAS_PER_TURN


def test_a_suite_that_is_not_all_green_says_so() -> None:
    scenarios = [
        {"id": suite.TRIVIAL, "verdict": "PASS", "seconds": 0.06},
        {"id": "other", "verdict": "FAIL", "seconds": 1.0},
    ]
    cells = suite.suite_cells({"scenarios": scenarios}, 2.5)
    whole, trivial = cells["suite"], cells["scenario"]
    assert isinstance(whole, Figure)
    assert whole.value == 2.5
    assert whole.note.startswith("2 scenarios, lanes by the cores")
    assert "only 1 passed" in whole.note
    assert isinstance(trivial, Figure)
    assert trivial.value == 60


def test_races_are_counted_by_placement_and_play() -> None:
    passed = {"verdict": "PASS", "runs": 1}
    placements = [passed, {"verdict": "FAIL", "runs": 5}]
    report = {"races": [{"placements": placements}, {"placements": [passed]}]}
    cell = suite.races_cells(report, 100.0)["races"]
    assert isinstance(cell, Figure)
    assert cell.value == 100
    assert cell.note == "3 placements, 7 plays, 2 workers, only 2 passed"


def test_mutation_is_the_time_of_its_run_with_its_score() -> None:
    score = Score("reference", planned_count=3).as_json()
    cell = suite.mutation_cells(score, 100.0)["live-mutation"]
    assert isinstance(cell, Figure)
    assert (cell.value, cell.note) == (100, "3 faults, 0 killed, 2 workers")


def test_a_real_server_counts_as_installed_only_with_its_program(tmp_path: Path) -> None:
    real = targets.REALS[0]
    assert not real.is_installed(tmp_path)
    program = real.path(tmp_path)
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    assert real.is_installed(tmp_path)


def test_a_target_that_cannot_start_leaves_its_reason_in_every_cell(tmp_path: Path) -> None:
    program = tmp_path / "broken"
    program.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    program.chmod(0o755)
    profile = targets.load_profile("spec").model_copy(update={"command": [str(program)]})
    folder = tmp_path / "homes"
    folder.mkdir()
    target = targets.Target("broken", profile, folder)
    cells = measures.all_of(target, "http://127.0.0.1:9/v1", measures.SLOW)
    assert set(cells) == {key for keys in measures.KEYS for key in keys}
    for cell in cells.values():
        assert isinstance(cell, Absent)
        assert cell.reason.startswith("failed: ")


def test_only_requested_parts_are_measured(tmp_path: Path) -> None:
    profile = targets.load_profile("spec").model_copy(update={"command": ["false"]})
    target = targets.Target("broken", profile, tmp_path)
    cells = measures.all_of(target, "http://127.0.0.1:9/v1", measures.SLOW, ["first-turn"])
    assert list(cells) == list(measures.START_KEYS)


def test_every_measured_cell_is_a_row_of_the_table() -> None:
    rows = {budget.key for budget in BUDGETS}
    assert {key for keys in measures.KEYS for key in keys} <= rows


def test_long_answer_has_the_deltas_that_are_counted() -> None:
    chunks = unchunked(answer([f"{number}" for number in range(DELTAS)]))
    assert sum(b'"response.output_text.delta"' in chunk for chunk in chunks) == DELTAS


@pytest.mark.slow
@pytest.mark.socket
def test_fuzzing_counts_the_requests_of_its_conversations(tmp_path: Path) -> None:
    found = fuzz.measure(tmp_path, conversations=2)
    assert found["conversations"] >= 2
    assert found["broken"] == 0
    assert found["requests_per_second"] > 0


@pytest.mark.slow
@pytest.mark.socket
def test_a_run_of_agent_exec_has_a_first_event_before_its_end(tmp_path: Path) -> None:
    cells = one_shot.all_of(tmp_path, runs=1)
    first, end, cpu = (cells[key] for key in one_shot.KEYS)
    assert isinstance(first, Figure)
    assert isinstance(end, Figure)
    assert isinstance(cpu, Figure)
    assert 0 < first.value < end.value
    assert cpu.value > 0
