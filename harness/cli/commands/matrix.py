"""`harness matrix`: all targets of a file judged, some at once, and the badges of the result."""

import json
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from harness.errors import UsageError
from harness.report.badges import endpoint, picture
from harness.report.matrix import Column, Matrix
from harness.search.releases.matrix_file import MatrixFile
from harness.search.releases.plays import INTERRUPTED, Plays
from harness.search.releases.target import Target, ensure_installed

Say = Callable[[str], None]


def judge_targets(file: MatrixFile, plays: Plays, jobs: int, say: Say) -> Matrix:
    """Judge every target of a file, `jobs` at once; `say` prints a line about each.

    A target that cannot be judged gets its problem; a column after a signal is not judged.
    """

    def judge(row: tuple[Target, str, str]) -> Column:
        column = _judge_target(*row, file.scenarios, plays, say)
        if column.problem != INTERRUPTED:
            say(f"{column.name}: {column.verdict}{' (stored)' if column.is_stored else ''}")
        return column

    rows = [target for row in file.target for target in row.targets()]
    with ThreadPoolExecutor(jobs) as pool:
        columns = list(pool.map(judge, rows))
    return Matrix(columns, plays.stopped_by.name if plays.stopped_by else "")


def _judge_target(
    target: Target, version: str, install: str, scenarios: list[str], plays: Plays, say: Say
) -> Column:
    programs = target.programs
    commands = {"server": programs.server, "agent": programs.agent, "sdk": programs.sdk}
    column = Column(
        target.label(version), target.name, version, programs.target, commands, problem=INTERRUPTED
    )
    if plays.stopped_by is not None:
        return column
    say(f"{column.name}: judging")
    try:
        play = plays.play(ensure_installed(target, version, install, say), scenarios)
    except UsageError as problem:
        return replace(column, problem=str(problem))
    programs = play.release.programs
    return replace(
        column,
        profile=programs.target,
        commands={"server": programs.server, "agent": programs.agent, "sdk": programs.sdk},
        key=play.key,
        report=play.report,
        problem=play.problem,
        is_stored=play.reused,
        note=play.note,
    )


def write_badges(columns: Iterable[Column], folder: Path) -> None:
    """Write a shields endpoint and a picture of each target. Raises `OSError`."""
    folder.mkdir(parents=True, exist_ok=True)
    for column in columns:
        name = re.sub(r"[^\w.@-]+", "_", column.name)
        (folder / f"{name}.json").write_text(json.dumps(endpoint(column)) + "\n", "utf-8")
        (folder / f"{name}.svg").write_text(picture(column), "utf-8")
