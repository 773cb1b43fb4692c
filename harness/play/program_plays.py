"""Headers of traces and results of plays, for scenarios that run programs."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.client.target.profile import Profile
from harness.model.model import ScriptedModel
from harness.model.wire.responses import ResponsesEncoder
from harness.play.hygiene import Hygiene
from harness.play.run import Run
from harness.play.trace_header import header_members
from harness.protocol.spec.book import Book
from harness.scenario.ending import TraceEnding
from harness.scenario.loader import Loaded
from harness.scenario.player import Cast, StepFailure
from harness.trace.recorder import Recorder
from harness.trace.trace import End, Header


@dataclass(frozen=True, slots=True)
class PlayResult:
    """The result of a player whose programs have all ended.

    `unmet` is the step that failed, `survivors` are processes left running, `stderr` is the end of
    standard error, `overflow` the bound that a flood exceeded, "" for none.
    """

    unmet: StepFailure | None
    survivors: Sequence[str]
    stderr: str
    overflow: str
    cwd: Path


def header_of(loaded: Loaded, command: Sequence[str], profile: Profile, book: Book) -> Header:
    """Return the header of a trace; `command` is the program that is judged."""
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
    result: PlayResult,
    recorder: Recorder,
    *,
    bound: float,
    hygiene: Hygiene,
    model: ScriptedModel | None = None,
    cast: Cast | None = None,
) -> Run:
    """Return the run of a play, and report its leftovers; no `model` means no model calls."""
    trace = recorder.trace
    hygiene.add_program_leftovers(trace.header.scenario, tuple(result.survivors))
    if result.unmet is not None or result.overflow:
        # We ended the programs that ran on; the unmet step says why.
        trace.end = End.CLOSED
    return Run(
        trace=trace,
        cast=cast or Cast(),
        unmet=result.unmet,
        ending=TraceEnding(trace.end),
        model=model or ScriptedModel({}, ResponsesEncoder(), mark=recorder.mark),
        cwd=result.cwd,
        stderr=result.stderr,
        seconds=0.0,
        bound=bound,
        overflow=result.overflow,
    )
