"""Hygiene findings about a process, distinguished from noise, with a stub as the process."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from harness.client.peer import Peer
from harness.client.target.process import ProcessExit
from harness.judge.verdict import Level
from harness.play.hygiene import Hygiene
from harness.play.session import process_watch as watching
from harness.play.session.process_watch import COUNTS_COMPARED, MIN_GROWTH, ProcessWatch
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder
from harness.trace.trace import End, Header

CLEAN = ProcessExit(0, "none", ())


class Process:
    """A process that holds and says what it is told."""

    pid, home = 1, Path("/home")

    def __init__(self) -> None:
        self.stderr = b""
        self.pipes = 10

    def stderr_since(self, start: int, limit: int) -> tuple[bytes, int]:
        return self.stderr[start:][-limit:], len(self.stderr)


class Pipe:
    """A transport on which a line may have begun."""

    partial = b""


class Bed:
    """A watched process, and conversations with it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *panics: str) -> None:
        self.process, self.hygiene = Process(), Hygiene(Level.INFO)
        self.pipe = Pipe()
        self.peer = Peer(cast("Any", self.pipe), Recorder())
        self.watch = ProcessWatch(cast("Any", self.process), self.peer, self.hygiene, panics)
        monkeypatch.setattr(
            watching,
            "count_descriptors",
            lambda *_: Counter({"pipe": self.process.pipes, "socket": 1}),
        )

    def converse(self, *, died: bool = False, end: End = End.QUIESCENT) -> None:
        self.watch.on_conversation_begin()
        self.peer.begin(Recorder(Header(scenario="mine")))
        self.writes(json.dumps({"method": "x", "params": {}}))
        self.peer.recorder.trace.end = end
        self.watch.on_conversation_end(self.peer.recorder.trace, died=died)

    def writes(self, line: str) -> None:
        self.peer.recorder.record(line.encode(), Direction.FROM_TARGET)

    def found(self, ending: ProcessExit = CLEAN) -> list[str]:
        self.watch.on_exit(ending, 2.0)
        return [finding.id.removeprefix("hygiene.") for finding in self.hygiene.findings]


@pytest.fixture
def bed(monkeypatch: pytest.MonkeyPatch) -> Bed:
    return Bed(monkeypatch)


def test_process_of_which_nothing_is_seen_has_no_finding(bed: Bed) -> None:
    for _ in range(3 * COUNTS_COMPARED):
        bed.converse()
    assert bed.found() == []


COUNTS = {
    "one for each": (range(2 * COUNTS_COMPARED + MIN_GROWTH), True),
    "too few conversations": (range(0, 4 * COUNTS_COMPARED - 2, 2), False),
    "one step early": ([0, *[50] * 20], False),
    "open now and then": ([0, 50, 0, 0, 50, 3, 0, 50, 0, 50, 0, 50], False),
    "back at the end": ([*range(30), 0], False),
    "less than is said": ([0] * COUNTS_COMPARED + [MIN_GROWTH - 1] * COUNTS_COMPARED, False),
    "as much as is said": ([0] * COUNTS_COMPARED + [MIN_GROWTH] * COUNTS_COMPARED, True),
}


@pytest.mark.parametrize("name", COUNTS)
def test_descriptors_have_grown_only_where_all_late_counts_are_above_all_early_ones(
    name: str, bed: Bed
) -> None:
    counts, grown = COUNTS[name]
    for count in counts:
        bed.process.pipes = count
        bed.converse()
    assert bed.found() == (["descriptors"] if grown else [])


def test_descriptors_are_counted_at_rest_only(bed: Bed) -> None:
    for count in range(4 * COUNTS_COMPARED):
        bed.process.pipes = count
        bed.converse(end=End.TIMED_OUT)
    assert bed.found() == []


@pytest.mark.parametrize(
    "line",
    [
        "thread 'main' panicked at src/main.rs:7:9:",
        "Traceback (most recent call last):",
        "panic: runtime error: index out of range",
        "fatal error: all goroutines are asleep - deadlock!",
        "(node:7) UnhandledPromiseRejectionWarning: no",
        "Uncaught TypeError: x is not a function",
        'Exception in thread "main" java.lang.NullPointerException',
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "server: a.c:9: f: Assertion `n > 0' failed.",
        "==7==ERROR: AddressSanitizer: heap-use-after-free",
        "Segmentation fault (core dumped)",
        "2026-01-01 FATAL no more room",
    ],
)
def test_a_runtimes_report_of_a_defect_is_found_and_quoted(line: str, bed: Bed) -> None:
    bed.process.stderr = f"started\n{line}\nmore\n".encode()
    bed.converse()
    assert bed.found() == ["panic"]
    assert bed.hygiene.findings[0].message.endswith(f"stderr has: {line}")


@pytest.mark.parametrize(
    "line",
    ["non-fatal error: retrying", "fatal: not a git repository", "ERROR no panic: all is well"],
)
def test_talk_of_errors_is_no_defect(line: str, bed: Bed) -> None:
    bed.process.stderr = f"{line}\n".encode()
    bed.converse()
    assert bed.found() == []


def test_a_report_is_found_once(bed: Bed) -> None:
    bed.converse()
    bed.process.stderr = b"FATAL\n"
    bed.converse()
    bed.converse()
    assert bed.found() == ["panic"]


def test_last_words_are_heard_and_those_of_one_that_died_are_its_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for died, ids in ((False, ["panic"]), (True, [])):
        bed = Bed(monkeypatch)
        bed.converse()
        bed.process.stderr = b"FATAL\n"
        if died:
            bed.converse(died=True, end=End.EXITED)
        assert bed.found() == ids


def test_profile_adds_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    bed = Bed(monkeypatch, "^BUG ")
    bed.process.stderr = b"x\nBUG 17\n"
    bed.converse()
    assert bed.found() == ["panic"]


def test_output_between_conversations_and_after_the_last_is_stray_unless_it_is_a_message(
    bed: Bed,
) -> None:
    bed.converse()
    bed.writes('{"method": "late", "params": {}}')
    bed.converse()
    assert bed.hygiene.findings == []
    bed.writes("50 % done")
    bed.writes("100 % done")
    bed.converse()
    assert bed.hygiene.findings[0].message.endswith("not a message: 50 % done (and 1 more)")
    bed.writes("bye")
    assert bed.found() == ["stray-output", "stray-output"]


def test_end_of_a_line_that_was_begun_in_a_conversation_is_not_stray(bed: Bed) -> None:
    bed.pipe.partial = b'{"met'
    bed.converse()
    bed.writes('{"met')
    assert bed.found() == []
    bed.writes("and more")
    assert bed.found() == ["stray-output"]


def test_noise_within_a_conversation_is_left_to_the_rules(bed: Bed) -> None:
    bed.converse()
    bed.watch.on_conversation_begin()
    bed.peer.begin(Recorder(Header(scenario="mine")))
    bed.writes("noise")
    bed.watch.on_conversation_end(bed.peer.recorder.trace, died=False)
    assert bed.found() == []


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        (ProcessExit(0, "none", (), ("a", "b")), True),
        (ProcessExit(-15, "TERM", (), ("a", "b")), True),
        (ProcessExit(0, "none", ()), False),
        (ProcessExit(1, "none", (), ("a",)), False),
        (ProcessExit(-9, "none", (), ("a",)), False),
    ],
)
def test_files_are_told_of_a_server_that_ended_in_its_own_way(
    ending: ProcessExit, *, told: bool, bed: Bed
) -> None:
    bed.converse()
    assert bed.found(ending) == (["temporary-files"] if told else [])


def test_of_a_server_that_never_conversed_only_its_end_is_told(bed: Bed) -> None:
    bed.process.stderr = b"FATAL no licence\n"
    bed.writes("no licence")
    assert bed.found(ProcessExit(-9, "KILL", ("child (pid 7)",), ("a",))) == [
        "leaked-process",
        "ignores-term",
    ]


@pytest.mark.parametrize("status", [-9, 0])
def test_a_server_that_a_scenario_killed_had_no_time_to_end_its_children(
    status: int, bed: Bed
) -> None:
    bed.converse()
    told = bed.found(ProcessExit(status, "none", ("sh (pid 7)",)))
    assert told == ([] if status == -9 else ["leaked-process"])
