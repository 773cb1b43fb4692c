"""Findings as annotations of GitHub Actions: `::error file=…,line=…,title=…::message`.

The runner takes any line for a command that begins with `::` after blanks, and one that has `##[`
anywhere. What a server said must not become one: it could set a mask over a word of the log, or add
an error of its own.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from harness.judge.verdict import Level, Verdict
from harness.report.results.report import Report, gravest
from harness.report.story import proof_line
from harness.report.terminal import rule_line

# So many of each kind are shown for a step; the rest would be dropped without a word.
_SHOWN: Final = 10
_MAX_MESSAGE_CHARACTERS: Final = 1000


def paused(token: str) -> str:
    """The line after which the runner reads no command, until that of `resumed`."""
    return f"::stop-commands::{token}"


def resumed(token: str) -> str:
    """The line after which commands are read again. Nobody must know the token before."""
    return f"::{token}::"


def annotations(report: Report, workspace: Path) -> Iterator[str]:
    """An error for each finding that counts, a warning for each told one that should be seen.

    A file is named where it lies below `workspace`, the checkout that GitHub shows.
    """
    yield from _few("error", list(_errors(report, workspace)))
    yield from _few("warning", list(_warnings(report, workspace)))


def command(name: str, message: str, properties: Mapping[str, str]) -> str:
    """One workflow command on one line."""
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items() if value)
    return f"::{name}{' ' if given else ''}{given}::{_data(message[:_MAX_MESSAGE_CHARACTERS])}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


Told = tuple[str, dict[str, str]]


def _few(name: str, told: list[Told]) -> Iterator[str]:
    shown = told if len(told) <= _SHOWN else told[: _SHOWN - 1]
    yield from (command(name, message, properties) for message, properties in shown)
    if len(told) > _SHOWN:
        more = f"{len(told) - len(shown)} more; the summary of the job lists them"
        yield command(name, more, {"title": "conformance"})


def _errors(report: Report, workspace: Path) -> Iterator[Told]:
    for issue in report.issues:
        if issue.level is Level.MUST and not issue.known:
            yield issue.message, {**_place(issue.where, workspace), "title": issue.id}
    for rule in report.red_rules():
        line = rule_line(rule, strict=report.strict).partition(f" {rule.id} ")[2]
        proof = next(one for one in rule.proofs if one.row.verdict is not Verdict.KNOWN)
        where = _file(proof.path, proof_line(proof), workspace)
        yield line, {**where, "title": f"{rule.id} ({gravest(rule)})"}
    for one in report.scenarios:
        if one.verdict in (Verdict.FAIL, Verdict.ERROR):
            line = next((number for _, _, number in one.messages if number), 1)
            where = _file(one.path, line, workspace)
            yield one.reason, {**where, "title": f"scenario {one.id}"}
    for race in report.races:
        if race.verdict in (Verdict.FAIL, Verdict.ERROR):
            yield race.reason, {**_file(race.path, 1, workspace), "title": f"race {race.id}"}


def _warnings(report: Report, workspace: Path) -> Iterator[Told]:
    for issue in report.issues:
        if issue.level is not Level.MUST and not issue.known and not issue.id.startswith("hygiene"):
            yield issue.message, {**_place(issue.where, workspace), "title": issue.id}


def _place(where: str, workspace: Path) -> dict[str, str]:
    """The properties of `known.toml:4:1`; none for ""."""
    name, _, rest = where.rpartition(":")
    file, _, line = name.rpartition(":")
    return _file(file, int(line), workspace) if file and rest and line.isdigit() else {}


def _file(path: str, line: int, workspace: Path) -> dict[str, str]:
    """File and line, where GitHub has that file: one of the wheel it has not."""
    real, root = Path(path).resolve(), workspace.resolve()
    if not path or not real.is_relative_to(root) or not real.is_file():
        return {}
    return {"file": os.path.relpath(real, root), "line": str(line)}
