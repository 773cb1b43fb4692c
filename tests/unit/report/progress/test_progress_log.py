"""The file of a run's events: what is written is read, whole lines only, in order."""

import threading
from pathlib import Path

import pytest

from harness.cli.suite.play_events import report_play
from harness.report.progress.events import (
    Event,
    Found,
    PlayEnded,
    PlaysCounted,
    PlayStarted,
    RunEnded,
    RunStarted,
    StepStarted,
    from_line,
    to_line,
)
from harness.report.progress.log import (
    MAX_RUNS_KEPT,
    ProgressLog,
    progress_path,
    read_events,
    remove_old_logs,
)
from harness.report.progress.state import RunState
from tests.unit.results.outcomes import outcome, report_of

EVENTS: tuple[Event, ...] = (
    RunStarted(run="r1", target="spec", command="python s.py", pid=7, total=4),
    PlayStarted(scenario="turns/a", lane="main"),
    StepStarted(scenario="turns/a", lane="main", step="expect, line 9"),
    Found(rule="turn.completes", level="MUST", text="\x1b]0;x\x07 \ud800 <b>", scenario="turns/a"),
    PlayEnded(scenario="turns/a", lane="main", verdict="FAIL", seconds=1.5, provisional=True),
    PlaysCounted(plays=12),
    RunEnded(verdict="RED", status=1),
)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_an_event_survives_its_line(event: Event) -> None:
    line = to_line(event, 12.5)
    assert line.count(b"\n") == 1
    assert b"\x1b" not in line
    read = from_line(line)
    assert read is not None
    assert read[1] == 12.5
    assert isinstance(read[0], type(event))
    assert event is EVENTS[3] or read[0] == event


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"nothing",
        b"[]",
        b'{"event":"of a later version","at":1}',
        b'{"event":"run-ended","at":1}',
        b'{"event":"run-ended","verdict":"RED"}',
        b'{"event":"plays-counted","at":1,"plays":"many"}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_line_is_not_an_event(line: bytes) -> None:
    assert from_line(line) is None


def test_a_reader_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = progress_path(tmp_path, "r1")
    log = ProgressLog(path)
    heard: list[Event] = []
    log.listeners.append(heard.append)
    for event in EVENTS[:2]:
        log.write(event)
    first = read_events(path)
    with path.open("ab") as file:
        file.write(b'damaged\n{"event":"run-')
    assert read_events(path, first[-1][2]) == []
    with path.open("ab") as file:
        file.write(b'ended","at":3,"verdict":"GREEN"}\n')
    rest = read_events(path, first[-1][2])
    log.close()
    assert [event for event, *_ in first] == list(EVENTS[:2]) == heard
    assert [event for event, *_ in rest] == [RunEnded(verdict="GREEN")]
    assert rest[-1][2] == path.stat().st_size
    assert path.stat().st_mode & 0o77 == 0


def test_processes_that_write_at_once_do_not_mix_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "r1.jsonl"
    logs = [ProgressLog(path) for _ in range(4)]

    def write(log: ProgressLog, lane: int) -> None:
        for number in range(200):
            log.write(PlayStarted(scenario=f"{number}-{'x' * 2000}", lane=str(lane)))

    threads = [threading.Thread(target=write, args=(log, lane)) for lane, log in enumerate(logs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = [event for event, *_ in read_events(path)]
    for log in logs:
        log.close()
    assert len(events) == 800
    for lane in map(str, range(4)):
        of_lane = [e.scenario for e in events if isinstance(e, PlayStarted) and e.lane == lane]
        assert [int(one.partition("-")[0]) for one in of_lane] == list(range(200))


def test_only_the_step_of_a_sample_is_written() -> None:
    log, heard = ProgressLog(), list[Event]()
    written = threading.Event()
    log.listeners += [heard.append, lambda _: written.set()]
    for step in ("send", "expect", "wait"):
        log.begin_step("main", "turns/a", step)
    log.begin_step("main-2", "turns/b", "ended before")
    log.end_steps("main-2")
    assert written.wait(20)
    log.close()
    assert heard == [StepStarted(scenario="turns/a", lane="main", step="wait")]


def test_wait_of_a_step_is_sampled_with_it_and_ends_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, heard = ProgressLog(), list[Event]()
    log.listeners.append(heard.append)
    monkeypatch.setattr(log, "_start_sampler", lambda: None)
    log.begin_wait("main", "of no step", 1.0)
    log.begin_step("main", "turns/a", "wait")
    log.begin_wait("main", "the end of turn u", 5.0)
    log.sample()
    log.begin_wait("main", "the end of turn u", 5.0)
    log.sample()
    log.end_steps("main")
    log.begin_wait("main", "of an ended step", 1.0)
    log.sample()
    waits = StepStarted(
        scenario="turns/a", lane="main", step="wait", waits_for="the end of turn u", bound=5.0
    )
    assert heard == [waits, waits]


@pytest.mark.parametrize("again", [False, True])
def test_outcome_knows_its_lane_and_whether_it_was_replayed_alone(again: bool) -> None:
    words = (ProgressLog(), "a", "main", lambda: outcome("a"))
    played = report_play(*words, alone=True, again=again)
    [result] = report_of(played).scenarios
    assert (result.lane, result.replayed) == ("main", again)


def test_plays_of_a_campaign_are_counted() -> None:
    log, heard = ProgressLog(), list[Event]()
    written = threading.Event()
    log.listeners += [heard.append, lambda _: written.set()]
    log.count_play()
    log.counts_plays = True
    for _ in range(5):
        log.count_play()
    assert written.wait(20)
    log.close()
    assert heard == [PlaysCounted(plays=5)]


def test_a_file_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "progress").write_text("not a folder")
    log, heard = ProgressLog(progress_path(tmp_path, "r1")), list[Event]()
    log.listeners.append(heard.append)
    log.write(EVENTS[0])
    log.close()
    assert heard == [EVENTS[0]]


def test_the_state_of_a_run_follows_its_events() -> None:
    state = RunState()
    for number, event in enumerate(EVENTS[:3]):
        state.feed(event, 100.0 + number)
    assert state.lanes["main"].step == "expect, line 9"
    assert state.seconds_left(110) is None
    for event in EVENTS[3:5]:
        state.feed(event, 105.0)
    assert state.seconds_left(110) == 30
    assert state.counts == {"FAIL": 1}
    assert not state.lanes
    state.feed(PlayEnded(scenario="turns/a", lane="main", verdict="PASS"), 106.0)
    state.feed(EVENTS[-1], 107.0)
    assert state.counts == {"PASS": 1}
    assert state.seconds_left(110) is None
    assert state.ended == EVENTS[-1]
    assert [one.rule for one in state.findings] == ["turn.completes"]


def test_logs_of_old_runs_are_removed(tmp_path: Path) -> None:
    for number in range(MAX_RUNS_KEPT + 3):
        log = ProgressLog(progress_path(tmp_path, f"run-{number:02}"))
        log.write(EVENTS[0])
        log.close()
    remove_old_logs(tmp_path)
    assert len(list((tmp_path / "progress").iterdir())) == MAX_RUNS_KEPT
