"""The files of the server: a look at one, and a search of its home.

Here: the steps, which note what they find in the trace and judge nothing. What a file must be is
for rules to say. A server may run on another machine, or keep no files: then nothing is found.
"""

from pathlib import Path

from harness.scenario.client_steps import LookAtStep, SearchHomeStep
from harness.scenario.home_files import look, search
from harness.scenario.steps.context import StepContext, plays
from harness.trace.marks import FileSeen, Place
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


def _home(trace: Trace) -> Path | None:
    """The home of the server of this trace, None where nobody noted it."""
    places = trace.marks_of(Place)
    return Path(places[-1].body.home) if places and places[-1].body.home else None
