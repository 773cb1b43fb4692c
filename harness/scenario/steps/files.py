"""The files of the server: a look at one, a search of its home, and files that it is to read.

What a file must be is for rules to say. A server may run on another machine, or keep no files: then
nothing is found.
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
from harness.scenario.home_files import look, search, written
from harness.scenario.steps.context import StepContext, StepFailed, UnmetKind, plays
from harness.trace.marks import FileSeen, FileWritten, Place
from harness.trace.trace import Trace


@plays(LookAtStep)
async def look_at(context: StepContext, step: LookAtStep) -> None:
    """Note whether a file is there; a path that is null, or no text, is not looked at.

    Nothing is awaited in between: the mark stands where the look was taken.
    """
    path = context.resolved(step.look_at.path)
    recorder = context.peer().recorder
    if not isinstance(path, str) or not path:
        return
    home = _home(recorder.trace)
    absolute = path if home is None else str(home / path)
    seen = [one.body for one in recorder.trace.marks_of(FileSeen) if one.body.path == absolute]
    former = next((body for body in reversed(seen) if body.exists), None)
    recorder.mark(look(absolute, former, home))


@plays(SearchHomeStep)
async def search_home(context: StepContext, step: SearchHomeStep) -> None:
    """Note which files below the home have the texts."""
    texts = [one for one in context.resolved(step.search_home.texts) if isinstance(one, str)]
    recorder = context.peer().recorder
    home = _home(recorder.trace)
    if home is not None:
        recorder.mark(search(home, tuple(one for one in texts if one)))


@plays(WriteFileStep)
async def write_file(context: StepContext, step: WriteFileStep) -> None:
    """Write a file whole, with the folders above it; what is there is replaced."""
    path = _ours(context, step.write_file.path)
    with _failing():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(step.write_file.content)
    mark = written(str(path), step.write_file.content)
    context.peer().recorder.mark(mark)
    context.model.watch(mark)


@plays(RemoveFileStep)
async def remove_file(context: StepContext, step: RemoveFileStep) -> None:
    """Remove a file; its folder stays, and what is not there need not be removed."""
    path = _ours(context, step.remove_file.path)
    with _failing():
        path.unlink(missing_ok=True)
    context.peer().recorder.mark(FileWritten(path=str(path), exists=False))


@contextlib.contextmanager
def _failing() -> Generator[None]:
    """End the script if the disk refuses."""
    try:
        yield
    except OSError as error:
        raise StepFailed(UnmetKind.REFUSED, str(error)) from error


def _ours(context: StepContext, named: str) -> Path:
    """An absolute path below the workspace or the home, which alone may be written to."""
    path = Path(os.path.normpath(str(context.cwd / context.resolved(named))))
    home = _home(context.peer().recorder.trace)
    for folder in (context.cwd, home):
        if folder is not None and path != folder and path.is_relative_to(folder):
            return path
    message = f"{path} is neither below the workspace nor below the home; no other file is written"
    raise StepFailed(UnmetKind.REFUSED, message)


def _home(trace: Trace) -> Path | None:
    """The home of the server of this trace, None where nobody noted it."""
    places = trace.marks_of(Place)
    return Path(places[-1].body.home) if places and places[-1].body.home else None
