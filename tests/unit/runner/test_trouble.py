"""An error of the harness itself is one line, an ERROR, and never a verdict on the server."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, NoReturn, cast

import psutil
import pytest

from harness.cli.suite.own_trouble import OwnTrouble
from harness.client.target.process_tree import (
    Descendants,
    find_processes_note,
    is_running,
    marked_processes,
)
from harness.judge.verdict import Level, Verdict
from harness.play.interruption import end_everything
from harness.play.trouble import describe_trouble
from harness.report.results.report import Issue, Report, ScenarioResult
from harness.report.terminal import verdict_words


def raised(error: BaseException) -> BaseException:
    """The error as it is caught."""
    try:
        raise error
    except BaseException as caught:
        return caught


LIMITS = [
    (errno.EROFS, "--dir"),
    (errno.EACCES, "--dir"),
    (errno.ENOSPC, "free some space"),
    (errno.EMFILE, "ulimit -n"),
]


@pytest.mark.parametrize(("number", "advice"), LIMITS)
def test_limit_of_the_machine_is_one_line_with_advice(number: int, advice: str) -> None:
    error = OSError(number, os.strerror(number), os.fsdecode(b"/a\xff\n/b"))
    line = describe_trouble(ExceptionGroup("several", [ExceptionGroup("inner", [error])]))
    assert line.startswith("not judged: /a\\udcff\\n/b: ")
    assert os.strerror(number) in line
    assert advice in line
    assert line.isprintable()


def test_full_disk_names_the_folder_of_the_run(tmp_path: Path) -> None:
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert str(tmp_path) in describe_trouble(error, tmp_path)


@pytest.mark.parametrize("text", ["first\nsecond", "\x1b[1m\ud83d", "", "\n"])
def test_defect_is_one_line_with_a_file_for_its_traceback(text: str, tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    line = describe_trouble(raised(ValueError(text)), tmp_path)
    assert line.startswith("the harness broke: ValueError: ")
    assert line.isprintable()
    file = Path(line.rpartition("please report it, with ")[2])
    assert "Traceback" in file.read_text("utf-8")


def test_defect_whose_traceback_cannot_be_kept_is_reported_all_the_same(tmp_path: Path) -> None:
    line = describe_trouble(raised(ValueError("x")), tmp_path / "none")
    assert line.endswith("; please report it")


def test_traceback_of_a_worker_is_told_by_its_last_line() -> None:
    text = "+ Exception Group Traceback (most recent call last):\n  | a\n  | OSError: no\n  +---\n"
    assert describe_trouble(AssertionError(text)).startswith(
        "the harness broke: AssertionError: OSError: no;"
    )


class Reporter:
    """Pytest's terminal, as far as an internal error needs it."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write_line(self, line: str, **_: Any) -> None:
        """Keep the line."""
        self.lines.append(line)

    def ensure_newline(self) -> None:
        """Do nothing."""


def test_internal_error_of_pytest_is_one_line(tmp_path: Path) -> None:
    reporter = Reporter()
    plugins = type("Plugins", (), {"get_plugin": lambda _self, _name: reporter})()
    config = cast("pytest.Config", type("Config", (), {"pluginmanager": plugins})())
    try:
        raise FileNotFoundError(errno.ENOENT, "No such file", "/proc")
    except FileNotFoundError:
        hook = OwnTrouble(config, tmp_path).pytest_internalerror(
            pytest.ExceptionInfo.from_current()
        )
    next(hook)
    reporter.write_line("INTERNALERROR> Traceback")
    with pytest.raises(StopIteration):
        hook.send(None)
    assert len(reporter.lines) == 1
    assert reporter.lines[0].startswith("ERROR: the harness broke: FileNotFoundError: ")


def scenario(verdict: Verdict) -> ScenarioResult:
    """A scenario with this verdict."""
    return ScenarioResult("a/b", "", "", verdict, "", 0.0, "")


def issue(name: str) -> Issue:
    """A finding that counts."""
    return Issue(name, "", Level.MUST)


@pytest.mark.parametrize(
    ("verdicts", "issues", "words"),
    [
        ((), (), "GREEN"),
        ((Verdict.ERROR, Verdict.PASS), (), "ERROR"),
        ((), ("harness.trouble",), "ERROR"),
        ((Verdict.ERROR, Verdict.FAIL), (), "RED"),
        ((Verdict.ERROR,), ("setup.not-started",), "RED"),
        ((), ("harness.trouble", "baseline.stale"), "RED"),
    ],
)
def test_verdict_is_red_only_if_something_of_the_server_failed(
    verdicts: tuple[Verdict, ...], issues: tuple[str, ...], words: str
) -> None:
    report = Report("x", "x", scenarios=[*map(scenario, verdicts)], issues=[*map(issue, issues)])
    assert verdict_words(report) == words


def test_nothing_breaks_where_processes_cannot_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "/proc/stat")

    assert find_processes_note() == ""
    monkeypatch.setattr(psutil, "pids", fail)
    monkeypatch.setattr(psutil, "Process", fail)
    monkeypatch.setattr("harness.client.target.process_tree.LISTS_CHILDREN", False)
    assert marked_processes("x") == {}
    assert Descendants(os.getpid()).find_living() == {}
    assert is_running(os.getpid())
    assert "no /proc" in find_processes_note()
    (mine := tmp_path / "run" / f"{os.getpid()}-main").mkdir(parents=True)
    end_everything(tmp_path)
    assert not mine.exists()
