"""The common part of the plays of programs: the head of their traces, and their runs."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.client.target.profile import Profile
from harness.model.model import ScriptedModel
from harness.model.wire.responses import ResponsesEncoder
from harness.play.hygiene import Hygiene
from harness.play.run import Run
from harness.play.trace_head import header_members
from harness.protocol.spec.book import Book
from harness.scenario.ending import Ended
from harness.scenario.loader import Loaded
from harness.scenario.player import Cast, Unmet
from harness.trace.recorder import Recorder
from harness.trace.trace import End, Header


@dataclass(frozen=True, slots=True)
class PlayResult:
    """The result of a player whose programs have all ended.

    It has the step that could not be done, what they left running, the end of their standard error,
    which bound a flood went over, their folder.
    """

    unmet: Unmet | None
    survivors: Sequence[str]
    stderr: str
    overflow: str
    cwd: Path


def header_of(loaded: Loaded, command: Sequence[str], profile: Profile, book: Book) -> Header:
    """The head of a trace: `command` is the program that is judged."""
    declared = profile.capabilities
    return Header(
        target=shlex.join(command),
        profile=profile.name,
        scenario=loaded.id,
        surface=loaded.surface,
        spec_revision=book.revision,
        capabilities=[] if declared == "probe" else list(declared),
        given=header_members(loaded),
    )


def run_of(
    played: PlayResult,
    recorder: Recorder,
    *,
    bound: float,
    hygiene: Hygiene,
    model: ScriptedModel | None = None,
    cast: Cast | None = None,
) -> Run:
    """The run of a play; without `model` and `cast` nobody asked a model for anything."""
    trace = recorder.trace
    hygiene.add_program_leftovers(trace.header.scenario, tuple(played.survivors))
    if played.unmet is not None or played.overflow:
        # What did not end was ended, or had ended: the unmet step tells of it.
        trace.end = End.CLOSED
    return Run(
        trace=trace,
        cast=cast or Cast(),
        unmet=played.unmet,
        ending=Ended(trace.end),
        model=model or ScriptedModel({}, ResponsesEncoder(), mark=recorder.mark),
        cwd=played.cwd,
        stderr=played.stderr,
        seconds=0.0,
        bound=bound,
        overflow=played.overflow,
    )
