"""Names in a profile or a baseline that nothing has: refused before a server is started.

Each mistake is one line with its place.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.client.target.profile import PLACEHOLDERS, Deviation, Profile
from harness.client.target.tomltext import Loc
from harness.errors import UsageError
from harness.model.tools import VALUES
from harness.play.lexicon import protocol_lexicon
from harness.protocol.spec.book import Book
from harness.protocol.spec.findings import accepted_ids
from harness.protocol.spec.members import shape_of
from harness.scenario.spelling import misspelt
from harness.scenario.words import words
from harness.trace.nearest import unknown


@dataclass(frozen=True, slots=True)
class Typo:
    """A mistake, and the path of the value, or of the key, that is wrong."""

    loc: Loc
    message: str
    key: bool = False


def check_profile(profile: Profile, book: Book) -> None:
    """Raises `UsageError` for the first name that nothing has, in the order of the file."""
    found = [*_typos(profile, book)]
    if not found:
        return
    places = [(profile.place(*typo.loc, key=typo.key), typo) for typo in found]
    where, first = min(places, key=lambda one: (one[0].line, one[0].column))
    raise UsageError(f"{where}: {first.message}")


def check_command(command: Iterable[str], option: str = "--server-cmd") -> None:
    """Raises `UsageError` where the command of an option has what is nearly a placeholder."""
    for typo in _placeholders(option, list(command)):
        raise UsageError(typo.message)


def check_entry(entry: Deviation, place: object, rules: Collection[str]) -> None:
    """Raises `UsageError` for an entry about a rule or a finding that does not exist."""
    if entry.rule not in rules and entry.rule not in accepted_ids():
        what = unknown("rule or finding", entry.rule, {*rules, *accepted_ids()})
        raise UsageError(f"{place}: {what}")


def _typos(profile: Profile, book: Book) -> Iterator[Typo]:
    yield from _capabilities(profile, [one.id for one in book.capabilities])
    requests = words("request", book.schemas)
    if profile.barrier not in requests:
        yield Typo(("barrier",), f"barrier: {unknown('request', profile.barrier, requests)}")
    yield from _params("thread", "thread/start", profile.thread)
    for capability, params in profile.turn.items():
        yield from _params(("turn", capability), "turn/start", params)
    yield from _renames(profile, book)
    for key in ("command", "listen_arguments", "env", "home"):
        yield from _placeholders(key, getattr(profile, key))
    for index, tool in enumerate(profile.tools):
        for key in ("name", "namespace", "arguments"):
            for place, near, found in misspelt(getattr(tool, key), VALUES[tool.intent]):
                message = f"unknown placeholder {found!r}; did you mean {near!r}?"
                yield Typo(("tools", index, key, *place), f"tools: {message}")


def _capabilities(profile: Profile, capabilities: Collection[str]) -> Iterator[Typo]:
    if profile.capabilities != "probe":
        strange = [name for name in profile.capabilities if name not in capabilities]
        for index, name in enumerate(profile.capabilities):
            if name in strange:
                message = f"capabilities: {unknown('capability', name, capabilities)}"
                yield Typo(("capabilities", index), message)
        if "core" not in profile.capabilities and not strange:
            message = (
                "capabilities: 'core' is missing; without it no scenario can be played: add it"
            )
            yield Typo(("capabilities",), message)
    for name in profile.turn:
        if name not in capabilities:
            yield Typo(("turn", name), f"turn: {unknown('capability', name, capabilities)}", key=True)


def _params(keys: str | tuple[str, ...], method: str, params: dict[str, Any]) -> Iterator[Typo]:
    loc = (keys,) if isinstance(keys, str) else keys
    for wrong in protocol_lexicon().wrongs(method, "params", params, whole=False):
        message = f"{'.'.join(loc)}: {wrong.message}"
        yield Typo((*loc, *wrong.path), message, key=wrong.key)


def _renames(profile: Profile, book: Book) -> Iterator[Typo]:
    for name, wire_name in profile.names.items():
        kind, dot, member = name.partition(".")
        if not dot:
            yield Typo(("names", name), f"names: {name!r}: expected TYPE.MEMBER", key=True)
        elif kind not in book.schemas.type_names:
            message = f"names: {unknown('type', kind, book.schemas.type_names)}"
            yield Typo(("names", name), message, key=True)
        elif member not in (members := _members(book, kind)):
            message = f"names: {unknown(f'member of {kind}', member, members)}"
            yield Typo(("names", name), message, key=True)
        elif not wire_name:
            yield Typo(("names", name), "names: an empty name; expected the one on the wire")


def _members(book: Book, kind: str) -> set[str]:
    reference = next(one for one in book.schemas.references() if one.endswith(f"/{kind}"))
    shape = shape_of(book.schemas, reference)
    variants = [member for variant in shape.variants for member in variant.members]
    return {member.name for member in (*shape.members, *variants)}


def _placeholders(key: str, value: Any) -> Iterator[Typo]:
    for place, near, found in misspelt(value, PLACEHOLDERS):
        message = f"{key}: unknown placeholder {found!r}; did you mean {near!r}?"
        yield Typo((key, *place), message)
