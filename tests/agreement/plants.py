"""Planted differences between book and models: text replacements in copies of their sources."""

import importlib
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import harness.protocol.spec
import harness.protocol.wire
from agreement.messages import Pair, pairs
from harness.protocol.spec.schemas import FILES, SchemaBook

SCHEMAS = Path(harness.protocol.spec.__path__[0]) / "schema"
MODELS = Path(harness.protocol.wire.__path__[0])

_numbers = count()


@dataclass(frozen=True)
class Plant:
    """One text replacement in a file; `found` is the expected comparison of `method`'s messages."""

    kind: str
    file: str
    old: str
    new: str
    method: str
    found: tuple[str, ...]
    shown: bool = True
    """True if documents show it too; they cannot for an optional member of any type."""


def _replaced(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise LookupError(f"{old!r} is there {text.count(old)} times, not once")
    return text.replace(old, new)


def plant_in_book(file: str, old: str, new: str) -> SchemaBook:
    """Return the book's schemas with one text replaced. LookupError unless it occurs once."""
    texts = {name: (SCHEMAS / name).read_text("utf-8") for name in FILES}
    texts[file] = _replaced(texts[file], old, new)
    return SchemaBook({name: json.loads(text) for name, text in texts.items()})


@contextmanager
def plant_in_wire(
    folder: Path, file: str, old: str, new: str, method: str
) -> Generator[list[Pair]]:
    """The messages of one method, their models read from a copy with one text replaced."""
    name = f"planted_{next(_numbers)}"
    for source in MODELS.glob("*.py"):
        text = source.read_text("utf-8")
        if source.name == file:
            text = _replaced(text, old, new)
        copy = folder / name / source.name
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(text.replace("harness.protocol.wire", name), "utf-8")
    sys.path.insert(0, str(folder))
    try:
        importlib.invalidate_caches()
        table = importlib.import_module(f"{name}.methods")
        yield list(pairs([table.BY_METHOD[method]]))
    finally:
        sys.path.remove(str(folder))
        for module in [one for one in sys.modules if one.split(".")[0] == name]:
            del sys.modules[module]


def messages_of(method: str) -> list[Pair]:
    """The messages of one method, as they are."""
    return [pair for pair in pairs() if pair.method == method]
