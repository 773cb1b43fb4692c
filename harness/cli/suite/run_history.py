"""The history of runs: their names, and their reports beside the traces."""

import contextlib
import os
import time

from harness.client.target.run_folders import HISTORY, remove_old_runs
from harness.play.config import Config
from harness.protocol.escapes import json_text
from harness.report.json_form import to_plain
from harness.report.results.report import Report


def run_name() -> str:
    """Return a name for this run that sorts after those of earlier runs."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.getpid()}"


def keep_report(report: Report, config: Config, status: int) -> None:
    """Write the report of this run beside its traces, and delete the oldest runs."""
    folder = config.base / HISTORY / config.run
    text = json_text(to_plain(report, status), separators=(",", ":"))
    # A full disk must not change the verdict on the server.
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.json").write_text(text + "\n", encoding="utf-8")
        remove_old_runs(config.base)
