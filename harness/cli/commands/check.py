"""`harness check`: judge stored traces and recordings, and count their findings."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from harness.cli.commands import output_files
from harness.cli.commands.check_clients import ClientCheck, check_client
from harness.cli.commands.output_files import STANDARD_OUTPUT, check_targets, write_json
from harness.cli.commands.profile_hint import fit_profile
from harness.cli.commands.stored_traces import (
    SETTLE_SECONDS,
    TraceCheck,
    builtin_server_names,
    check_trace,
    count_words,
)
from harness.client.target.profile import load_profile
from harness.client.target.run_folders import find_kept_file
from harness.report.results.baseline import reason_elsewhere, reason_of
from harness.trace.store import TraceFormatError

STATUS_BROKEN: Final = 1
STATUS_UNUSABLE: Final = 2
# Scenarios named in the note on a deviation that is known in other scenarios.
MAX_SCENARIOS_NAMED: Final = 3


class Sides(StrEnum):
    """The sides whose messages are judged."""

    SERVER = "server"
    CLIENT = "client"
    BOTH = "both"


def check_files(
    paths: Iterable[Path],
    *,
    target: str = "",
    settled: bool = False,
    side: Sides = Sides.SERVER,
    strict: bool = False,
    json_target: str = "",
    say: Callable[[str], None] = output_files.say,
) -> int:
    """Judge each readable file, print its findings and return the exit status.

    1 if a MUST rule is broken, or with `strict` a SHOULD rule, else 2 if a file cannot be read,
    else 0. `json_target` is a file for the verdicts, or - for standard output in place of text.
    Raises `UsageError` if the target is unknown, or if the file cannot be written.
    """
    check_targets(json_target)
    if json_target == STANDARD_OUTPUT:
        say = _say_nothing
    if target:
        load_profile(target)
    by_file: list[list[TraceCheck | ClientCheck]] = []
    unread = 0
    for path in paths:
        try:
            kept = find_kept_file(path)
            judgements = [
                _with_strictness(judgement, strict=strict)
                for judgement in _judge_file(kept, target, settled=settled, side=side)
            ]
        except TraceFormatError as error:
            _complain(str(error))
            unread += 1
        except OSError as error:
            _complain(f"{path}: {os.strerror(error.errno) if error.errno else error}")
            unread += 1
        else:
            by_file.append(judgements)
            for line in (line for judgement in judgements for line in judgement.lines()):
                say(line)
    checked = [judgement for judgements in by_file for judgement in judgements]
    if json_target:
        verdict = "RED" if any(judgement.red for judgement in checked) else "GREEN"
        files = [judgement.json() for judgement in checked]
        write_json({"verdict": verdict, "files": files, "unread": unread}, json_target)
    if len(by_file) + unread > 1:
        say(_total_line(by_file, unread, strict=strict))
    if any(judgement.red for judgement in checked):
        return STATUS_BROKEN
    return STATUS_UNUSABLE if unread else 0


def _judge_file(
    path: Path, target: str, *, settled: bool, side: Sides
) -> Iterator[TraceCheck | ClientCheck]:
    """Yield the judgements of one file: of its server, its client, or both."""
    profile = fit_profile(target, path) if target else None
    names = profile.names if profile else None
    server_names = builtin_server_names()
    settle = profile.bounds.settle if profile else SETTLE_SECONDS
    if side is not Sides.CLIENT:
        entries = profile.deviations if profile else ()
        yield check_trace(
            path,
            names,
            known_names=server_names,
            known_reason=lambda row, scenario: reason_of(row, scenario, entries),
            possible_reason=lambda row: reason_elsewhere(row, entries),
            settle=settle,
            settled=settled,
        )
    if side is not Sides.SERVER:
        yield check_client(path, names, known_names=server_names, settle=settle, settled=settled)


def _say_nothing(_line: str) -> None:
    return None


def _with_strictness(
    judgement: TraceCheck | ClientCheck, *, strict: bool
) -> TraceCheck | ClientCheck:
    if isinstance(judgement, TraceCheck):
        return replace(judgement, strict=strict)
    return replace(judgement, trace_check=replace(judgement.trace_check, strict=strict))


def _total_line(
    by_file: Sequence[Sequence[TraceCheck | ClientCheck]], unread: int, *, strict: bool
) -> str:
    checked = [judgement for judgements in by_file for judgement in judgements]
    counts = sum((judgement.counts() for judgement in checked), Counter[str]())
    broken = sum(any(judgement.red for judgement in judgements) for judgements in by_file)
    parts = [f"{len(by_file)} file(s): {count_words(counts) or 'nothing found'}"]
    level = "a MUST or SHOULD" if strict else "a MUST"
    parts += [f"{level} is broken in {broken} of them"] if broken else []
    parts += [f"{unread} file(s) could not be read"] if unread else []
    return "; ".join(parts)


def _complain(words: str) -> None:
    output_files.say(f"harness: {words}", err=True)
