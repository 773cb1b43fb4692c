"""The command `harness drift`: plays of a release and of its double, read or made, and compared."""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from harness.cli.commands.output_files import say
from harness.client.target.run_folders import base_folder
from harness.errors import UsageError
from harness.report.drift.comparison import compare_plays, read_play
from harness.report.drift.reasons import read_reasons
from harness.report.drift.release_schemas import ReleaseSchemas
from harness.report.drift.report import DriftReport
from harness.report.drift.requests import RequestCheck, check_requests
from harness.report.drift.schema_check import check_messages

# Two plays of a release show which order it does not keep itself.
RELEASE_PLAYS: Final = 2


def find_drift(
    target: str,
    *,
    release: Sequence[Path],
    double: Path | None,
    schemas: Path | None,
    reasons: Path | None = None,
    double_cmd: str = "",
) -> DriftReport:
    """Return what the traces of a double show. Raises `UsageError` if nothing can be checked."""
    if double is None and not (double_cmd and schemas):
        raise UsageError("name the traces of the double, or --double-cmd")
    report = DriftReport(target, reasons=read_reasons(reasons) if reasons else ())
    known = ReleaseSchemas(schemas) if schemas else None
    play = read_play(double) if double else None
    if known is not None and play is not None:
        report.schemas = check_messages(known, play.server_messages(play.scenarios))
    if release and play is not None:
        report.comparison = compare_plays([read_play(folder) for folder in release], play)
    if known is not None and double_cmd:
        report.requests = _ask(known, target, double_cmd)
    if report.schemas is None and report.comparison is None and report.requests is None:
        raise UsageError("name --schemas, or the traces of the release")
    return report


def play_scenarios(
    target: str, command: str, name: str, scenarios: Sequence[str], lanes: int
) -> Path:
    """Play scenarios with `harness run` and return the folder of their traces.

    What the run judges is not looked at: a release has findings of its own.
    """
    folder = base_folder() / "drift" / name
    say(f"playing {name}: {command}", err=True)
    words = [sys.executable, "-P", "-m", "harness", "run", "--target", target]
    words += ["--server-cmd", command, "--dir", str(folder), *scenarios]
    words += ["--lanes", str(lanes)] if lanes else []
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    traces = folder / "traces" / Path(target).stem if "/" in target else folder / "traces" / target
    if not traces.is_dir():
        raise UsageError(f"{command}: nothing was played; try harness doctor --target {target}")
    return traces


def _ask(schemas: ReleaseSchemas, target: str, command: str) -> RequestCheck:
    folder = base_folder() / "drift" / f"{target}-requests"
    folder.mkdir(parents=True, exist_ok=True)
    words = shlex.split(command)
    if os.sep in words[0]:
        words[0] = str(Path(words[0]).absolute())
    homes = {name: str(folder) for name in ("AGENT_HOME", "CODEX_HOME", "HOME")}
    return check_requests(schemas, words, folder, homes)
