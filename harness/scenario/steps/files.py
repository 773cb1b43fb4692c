"""Steps on the server's files: look at one, search its home, write and remove files.

Rules judge the marks. A server on another machine, or one without files, shows none.
"""

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

from harness.scenario.client_steps import (
    LookAtStep,
    RemoveFileStep,
    SearchHomeStep,
    WriteFileStep,
)
from harness.scenario.home_files import look_at_file, search_home, written_file_mark
from harness.scenario.steps.context import FailureKind, StepContext, StepFailed, plays
from harness.trace.marks import FileSeen, FileWritten, Place
from harness.trace.trace import Trace


@plays(LookAtStep)
async def look_at(context: StepContext, step: LookAtStep) -> None:
    """Mark whether a file exists; a path that is not a text is ignored.

    Nothing is awaited in between, so the mark's position is the time of the look.
    """
    path = context.resolve(step.look_at.path)
    recorder = context.peer().recorder
    if not isinstance(path, str) or not path:
        return
    home = _home_of(recorder.trace)
    absolute = path if home is None else str(home / path)
    looks = [mark.body for mark in recorder.trace.marks_of(FileSeen) if mark.body.path == absolute]
    last_seen = next((body for body in reversed(looks) if body.exists), None)
    recorder.mark(look_at_file(absolute, last_seen, home))


@plays(SearchHomeStep)
async def play_search_home(context: StepContext, step: SearchHomeStep) -> None:
    """Mark which files below the home have any of the texts; nothing if the home is unknown."""
    texts = [text for text in context.resolve(step.search_home.texts) if isinstance(text, str)]
    recorder = context.peer().recorder
    home = _home_of(recorder.trace)
    if home is not None:
        recorder.mark(search_home(home, tuple(filter(None, texts))))


@plays(WriteFileStep)
async def write_file(context: StepContext, step: WriteFileStep) -> None:
    """Write a file with its parent folders; an existing one is replaced."""
    path = _writable_path(context, step.write_file.path)
    with _raise_step_failed():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(step.write_file.content)
    mark = written_file_mark(str(path), step.write_file.content)
    context.peer().recorder.mark(mark)
    context.model.watch(mark)


@plays(RemoveFileStep)
async def remove_file(context: StepContext, step: RemoveFileStep) -> None:
    """Remove a file if it exists; its folder stays."""
    path = _writable_path(context, step.remove_file.path)
    with _raise_step_failed():
        path.unlink(missing_ok=True)
    context.peer().recorder.mark(FileWritten(path=str(path), exists=False))


@contextlib.contextmanager
def _raise_step_failed() -> Generator[None]:
    """Raise `StepFailed` for an `OSError` in the block."""
    try:
        yield
    except OSError as error:
        raise StepFailed(FailureKind.REFUSED, str(error)) from error


def _writable_path(context: StepContext, path_text: str) -> Path:
    """Return an absolute path below the workspace or the home. Raises `StepFailed` for others."""
    path = Path(os.path.normpath(str(context.cwd / context.resolve(path_text))))
    home = _home_of(context.peer().recorder.trace)
    for folder in (context.cwd, home):
        if folder is not None and path != folder and path.is_relative_to(folder):
            return path
    message = f"{path} is neither below the workspace nor below the home; no other file is written"
    raise StepFailed(FailureKind.REFUSED, message)


def _home_of(trace: Trace) -> Path | None:
    """Return the home of the server of this trace, None if it is unknown."""
    places = trace.marks_of(Place)
    return Path(places[-1].body.home) if places and places[-1].body.home else None
