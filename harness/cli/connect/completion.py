"""Completion at the prompt: methods, members of params and their values, by the book."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from harness.cli.connect.fields import DECISIONS, Fields
from harness.cli.connect.line_parser import COMMANDS
from harness.cli.connect.line_place import line_place
from harness.protocol.spec.members import Member
from harness.scenario.bundled import bundled_ids

IdsInUse = Callable[[], dict[str, str]]
"""Function that returns the ids in use: member -> value."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A word that replaces the last `replaced_length` characters; `meaning` is shown beside it."""

    word: str
    replaced_length: int
    meaning: str = ""


class LineCompleter(Completer):
    """Completer of a typed line: methods, members, values and commands of the prompt."""

    def __init__(self, fields: Fields, ids_in_use: IdsInUse) -> None:
        self._fields = fields
        self._ids_in_use = ids_in_use

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Yield the proposals in the form of prompt_toolkit."""
        for proposal in self.proposals(document.text_before_cursor):
            yield Completion(
                proposal.word, -proposal.replaced_length, display_meta=proposal.meaning
            )

    def proposals(self, text: str) -> Iterator[Proposal]:
        """Yield the words that can stand at the end of this text."""
        line = text.lstrip()
        first, blank, rest = line.partition(" ")
        if not blank:
            yield from self._first_words(first)
        elif first == ":fields":
            yield from _match_words(rest, self._fields.methods)
        elif first == ":model":
            yield from _match_words(rest, ["say ", "run ", *sorted(bundled_ids())])
        elif first in (":answer",):
            yield from _match_words(rest, DECISIONS)
        elif not first.startswith((":", "{")):
            yield from self._params(first, rest)

    def _first_words(self, prefix: str) -> Iterator[Proposal]:
        if prefix.startswith(":"):
            for name, means in COMMANDS.items():
                if name.startswith(prefix):
                    yield Proposal(name, len(prefix), means)
            return
        for method in self._fields.methods:
            if _matches(prefix, method):
                members = ", ".join(self._fields.required_members(method))
                yield Proposal(method, len(prefix), members)
        if prefix:
            yield from _match_words(prefix, DECISIONS)

    def _params(self, method: str, typed: str) -> Iterator[Proposal]:
        if typed.lstrip().startswith("{"):
            yield from self._json(method, typed.lstrip())
            return
        # Pairs: the last word is a name, or a value after its `=`.
        last = typed.rpartition(" ")[2]
        name, equals, value = last.partition("=")
        if equals:
            yield from self._values(method, (name,), value)
            return
        used_names = {word.partition("=")[0] for word in typed.split(" ")[:-1]}
        members = self._fields.members(method)
        if any(member.name == "input" for member in members) and "text".startswith(last):
            yield Proposal("text=", len(last), "input: a text of the user")
        for member in members:
            if member.name not in used_names and _matches(last, member.name):
                yield Proposal(f"{member.name}=", len(last), _member_words(member))
        if not typed:
            yield Proposal("{", 0, "params as JSON")

    def _json(self, method: str, text: str) -> Iterator[Proposal]:
        place = line_place(text)
        if place is None:
            return
        if not place.is_key:
            for proposal in self._values(method, place.path, place.prefix, quoted=True):
                yield proposal
            return
        for proposal in self._fields.members(method, place.path):
            word = json.dumps(proposal.name)
            if proposal.name not in place.keys and _matches(place.prefix.strip('"'), proposal.name):
                yield Proposal(f"{word}: ", len(place.prefix), _member_words(proposal))

    def _values(
        self, method: str, path: tuple[str | int, ...], prefix: str, *, quoted: bool = False
    ) -> Iterator[Proposal]:
        value_in_use = self._ids_in_use().get(str(path[-1])) if path else None
        words = [json.dumps(value_in_use)] if value_in_use else self._fields.values(method, path)
        for word in words:
            plain = word if quoted else word.strip('"')
            if plain.startswith(prefix):
                yield Proposal(plain, len(prefix), "in use" if value_in_use else "")


def _match_words(prefix: str, words: Iterable[str]) -> Iterator[Proposal]:
    for word in words:
        if word.startswith(prefix):
            yield Proposal(word, len(prefix))


def _matches(prefix: str, word: str) -> bool:
    """Return whether a word, or a part of it after "/", begins with `prefix`, ignoring case."""
    prefix, word = prefix.lower(), word.lower()
    return word.startswith(prefix) or any(part.startswith(prefix) for part in word.split("/"))


def _member_words(member: Member) -> str:
    return f"{member.type}{' (must be there)' if member.required else ''}".replace("`", "")
