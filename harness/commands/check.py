"""`harness check`: judges stored traces and recordings, and counts their findings.

Here: which files can be read, the profile's known deviations, the exit status. Not here: judging
one file (stored_traces).
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import typer

from harness.commands.stored_traces import SETTLE, Checked, check_trace, counted
from harness.judge.verdict import Row
from harness.results.baseline import reason_of
from harness.target.place import kept
from harness.target.profile import Deviation, builtin_names, load_profile
from harness.trace.store import TraceFormatError

BROKEN: Final = 1
UNUSABLE: Final = 2


def check_files(
    paths: Iterable[Path], *, target: str = "", settled: bool = False, say: Callable[[str], None]
) -> int:
    """Judge each file that can be read and say what was found; gives the exit status.

    1 where a MUST rule is broken, else 2 where a file cannot be read, else 0. Raises `UsageError`
    where there is no such target.
    """
    profile = load_profile(target) if target else None
    known = [load_profile(name).names for name in builtin_names()]
    entries = profile.deviations if profile else ()
    checked: list[Checked] = []
    unread = 0
    for path in paths:
        try:
            one = check_trace(
                kept(path),
                profile.names if profile else None,
                known=known,
                marked=_marked(entries),
                settle=profile.bounds.settle if profile else SETTLE,
                settled=settled,
            )
        except TraceFormatError as error:
            _cannot(str(error))
            unread += 1
        except OSError as error:
            _cannot(f"{path}: {os.strerror(error.errno) if error.errno else error}")
            unread += 1
        else:
            checked.append(one)
            for line in one.lines():
                say(line)
    if len(checked) + unread > 1:
        say(_total(checked, unread))
    if any(one.red for one in checked):
        return BROKEN
    return UNUSABLE if unread else 0


def _marked(entries: Sequence[Deviation]) -> Callable[[Row, str], str]:
    """The reason why a row is known, by `entries`; in a recording, for any scenario."""
    anywhere = [entry.model_copy(update={"scenario": "*"}) for entry in entries]

    def reason(row: Row, scenario: str) -> str:
        return reason_of(row, scenario, entries if scenario else anywhere)

    return reason


def _total(checked: Sequence[Checked], unread: int) -> str:
    counts = sum((one.counts() for one in checked), Counter[str]())
    broken = sum(one.red for one in checked)
    parts = [f"{len(checked)} file(s): {counted(counts) or 'nothing found'}"]
    parts += [f"a MUST is broken in {broken} of them"] if broken else []
    parts += [f"{unread} file(s) could not be read"] if unread else []
    return "; ".join(parts)


def _cannot(words: str) -> None:
    typer.echo(f"harness: {words}", err=True)
