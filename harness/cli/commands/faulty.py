"""`harness faulty`: a server with injected faults, to test clients."""

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio

from harness.cli.commands.fault_list import live_fault
from harness.cli.commands.proxy import ProxyOptions, find_server, run_proxy
from harness.errors import UsageError
from harness.faults.base import Fault
from harness.faults.live.chain import FaultChain
from harness.faults.live.fault import FaultActed, FaultGaveUp, LiveFault, Report
from harness.faults.live.lines import LINE_KINDS, BreakableSide, LineKind
from harness.faults.live.relay import Side
from harness.faults.queue import FrameQueue, Steps
from harness.judge.rules.discovery import all_rules
from harness.play.lexicon import protocol_lexicon
from harness.play.scenario_faults import live_faults
from harness.scenario.loader import load
from harness.scenario.scenario_names import named_files
from harness.trace.nearest import unknown_name
from harness.trace.surface.registry import classify_of
from harness.trace.surfaces import SESSION

# The command line before the server's command, as error messages show it.
OPTION = "harness faulty --"
Say = Callable[[str], None]


def fault_reporter(say: Say) -> Report:
    """Return a listener that prints a line for each change, and for lines released unchanged."""

    def tell(event: FaultActed | FaultGaveUp) -> None:
        name = event.fault.id
        if isinstance(event, FaultActed):
            for words in event.words:
                say(f"faulty: {name}: {words}")
        elif event.missing:
            count = len(event.frames)
            lines = "1 line goes" if count == 1 else f"{count} lines go"
            say(f"faulty: {name}: {event.missing}, and {event.reason}: {lines} on")

    return tell


def _change_nothing(_queue: FrameQueue) -> Steps:
    """Do nothing: the line alone is bad."""
    yield from ()


_NO_FAULT = Fault("", rule="", on="", reason="", change=_change_nothing)


def build_chain(
    names: Sequence[str],
    *,
    scenario: str = "",
    after: int = 0,
    once: bool = False,
    say: Say,
    line: str = "",
) -> FaultChain:
    """Return a chain of the faults of `scenario` (if given), then those with the ids `names`.

    Raises `UsageError` if there is none, unless the `line` is bad; if one is unknown or not live,
    or the surfaces differ.
    """
    if line and not names and not scenario:
        return FaultChain([LiveFault(_NO_FAULT)])
    tell = fault_reporter(say)
    written = _scenario_faults(scenario, tell) if scenario else []
    if not names and not written:
        raise UsageError("no fault; give --fault ID, or see them all: harness faulty --list")
    faults = [live_fault(name) for name in names]
    surfaces = {SESSION: "the scenario"} if written else {}
    surfaces |= {all_rules()[fault.rule].surface: fault.id for fault in faults}
    if len(surfaces) > 1:
        sides = " and ".join(surfaces.values())
        raise UsageError(f"{sides} are of different surfaces: {' and '.join(surfaces)}; give one")
    classify = classify_of(next(iter(surfaces)))
    named_faults = [
        LiveFault(fault, after=after, once=once, classify=classify, report=tell) for fault in faults
    ]
    return FaultChain([*written, *named_faults])


def _scenario_faults(name: str, tell: Report) -> list[LiveFault]:
    """Return the faults of a scenario, by its file or id. Raises `UsageError` if it has none."""
    files = [Path(name)] if Path(name).is_file() else named_files([name])
    if len(files) != 1:
        raise UsageError(f"{name}: {len(files)} scenarios; name one")
    entries = load(files[0], lexicon=protocol_lexicon(), clientless=True).scenario.faults
    if not entries:
        raise UsageError(f"{name}: it has no faults; harness docs scenarios says how to write them")
    return live_faults(entries, tell)


def line_kind(name: str) -> LineKind:
    """Return the kind of a bad line by its name. Raises `UsageError` for an unknown one."""
    if name not in LINE_KINDS:
        raise UsageError(f"--line: {unknown_name('line', name, LINE_KINDS)}")
    return name


def serve(
    command: Sequence[str],
    live: FaultChain,
    *,
    quiet: float,
    say: Say,
    bad_line: Callable[[BreakableSide], Side] | None = None,
) -> int:
    """Run a server with faults on the standard streams of this process; return its exit status.

    A negative status is the signal that ended it. Raises `UsageError` if it cannot be started.
    """
    options = ProxyOptions(live, quiet, OPTION, bad_line=bad_line)
    status = anyio.run(run_proxy, find_server(command, OPTION), options)
    _report_idle_faults(live, say)
    return status


def _report_idle_faults(live: FaultChain, say: Say) -> None:
    for fault in live.faults:
        if not fault.places_acted and fault.fault is not _NO_FAULT:
            reason = f": {fault.missing}" if fault.missing else ""
            say(f"faulty: {fault.fault.id}: it never acted{reason}")
