"""Filler texts for `{fake: kind}` in a scenario's file, the same in every run."""

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.protocol.values import obj
from harness.scenario.filler import KINDS, filler_text
from harness.scenario.yaml12 import Document, Loc, ScenarioError
from harness.trace.nearest import unknown_name

CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Filling:
    """Filler for one document; the texts depend on `identity`, which is the scenario's.

    Without `client` each text on the client's side is the name of its kind: a process that plays
    only the model needs no texts, and Faker takes longer to import than a scenario to load.
    """

    document: Document
    path: Path
    identity: str
    client: bool = True

    def filled_value(self) -> Any:
        """Return the document's value, filled. Raises `ScenarioError` for an invalid filler."""
        return self._fill(self.document.value, ())

    def _fill(self, value: Any, loc: Loc) -> Any:
        if isinstance(value, list):
            return [
                self._fill(item, (*loc, index))
                for index, item in enumerate(list[Any](value))  # pyright: ignore[reportUnknownArgumentType]
            ]
        members = obj(value)
        if not members:
            return value
        if "fake" in members and set(members) <= {"fake", "n"}:
            return self._text(members, loc)
        return {key: self._fill(item, (*loc, key)) for key, item in members.items()}

    def _text(self, members: dict[str, Any], loc: Loc) -> str:
        kind, number = members["fake"], members.get("n", 0)
        if kind not in KINDS:
            message = unknown_name("filler", str(kind), KINDS)
            raise ScenarioError(self.path, self.document.place((*loc, "fake")), message)
        if not isinstance(number, int):
            message = f"found {number!r}; expected a whole number"
            raise ScenarioError(self.path, self.document.place((*loc, "n")), message)
        if loc[0] == CLIENT and not self.client:
            return kind
        return filler_text(kind, seed=zlib.crc32(f"{self.identity}\0{kind}\0{number}".encode()))
