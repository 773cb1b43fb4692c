"""The progress of a run in a terminal: what it shows, and that it leaves the terminal clean."""

import os
import re
import shlex
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from command_line import call
from in_terminal import in_terminal

from tests.processes import ROOT, run

pytestmark = [pytest.mark.slow, pytest.mark.socket]

SERVERS = ROOT / "fixtures/servers"
SCENARIOS = ("turns/plain-turn", "turns/many-deltas")


def run_on(*servers: str) -> list[str]:
    """The words of a run on example servers, the first of which may start the next."""
    words = [word for name in servers for word in (sys.executable, str(SERVERS / f"{name}.py"))]
    return ["run", *SCENARIOS, "--server-cmd", shlex.join(words)]


@pytest.mark.parametrize(
    "options",
    [("--lanes", "1"), ("--lanes", "2"), ("-n", "2"), ("-v",), ("-x",), ("--max-time", "60")],
    ids=" ".join,
)
def test_progress_is_shown_and_erased(options: tuple[str, ...], tmp_path: Path) -> None:
    with in_terminal(*run_on("twice", "minimal"), *options, cwd=tmp_path) as terminal:
        terminal.until("played")
        lines = terminal.drain()
        assert terminal.status() == 1
    assert not [line for line in lines if re.search(r"of \S+ played", line)]
    # It stays, and letters of pytest do not.
    (line,) = [line for line in lines if line.startswith("FAIL   turn.completed-once in ")]
    assert "expected" in line
    assert not [line for line in lines if re.match(r"[.FsEw]+( |$)", line)]
    assert lines.index(line) < lines.index(next(line for line in lines if "FAILURES" in line))
    # The cursor was never hidden.
    assert "\x1b[?25l" not in terminal.raw


def test_number_of_plays_is_shown(tmp_path: Path) -> None:
    with in_terminal(*run_on("minimal"), "--lanes", "1", cwd=tmp_path) as terminal:
        terminal.until("0 of 2 played")
        terminal.until("1 of 2 played, ")
        terminal.until("2 of 2 played, 0 s left")
        assert terminal.drain()[-1].endswith("s")
        assert terminal.status() == 0


def test_interrupted_run_leaves_its_report_alone(tmp_path: Path) -> None:
    silent = f"{sys.executable} -c 'import sys; sys.stdin.read()'"
    words = ["run", *SCENARIOS, "--server-cmd", silent, "--timeout-scale", "20"]
    with in_terminal(*words, cwd=tmp_path) as terminal:
        terminal.until("0 of 2 played")
        terminal.until("main s turns/plain-turn")
        terminal.press("\x03")
        lines = terminal.drain()
        assert terminal.status() == 130
    assert not [line for line in lines if " played" in line or line.startswith("  main")]
    assert "interrupted: ending the server; again to kill" in lines
    assert [line for line in lines if line.startswith("verdict: INTERRUPTED")]


def test_time_left_follows_the_durations_of_an_earlier_run(tmp_path: Path) -> None:
    base = ("--dir", str(tmp_path / "kept"))
    assert call("harness", *run_on("minimal"), *base, cwd=tmp_path).status == 0
    with closing(sqlite3.connect(tmp_path / "kept/history.sqlite")) as history, history:
        history.execute("UPDATE plays SET seconds = 1e6 WHERE scenario = 'turns/many-deltas'")
    with in_terminal(*run_on("minimal"), *base, "--lanes", "1", cwd=tmp_path) as terminal:
        terminal.until("1 of 2 played, h min left")
        terminal.drain()
        assert terminal.status() == 0


def test_campaign_shows_its_plays_and_findings_and_erases_them(tmp_path: Path) -> None:
    server = run_on("broken/double_completed")[-2:]
    with in_terminal(
        "fuzz", *server, "--what", "frames", "--conversations", "2", cwd=tmp_path
    ) as terminal:
        terminal.until("0 plays, s spent")
        terminal.until("frames: plays")
        lines = terminal.drain()
        assert terminal.status() == 1
    assert not [line for line in lines if re.match(r"\d+ plays, |  frames: ", line)]
    found = next(line for line in lines if line.startswith("FAIL   turn.completed-once: "))
    assert lines.index(found) < lines.index("verdict: RED")


def test_matrix_shows_how_far_each_target_is_and_erases_it(tmp_path: Path) -> None:
    server = shlex.join([sys.executable, str(SERVERS / "minimal.py")])
    lines = ["scenarios = ['turns/plain-turn']"]
    lines += [f'[[target]]\nname = \'{name}\'\nserver-cmd = """{server}"""' for name in "ab"]
    (tmp_path / "m.toml").write_text("\n".join(lines), "utf-8")
    with in_terminal("matrix", "m.toml", cwd=tmp_path) as terminal:
        terminal.until("a: starting")
        terminal.until("of 1 played")
        lines = terminal.drain()
        assert terminal.status() == 0
    assert not [line for line in lines if re.search("starting|played", line)]
    assert [line for line in lines if re.match("[ab]: ", line)] == [
        "a: judging",
        "a: GREEN",
        "b: judging",
        "b: GREEN",
    ]


@pytest.mark.parametrize("variables", [{"TERM": "dumb"}, {"TERM": "dumb", "COLUMNS": "40"}])
def test_terminal_without_a_cursor_gets_plain_lines(
    variables: dict[str, str], tmp_path: Path
) -> None:
    with in_terminal(*run_on("minimal"), cwd=tmp_path, **variables) as terminal:
        terminal.until("[100%]")
        terminal.drain()
        assert terminal.status() == 0
    assert " played" not in terminal.raw
    assert "\x1b[" not in re.sub(r"\x1b\[[\d;]*m", "", terminal.raw)


def test_narrow_terminal_without_colours(tmp_path: Path) -> None:
    run = run_on("twice", "minimal")
    with in_terminal(*run, cwd=tmp_path, COLUMNS="40", NO_COLOR="1") as terminal:
        shown = terminal.until("FAILURES")
        terminal.drain()
        assert terminal.status() == 1
    assert max(map(len, shown.splitlines())) <= 40
    assert not re.search(r"\x1b\[[\d;]*3\dm", terminal.raw)


# A program with a block of progress in each 20 ms instead of each half minute.
SOON = (
    "import sys; from harness.report.progress import plain_lines; "
    "plain_lines.SECONDS_BETWEEN_BLOCKS = 0.02; "
)


def test_run_without_a_terminal_says_how_far_it_is(tmp_path: Path) -> None:
    # As `harness run` runs pytest.
    program = SOON + "import pytest; sys.exit(pytest.main(['--harness-run', *sys.argv[1:]]))"
    words = [*run_on("twice", "minimal")[1:], "--harness-lanes", "1"]
    ended = run([sys.executable, "-c", program, *words], cwd=tmp_path, env=dict(os.environ))
    assert ended.status == 1
    blocks = re.findall(r"^(\d) of 2 played", ended.out, re.MULTILINE)
    assert blocks[0] == "0"
    assert blocks == sorted(blocks)
    assert re.search(r"^  main +\d+\.\d s  turns/plain-turn", ended.out, re.MULTILINE)
    assert "\x1b" not in ended.out


def test_campaign_without_a_terminal_says_how_far_it_is_on_stderr(tmp_path: Path) -> None:
    program = SOON + "from harness.__main__ import main; main()"
    words = ["fuzz", *run_on("minimal")[-2:], "--what", "frames", "--conversations", "2"]
    ended = run([sys.executable, "-c", program, *words], cwd=tmp_path, env=dict(os.environ))
    assert re.match(r"0 plays, 0 s spent\n", ended.err)
    assert not re.search(r"^\d+ plays, ", ended.out, re.MULTILINE)
