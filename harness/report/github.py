"""Findings as annotations of GitHub Actions: `::error file=…,line=…,title=…::message`.

The runner takes any line that begins with `::` after blanks for a command, and any that contains
`##[`. A server's text must not become one: it could mask a word of the log, or add an error of its
own.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from harness.judge.verdict import Level, Verdict
from harness.protocol.escapes import visible
from harness.report.results.report import Report, gravest_level
from harness.report.story import proof_line
from harness.report.terminal import rule_line

# GitHub shows this many of each kind for a step, and drops the rest silently.
_MAX_ANNOTATIONS: Final = 10
_MAX_MESSAGE_CHARACTERS: Final = 1000


def pause_command(token: str) -> str:
    """Return the line that stops the runner from reading commands, until `resume_command`."""
    return f"::stop-commands::{token}"


def resume_command(token: str) -> str:
    """Return the line that lets the runner read commands again; the token must be secret."""
    return f"::{token}::"


def annotations(report: Report, workspace: Path) -> Iterator[str]:
    """Yield errors for MUST issues, red rules, failed scenarios and races; warn of other issues.

    Known issues are left out, and hygiene gets no warning. At most 10 of each kind are yielded; the
    last one counts the rest if there are more. A file is named if it lies below `workspace`, the
    checkout that GitHub shows.
    """
    yield from _limit("error", list(_error_annotations(report, workspace)))
    yield from _limit("warning", list(_warning_annotations(report, workspace)))


def command(name: str, message: str, properties: Mapping[str, str]) -> str:
    """Return one workflow command on one line."""
    words = ",".join(
        f"{key}={_escape_property(value)}" for key, value in properties.items() if value
    )
    return (
        f"::{name}{' ' if words else ''}{words}::{_escape_data(message[:_MAX_MESSAGE_CHARACTERS])}"
    )


def _escape_data(text: str) -> str:
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")


Annotation = tuple[str, dict[str, str]]


def _limit(name: str, items: list[Annotation]) -> Iterator[str]:
    items_shown = items if len(items) <= _MAX_ANNOTATIONS else items[: _MAX_ANNOTATIONS - 1]
    yield from (command(name, message, properties) for message, properties in items_shown)
    if len(items) > _MAX_ANNOTATIONS:
        more = f"{len(items) - len(items_shown)} more; the summary of the job lists them"
        yield command(name, more, {"title": "conformance"})


def _error_annotations(report: Report, workspace: Path) -> Iterator[Annotation]:
    for issue in report.issues:
        if issue.level is Level.MUST and not issue.known:
            message = "\n".join(filter(None, (issue.message, issue.paste)))
            yield message, {**_place_properties(issue.where, workspace), "title": issue.id}
    for rule in report.red_rules():
        line = rule_line(rule, strict=report.strict).partition(f" {rule.id} ")[2]
        proof = next(proof for proof in rule.proofs if proof.row.verdict is not Verdict.KNOWN)
        properties = _file_properties(proof.path, proof_line(proof), workspace)
        yield line, {**properties, "title": f"{rule.id} ({gravest_level(rule)})"}
    for scenario in report.scenarios:
        if scenario.verdict in (Verdict.FAIL, Verdict.ERROR):
            line = next((number for _, _, number in scenario.messages if number), 1)
            properties = _file_properties(scenario.path, line, workspace)
            yield scenario.reason, {**properties, "title": f"scenario {scenario.id}"}
    for race in report.races:
        if race.verdict in (Verdict.FAIL, Verdict.ERROR):
            yield (
                race.reason,
                {**_file_properties(race.path, 1, workspace), "title": f"race {race.id}"},
            )


def _warning_annotations(report: Report, workspace: Path) -> Iterator[Annotation]:
    for issue in report.issues:
        if issue.level is not Level.MUST and not issue.known and not issue.id.startswith("hygiene"):
            yield issue.message, {**_place_properties(issue.where, workspace), "title": issue.id}


def _place_properties(place: str, workspace: Path) -> dict[str, str]:
    """Return `file` and `line` of a place such as `known.toml:4:1`; {} for any other text."""
    name, _, column = place.rpartition(":")
    file, _, line = name.rpartition(":")
    return (
        _file_properties(file, int(line), workspace) if file and column and line.isdigit() else {}
    )


def _file_properties(path: str, line: int, workspace: Path) -> dict[str, str]:
    """Return the annotation's `file` and `line`, {} if the file is not in the workspace."""
    real, root = Path(path).resolve(), workspace.resolve()
    if not path or not real.is_relative_to(root) or not real.is_file():
        return {}
    return {"file": os.path.relpath(real, root), "line": str(line)}
