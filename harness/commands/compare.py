"""`harness compare RUN RUN`: what changed between two recorded runs.

Here: finding the two reports, and the exit status. Not here: the comparison (harness.compare).
"""

from collections.abc import Callable
from pathlib import Path

from harness.compare.between import compare
from harness.compare.text import lines
from harness.compare.values import Run
from harness.errors import UsageError
from harness.report.jsonform import read_report
from harness.scenario.explain import unknown
from harness.target.place import base_folder, kept


def compare_runs(before: str, after: str, *, say: Callable[[str], None]) -> int:
    """Print the differences. Gives 1 where something got worse, else 0. Raises `UsageError`."""
    found = compare(find_run(before), find_run(after))
    for line in lines(found):
        say(line)
    return 1 if found.worse else 0


def find_run(word: str) -> Run:
    """A run by the file of its JSON report, or by its name in `.harness/reports`."""
    path = kept(Path(word))
    if not path.is_file():
        folder = base_folder() / "reports"
        named = folder / f"{word}.json"
        if not named.is_file():
            known = sorted(one.stem for one in folder.glob("*.json"))
            if not known or "/" in word or word.endswith(".json"):
                raise UsageError(
                    f"{word}: there is no such file; harness run … --json FILE writes one"
                )
            raise UsageError(unknown("run", word, known))
        path = named
    try:
        return Run(path.stem, read_report(path))
    except OSError as error:
        raise UsageError(f"{word}: {error.strerror}") from error
    except ValueError as error:
        why = str(error).splitlines()[0]
        raise UsageError(f"{word}: no report of a run that this can read: {why}") from error
