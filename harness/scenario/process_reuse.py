"""Reuse of a server process for the next scenario."""

from collections.abc import Iterable

from harness.scenario.client_steps import (
    MAIN_CONNECTION,
    ClientStep,
    ConnectStep,
    DisconnectStep,
    KillStep,
    RemoveFileStep,
    RestartStep,
    SendRawStep,
    SlowReaderStep,
    WriteFileStep,
)


def spoils_process(steps: Iterable[ClientStep]) -> bool:
    """Return whether the next scenario cannot use the process after these steps.

    A process that ended is replaced by a later restart over the same home. Further connections may
    come and go; the next scenario uses the first one, which must be open, read, and at the
    beginning of a line. Files written into the home must be removed again.
    """
    ended = stopped = unfinished = False
    written = set[str]()
    for step in steps:
        match step:
            case KillStep():
                ended = True
            case DisconnectStep() if step.name == MAIN_CONNECTION:
                ended = True
            case RestartStep():
                ended = False
            case ConnectStep() if step.connect == MAIN_CONNECTION:
                ended = False
            case SlowReaderStep(slow_reader=body) if (
                body.on == MAIN_CONNECTION and not body.reading
            ):
                stopped = True
            case SlowReaderStep(slow_reader=body) if body.on == MAIN_CONNECTION:
                stopped = False
            case SendRawStep(send_raw=body) if body.on == MAIN_CONNECTION:
                unfinished = not body.raw.endswith(b"\n")
            case WriteFileStep(write_file=body) if not _is_own(body.path):
                written.add(body.path)
            case RemoveFileStep(remove_file=body) if not _is_own(body.path):
                if body.path not in written:
                    return True
                written.remove(body.path)
            case _:
                pass
    return ended or stopped or unfinished or bool(written)


def _is_own(path: str) -> bool:
    """Return whether a path is in the scenario's own workspace, not in the shared home."""
    return path.startswith("{cwd}/") and "/../" not in path
