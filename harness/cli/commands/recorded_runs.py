"""Recorded runs by name, for `harness compare` and `harness ledger`."""

from pathlib import Path

from harness.client.target.run_folders import HISTORY, find_kept_file, recorded_folder
from harness.errors import UsageError
from harness.report.compare.values import Run
from harness.report.json_form import read_report
from harness.scenario.explain import unknown_name

# Runs that need no name, counted from the latest.
RUN_ALIASES = ("last", "previous")


def find_run(word: str) -> Run:
    """Return a run by its JSON report, its name in `.harness/reports`, `last`, or `previous`.

    Raises `UsageError` if it is missing or cannot be read.
    """
    path = _file(word)
    name = word if path.stem == "report" else path.stem
    try:
        return Run(name, read_report(path))
    except OSError as error:
        raise UsageError(f"{word}: {error.strerror}") from error
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"{word}: no report of a run that this can read: {reason}") from error


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
