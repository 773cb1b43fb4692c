"""The progress of a campaign: a log whose plays are counted, not written one by one."""

import os
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from harness.client.target.profile import Profile
from harness.protocol.escapes import visible
from harness.report.progress.events import RunStarted
from harness.report.progress.log import ProgressLog, progress_path, remove_old_logs, run_name


@contextmanager
def campaign_log(base: Path, activity: str, profile: Profile) -> Generator[ProgressLog]:
    """Yield the log of a campaign that begins; the caller writes its end."""
    run = run_name()
    with closing(ProgressLog(progress_path(base, run))) as log:
        remove_old_logs(base)
        log.counts_plays = True
        command = visible(" ".join(profile.command))
        log.write(
            RunStarted(
                run=run, activity=activity, target=profile.name, command=command, pid=os.getpid()
            )
        )
        yield log
