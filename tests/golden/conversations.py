"""All small conversations that the tests build or store, by name.

A name is `KIND/NAME`, such as `legal/turn.completes:nothing-said`.
`python -m tests.golden.conversations NAME` prints one as a trace, which `harness show` reads.
"""

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from harness.client.target.profile import load_profile
from harness.faults.base import Fault, all_faults
from harness.faults.stored import apply
from harness.protocol.spec.loading import load_book
from harness.trace.foreign import load_any
from harness.trace.nearest import unknown_name
from harness.trace.store import lines
from harness.trace.surface.registry import classify_of
from harness.trace.trace import Trace
from tests.rules.case import all_cases
from tests.rules.edge import Legal, illegal, legal
from tests.rules.good_traces import GOOD
from tests.rules.open_point import otherwise

STORED = Path(__file__).parents[2] / "fixtures" / "traces"
REAL, RECORDED = "real-0.107.0", "recorded"
_load_profile = cache(load_profile)


def conversations() -> Iterator[tuple[str, Trace]]:
    """Yield each conversation once, with its unique name."""
    for name, build in builds():
        yield name, build()


def builds() -> Iterator[tuple[str, Callable[[], Trace]]]:
    """Yield the name of each conversation with the function that builds it."""
    for name, build in GOOD.items():
        yield f"good/{name}", build
    for edge in legal():
        yield legal_name(edge), edge.trace
    for edge in illegal():
        yield f"illegal/{_word(edge.rule)}:{_word(edge.name)}", edge.trace
    for choice in otherwise():
        yield f"open/{_word(choice.point)}:{_word(choice.does)}", choice.trace
    for fault in all_faults().values():
        yield f"fault/{fault.id}", partial(_with_fault, fault)
    for case in all_cases():
        yield f"case/{case.rule}:good", case.good.trace
        yield f"case/{case.rule}:bad", case.bad.trace
    for folder in (REAL, RECORDED):
        for path in sorted((STORED / folder).glob("*.jsonl")):
            yield f"{folder}/{path.stem}", partial(_stored, path)


def _with_fault(fault: Fault) -> Trace:
    return apply(fault, GOOD[fault.on]())


def _stored(path: Path) -> Trace:
    renames = _load_profile("codex-0.107").names
    return load_any(path, load_book().paths_of, candidates=(renames,), classify_of=classify_of)


def legal_name(edge: Legal) -> str:
    """Return the name of a legal conversation."""
    return f"legal/{_word(edge.rule)}:{_word(edge.name)}"


def printed(name: str) -> str:
    """Return a conversation as the text of a trace. Raises SystemExit for an unknown name."""
    by_name = dict(builds())
    if name not in by_name:
        raise SystemExit(unknown_name("conversation", name, by_name))
    return "".join(f"{line}\n" for line in lines(by_name[name]()))


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9./-]+", "-", text).strip("-")


if __name__ == "__main__":
    sys.stdout.write(printed(sys.argv[1]))
