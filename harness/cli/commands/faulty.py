"""`harness faulty`: a server with faults in it, for who tests a client."""

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio

from harness.cli.commands.fault_list import live_fault
from harness.cli.commands.proxy import Proxied, found, proxied
from harness.errors import UsageError
from harness.faults.live.chain import FaultChain
from harness.faults.live.fault import Acted, LetGo, LiveFault, Told
from harness.judge.rules.discovery import all_rules
from harness.play.lexicon import protocol_lexicon
from harness.play.written_faults import live_faults
from harness.scenario.loader import load
from harness.scenario.named import named_files
from harness.trace.surface.known import classify_of
from harness.trace.surfaces import SESSION

# What takes the server's command, as messages about it name it.
OPTION = "harness faulty --"
Say = Callable[[str], None]


def teller(say: Say) -> Told:
    """Says on a line each what a fault did."""

    def tell(one: Acted | LetGo) -> None:
        name = one.fault.id
        if isinstance(one, Acted):
            for words in one.words:
                say(f"faulty: {name}: {words}")
        elif one.missing:
            count = len(one.frames)
            lines = "1 line goes" if count == 1 else f"{count} lines go"
            say(f"faulty: {name}: {one.missing}, and {one.why}: {lines} on")

    return tell


def chain(
    names: Sequence[str], *, scenario: str = "", after: int = 0, once: bool = False, say: Say
) -> FaultChain:
    """The faults that a scenario writes down, then those of these names. Raises `UsageError`."""
    tell = teller(say)
    written = _written(scenario, tell) if scenario else []
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
        LiveFault(fault, after=after, once=once, classify=classify, tell=tell) for fault in faults
    ]
    return FaultChain([*written, *named_faults])


def _written(name: str, tell: Told) -> list[LiveFault]:
    """The faults of a scenario, by its file or id. Raises `UsageError`."""
    files = [Path(name)] if Path(name).is_file() else named_files([name])
    if len(files) != 1:
        raise UsageError(f"{name}: {len(files)} scenarios; name one")
    entries = load(files[0], lexicon=protocol_lexicon(), clientless=True).scenario.faults
    if not entries:
        raise UsageError(f"{name}: it has no faults; harness docs scenarios says how to write them")
    return live_faults(entries, tell)


def serve(command: Sequence[str], live: FaultChain, *, quiet: float, say: Say) -> int:
    """Run a server on our standard streams with faults at work; gives its exit status.

    Below 0 is the signal that ended it. Raises `UsageError` where it cannot be started.
    """
    status = anyio.run(proxied, found(command, OPTION), Proxied(live, quiet, OPTION))
    _tell_the_end(live, say)
    return status


def _tell_the_end(live: FaultChain, say: Say) -> None:
    for fault in live.faults:
        if not fault.acted:
            reason = f": {fault.missing}" if fault.missing else ""
            say(f"faulty: {fault.fault.id}: it never acted{reason}")
