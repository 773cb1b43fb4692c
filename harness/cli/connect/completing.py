"""Completion of a line at the prompt: methods, members of params and their words, by the book."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from harness.cli.connect.fields import DECISIONS, Fields
from harness.cli.connect.line_place import line_place
from harness.cli.connect.words import COMMANDS
from harness.protocol.spec.members import Member
from harness.scenario.bundled import bundled_ids

Known = Callable[[], dict[str, str]]
"""The ids that are in use: member -> value."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A word to put in the place of the last `replaced` characters; `means` is said beside it."""

    word: str
    replaced: int
    means: str = ""


class LineCompleter(Completer):
    """Proposes what can stand at the end of a line."""

    def __init__(self, fields: Fields, known: Known) -> None:
        self._fields = fields
        self._known = known

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Give the proposals in the form of prompt_toolkit."""
        for proposal in self.proposals(document.text_before_cursor):
            yield Completion(proposal.word, -proposal.replaced, display_meta=proposal.means)

    def proposals(self, text: str) -> Iterator[Proposal]:
        """Give what can stand at the end of this text."""
        line = text.lstrip()
        first, blank, rest = line.partition(" ")
        if not blank:
            yield from self._first(first)
        elif first == ":fields":
            yield from _like(rest, self._fields.methods)
        elif first == ":model":
            yield from _like(rest, ["say ", "run ", *sorted(bundled_ids())])
        elif first in (":answer",):
            yield from _like(rest, DECISIONS)
        elif not first.startswith((":", "{")):
            yield from self._params(first, rest)

    def _first(self, begun: str) -> Iterator[Proposal]:
        if begun.startswith(":"):
            for name, means in COMMANDS.items():
                if name.startswith(begun):
                    yield Proposal(name, len(begun), means)
            return
        for method in self._fields.methods:
            if _fits(begun, method):
                members = ", ".join(self._fields.required(method))
                yield Proposal(method, len(begun), members)
        if begun:
            yield from _like(begun, DECISIONS)

    def _params(self, method: str, rest: str) -> Iterator[Proposal]:
        if rest.lstrip().startswith("{"):
            yield from self._json(method, rest.lstrip())
            return
        # Pairs: the last word is a name, or a value behind its `=`.
        last = rest.rpartition(" ")[2]
        name, equals, value = last.partition("=")
        if equals:
            yield from self._values(method, (name,), value)
            return
        used_names = {word.partition("=")[0] for word in rest.split(" ")[:-1]}
        members = self._fields.members(method)
        if any(member.name == "input" for member in members) and "text".startswith(last):
            yield Proposal("text=", len(last), "input: a text of the user")
        for member in members:
            if member.name not in used_names and _fits(last, member.name):
                yield Proposal(f"{member.name}=", len(last), _means(member))
        if not rest:
            yield Proposal("{", 0, "params as JSON")

    def _json(self, method: str, text: str) -> Iterator[Proposal]:
        place = line_place(text)
        if place is None:
            return
        if not place.is_key:
            for proposal in self._values(method, place.path, place.begun, quoted=True):
                yield proposal
            return
        for proposal in self._fields.members(method, place.path):
            word = json.dumps(proposal.name)
            if proposal.name not in place.keys and _fits(place.begun.strip('"'), proposal.name):
                yield Proposal(f"{word}: ", len(place.begun), _means(proposal))

    def _values(
        self, method: str, path: tuple[str | int, ...], begun: str, *, quoted: bool = False
    ) -> Iterator[Proposal]:
        value_in_use = self._known().get(str(path[-1])) if path else None
        words = [json.dumps(value_in_use)] if value_in_use else self._fields.values(method, path)
        for word in words:
            plain = word if quoted else word.strip('"')
            if plain.startswith(begun):
                yield Proposal(plain, len(begun), "in use" if value_in_use else "")


def _like(begun: str, words: Iterable[str]) -> Iterator[Proposal]:
    for word in words:
        if word.startswith(begun):
            yield Proposal(word, len(begun))


def _fits(begun: str, word: str) -> bool:
    """Return whether a word begins so, or one of its parts does: `start` finds `turn/start`."""
    begun, word = begun.lower(), word.lower()
    return word.startswith(begun) or any(part.startswith(begun) for part in word.split("/"))


def _means(one: Member) -> str:
    return f"{one.type}{' (must be there)' if one.required else ''}".replace("`", "")
