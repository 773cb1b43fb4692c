"""Recorded runs by name, for `harness compare` and `harness ledger`."""

import json
from pathlib import Path
from typing import Any

from harness.client.target.run_folders import HISTORY, find_kept_file, recorded_folder
from harness.errors import UsageError
from harness.protocol.values import obj
from harness.report.compare.values import Run
from harness.report.json_form import read_report
from harness.report.matrix import TARGET_MARK, is_matrix, read_column
from harness.scenario.explain import unknown_name

# Aliases of recorded runs, the latest first.
RUN_ALIASES = ("last", "previous")


def find_run(word: str) -> Run:
    """Return a run by its JSON report, its name in `.harness/reports`, `last`, or `previous`.

    A target of a matrix is `FILE#TARGET`. Raises `UsageError` if it is missing or cannot be read.
    """
    file, mark, target = word.partition(TARGET_MARK)
    if mark and not Path(word).exists():
        return Run(target, read_column(_file(file), target))
    path = _file(word)
    name = word if path.stem == "report" else path.stem
    try:
        return Run(name, read_report(path))
    except OSError as error:
        raise UsageError(f"{word}: {error.strerror}") from error
    except ValueError as error:
        reason = _other_kind(path) or (
            f"no report of a run that this can read: {str(error).splitlines()[0]}"
        )
        raise UsageError(f"{word}: {reason}") from error


def _other_kind(path: Path) -> str:
    """Return a message on a recording or a result of `harness check`, "" for any other file."""
    with path.open("rb") as source:
        row = object_in(next((line for line in source if line.strip()), b""))
    if "trace" in row or {"t", "dir"} <= row.keys():
        return (
            "this is a recording, not a report of a run: make a scenario of it with harness "
            "scenario from-trace, then harness run it with --json"
        )
    plain = row or object_in(path.read_bytes())
    if is_matrix(plain):
        names = ", ".join(str(obj(one).get("name")) for one in plain.get("targets", ()))
        return f"this is a matrix; name a target, {path}{TARGET_MARK}NAME, of {names}"
    if {"verdict", "files"} <= plain.keys():
        return (
            "this is a result of harness check, not a report of a run; "
            "harness run … --json FILE writes one"
        )
    return ""


def object_in(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in a text, {} if there is none."""
    try:
        return obj(json.loads(raw))
    except (ValueError, RecursionError):
        return {}


def _file(word: str) -> Path:
    path = find_kept_file(Path(word))
    if path.is_file():
        return path
    base = recorded_folder()
    report_path = base / "reports" / f"{word}.json"
    if report_path.is_file():
        return report_path
    if word in RUN_ALIASES:
        reports = sorted((base / HISTORY).glob("*/report.json"))
        if len(reports) > RUN_ALIASES.index(word):
            return reports[-1 - RUN_ALIASES.index(word)]
        raise UsageError(f"{word}: there is no such run yet; harness run records each")
    names = sorted(path.stem for path in (base / "reports").glob("*.json"))
    if "/" in word or word.endswith(".json"):
        raise UsageError(f"{word}: there is no such file; harness run … --json FILE writes one")
    raise UsageError(unknown_name("run", word, [*names, *RUN_ALIASES]))
