"""The progress of a run in a terminal: its numbers, its lanes, and lines that stay."""

import io
import os
import pty
from collections.abc import Mapping
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from harness.report.progress.events import (
    Event,
    Found,
    PlayEnded,
    PlaysCounted,
    PlayStarted,
    RunStarted,
    StepStarted,
)
from harness.report.progress.fuzz_view import FuzzView
from harness.report.progress.log import ProgressLog, progress_path
from harness.report.progress.plays_view import PlaysView
from harness.report.progress.run_view import RunView, duration_words
from harness.report.progress.terminal_area import OutputAbove, TerminalArea, can_show_area
from tests.terminal_screen import screen


def began(total: int) -> RunStarted:
    return RunStarted(run="r", total=total, target="spec")


def ended(scenario: str, verdict: str = "PASS", **more: bool | str) -> PlayEnded:
    return PlayEnded(scenario=scenario, lane="main", verdict=verdict, **more)  # type: ignore[arg-type]


def view_of(
    *events: tuple[Event, float], now: float = 100.0, expected: Mapping[str, float] | None = None
) -> RunView:
    view = RunView(expected or {}, lambda: now)
    for event, at in events:
        view.feed(event, at)
    return view


def drawn(view: RunView | FuzzView, width: int = 100, height: int = 24) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width, height=height, color_system=None).print(view)
    return file.getvalue().splitlines()


def test_plays_failures_and_time_left_are_counted() -> None:
    view = view_of(
        (began(4), 0.0),
        (ended("a"), 10.0),
        (Found(rule="turn.ends", level="MUST", text="never", scenario="b"), 20.0),
        (ended("b", "FAIL", reason="late"), 20.0),
        now=20.0,
    )
    assert drawn(view)[0] == "2 of 4 played, 20 s left"
    assert len(list(view.settle("b"))) == 2
    assert drawn(view)[0] == "2 of 4 played, 20 s left, 1 failed, broken rules: 1"


def test_time_left_follows_the_durations_of_earlier_plays() -> None:
    earlier = {"short": 1.0, "long": 9.0}
    view = view_of((began(2), 0.0), (ended("short"), 2.0), now=2.0, expected=earlier)
    assert view.seconds_left() == 18.0
    view = view_of((began(2), 0.0), (ended("long"), 9.0), now=9.0, expected=earlier)
    assert view.seconds_left() == 1.0


def test_scenario_without_an_earlier_play_counts_as_the_average() -> None:
    view = view_of((began(3), 0.0), (ended("a"), 4.0), now=4.0, expected={"a": 2.0, "b": 6.0})
    assert view.seconds_left() == 20.0  # 2 of 12 took 4 s.


@pytest.mark.parametrize(("now", "waited"), [(13.2, 3), (19.0, 5), (9.0, 0)])
def test_lane_says_what_it_waits_for_and_how_long(now: float, waited: int) -> None:
    step = StepStarted(scenario="a", lane="main", step="wait, line 8")
    wait = StepStarted(
        scenario="a", lane="main", step="wait, line 8", waits_for="the end of turn u", bound=5.0
    )
    events = (began(2), 0.0), (PlayStarted(scenario="a", lane="main"), 9.0), (step, 10.0)
    words = f"waits for the end of turn u, {waited} s of 5 s (wait, line 8)"
    assert drawn(view_of(*events, (wait, 10.0), now=now), width=140)[-1].endswith(words)
    assert drawn(view_of(*events, (wait, 10.0), (step, 11.0)), width=140)[-1].endswith(
        "  wait, line 8"
    )


def test_time_left_is_unknown_before_the_first_end() -> None:
    assert view_of((began(3), 0.0)).seconds_left() is None


def test_lane_shows_its_scenario_and_what_it_waits_for() -> None:
    view = view_of(
        (began(9), 0.0),
        (PlayStarted(scenario="turns/plain-turn", lane="main-2"), 97.5),
        (StepStarted(scenario="turns/plain-turn", lane="main-2", step="wait: turn u"), 98.0),
    )
    assert drawn(view)[-1].split() == [
        "main-2",
        "2.5",
        "s",
        "turns/plain-turn",
        "wait:",
        "turn",
        "u",
    ]
    assert "wait" not in drawn(view, width=40)[-1]


@pytest.mark.parametrize("width", [1, 20, 40, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    view = view_of(
        (began(9), 0.0), (PlayStarted(scenario="s" * 300, lane="gw0"), 1.0), (ended("x"), 2.0)
    )
    assert all(len(line) <= width for line in drawn(view, width))
    assert len(drawn(view, width)) == 3


def test_more_lanes_than_rows_are_counted() -> None:
    plays = [(PlayStarted(scenario=f"s{n}", lane=f"main-{n}"), 1.0) for n in range(12)]
    lines = drawn(view_of((began(20), 0.0), *plays), height=10)
    assert len(lines) == 9
    assert lines[-1] == "  and 6 more"


def told(view: RunView, scenario: str) -> list[tuple[str, object]]:
    return [(line.plain, line.style) for line in view.settle(scenario)]


def test_failure_beside_others_that_passes_alone_is_not_told() -> None:
    view = view_of(
        (began(2), 0.0),
        (Found(rule="turn.ends", level="MUST", text="never", scenario="a"), 1.0),
        (ended("a", "FAIL", provisional=True), 1.0),
        (PlayStarted(scenario="a", lane="main", again=True), 2.0),
        (ended("a"), 3.0),
    )
    assert told(view, "a") == []
    assert drawn(view)[0].startswith("1 of 2 played, ")


def test_broken_rule_is_one_line_the_first_time() -> None:
    view = view_of((began(3), 0.0))
    for scenario in ("a", "b"):
        view.feed(Found(rule="turn.ends", level="MUST", text="never", scenario=scenario), 1.0)
        view.feed(Found(rule="order", level="SHOULD", text="late", scenario=scenario), 1.0)
        view.feed(Found(rule="known", level="KNOWN", text="known", scenario=scenario), 1.0)
        view.feed(Found(rule="scenario.timeout", level="MUST", text="x", scenario=scenario), 1.0)
        view.feed(ended(scenario, "FAIL", reason="a timeout"), 1.0)
    assert told(view, "a") == [
        ("FAIL   scenario a: a timeout", "red"),
        ("FAIL   turn.ends in a: never", "red"),
        ("SHOULD order in a: late", "yellow"),
    ]
    assert told(view, "b") == [("FAIL   scenario b: a timeout", "red")]


def test_race_has_the_findings_of_its_placements() -> None:
    view = view_of(
        (began(1), 0.0),
        (Found(rule="turn.ends", level="MUST", text="never", scenario="turns/a"), 1.0),
        (ended("turns/a@interrupt"), 1.0),
    )
    assert told(view, "turns/a@interrupt") == [
        ("FAIL   turn.ends in turns/a@interrupt: never", "red")
    ]


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\u202etxt", "\r", "\x9b31m", "\ud800"])
def test_hostile_text_is_escaped(hostile: str) -> None:
    view = view_of(
        (began(2), 0.0),
        (PlayStarted(scenario=f"a{hostile}", lane=hostile), 1.0),
        (StepStarted(scenario=f"a{hostile}", lane=hostile, step=hostile), 1.0),
    )
    view.feed(Found(rule=hostile, level="MUST", text=hostile, scenario=hostile), 2.0)
    view.feed(ended(hostile, "FAIL", reason=hostile), 2.0)
    lines = told(view, hostile)
    assert len(lines) == 2
    shown = "".join([line for line, _ in lines] + drawn(view))
    assert hostile not in shown
    assert shown.isprintable()


def test_plain_lines_name_only_lanes_that_take_long() -> None:
    view = view_of(
        (began(4), 0.0),
        (PlayStarted(scenario="slow", lane="main-1"), 10.0),
        (StepStarted(scenario="slow", lane="main-1", step="wait: turn"), 11.0),
        (PlayStarted(scenario="quick", lane="main-2"), 90.0),
    )
    head, slow = view.plain_lines(30.0)
    assert head == "0 of 4 played"
    assert slow.split() == ["main-1", "90.0", "s", "slow", "wait:", "turn"]


def test_each_running_target_has_a_line(tmp_path: Path) -> None:
    log = ProgressLog(progress_path(tmp_path / "a", "r"))
    for event in (began(3), ended("x", "FAIL"), ended("y", "FAIL", provisional=True)):
        log.write(event)
    playing = {"new": tmp_path / "b", "old\x1b": tmp_path / "a"}
    view = PlaysView(lambda: playing)
    new, old = view.plain_lines()
    assert new == "new: starting"
    assert old.startswith("old\\x1b: 2 of 3 played, ")
    assert old.endswith(", 1 failed")
    log.write(ended("y"))
    log.close()
    assert view.plain_lines()[1].endswith(", 1 failed")
    del playing["old\x1b"]
    assert view.plain_lines() == ["new: starting"]


def test_campaign_shows_plays_of_each_kind_the_time_left_and_findings() -> None:
    times = iter((0.0, 25.0, 70.0))
    view = FuzzView(60.0, lambda: next(times))
    view.feed(PlayStarted(scenario="inputs", lane="fuzz"))
    view.feed(PlaysCounted(plays=3))
    view.feed(PlayStarted(scenario="sequences", lane="fuzz"))
    view.feed(PlaysCounted(plays=5))
    line = view.feed(Found(rule="turn.ends", level="MUST", text="turn.ends: \x1b[2J"))
    assert line is not None
    assert line.plain == "FAIL   turn.ends: \\x1b[2J"
    view.note = "3 of 9 pairs \u202e"
    assert drawn(view, width=40) == [
        "5 plays, 35 s left, findings: 1",
        "  inputs: 3 plays",
        "  sequences: 2 plays",
        "  3 of 9 pairs \\u202e",
    ]
    assert drawn(view)[0] == "5 plays, 0 s left, findings: 1"


def test_durations_in_words() -> None:
    assert [duration_words(seconds) for seconds in (7.6, 130.2, 3900)] == [
        "8 s",
        "2 min 10 s",
        "1 h 5 min",
    ]


class Area:
    """A terminal area in a pseudo-terminal whose other end collects the output."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        self.polled = 0
        self.area = TerminalArea(Text("view"), self._poll, self.slave)

    def _poll(self) -> None:
        self.polled += 1

    def output(self) -> str:
        os.write(self.slave, b"\x04")
        raw = b""
        while not raw.endswith(b"\x04"):
            raw += os.read(self.master, 65536)
        return raw[:-1].decode()


@pytest.fixture(autouse=True)
def size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "10")


def test_area_is_erased_and_printed_lines_stay() -> None:
    terminal = Area()
    terminal.area.start()
    terminal.area.print(Text("first"))
    terminal.area.update()
    terminal.area.print(Text("second " * 9, no_wrap=True))
    terminal.area.stop()
    terminal.area.stop()
    output = terminal.output()
    assert terminal.polled
    assert "view" in output
    assert "\x1b[?25l" not in output
    assert [line for line in screen(output) if line] == ["first", ("second " * 9)[:40].rstrip()]


def test_written_lines_are_above_the_area_and_the_rest_after_it() -> None:
    terminal, file = Area(), io.StringIO()
    terminal.area.start()
    above = OutputAbove(terminal.area, file)
    above.write("\x1b[31mone\x1b[0m\ntw")
    above.write("o\nold\rthree")
    terminal.area.stop()
    assert above.close() is file
    assert file.getvalue() == "three"
    assert [line for line in screen(terminal.output()) if line] == ["one", "two"]


def test_area_needs_a_terminal_that_moves_its_cursor() -> None:
    master, slave = pty.openpty()
    try:
        assert can_show_area(slave, {"TERM": "xterm"})
        assert not can_show_area(slave, {"TERM": "dumb"})
        assert not can_show_area(slave, {})
        with open(os.devnull) as nowhere:
            assert not can_show_area(nowhere.fileno(), {"TERM": "xterm"})
    finally:
        os.close(master)
        os.close(slave)
