"""Checks for unknown names in a profile or a baseline, before a server is started.

Each mistake is one line with its place.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.client.target.profile import PLACEHOLDERS, Deviation, Profile
from harness.client.target.tomltext import Loc
from harness.errors import UsageError
from harness.model.tools import VALUES_OF_INTENT
from harness.play.lexicon import protocol_lexicon
from harness.protocol.spec.book import Book
from harness.protocol.spec.findings import accepted_ids
from harness.protocol.spec.members import shape_of
from harness.scenario.spelling_checks import misspelt_placeholders
from harness.scenario.words import protocol_words
from harness.trace.nearest import unknown_name


@dataclass(frozen=True, slots=True)
class Typo:
    """A mistake at the value or key of a path in the profile."""

    loc: Loc
    message: str
    key: bool = False


def check_profile(profile: Profile, book: Book) -> None:
    """Raise `UsageError` for the first unknown name, in the order of the file."""
    typos = [*_typos(profile, book)]
    if not typos:
        return
    places = [(profile.place(*typo.loc, key=typo.key), typo) for typo in typos]
    place, first = min(places, key=lambda item: (item[0].line, item[0].column))
    raise UsageError(f"{place}: {first.message}")


def check_command(command: Iterable[str], option: str = "--server-cmd") -> None:
    """Raise `UsageError` if the command of an option has a misspelt placeholder."""
    for typo in _placeholder_typos(option, list(command)):
        raise UsageError(typo.message)


def check_entry(entry: Deviation, place: object, rules: Collection[str]) -> None:
    """Raise `UsageError` if an entry's `rule` is neither a known rule nor a known finding."""
    if entry.rule not in rules and entry.rule not in accepted_ids():
        problem = unknown_name("rule or finding", entry.rule, {*rules, *accepted_ids()})
        raise UsageError(f"{place}: {problem}")


def _typos(profile: Profile, book: Book) -> Iterator[Typo]:
    yield from _capability_typos(profile, [capability.id for capability in book.capabilities])
    requests = protocol_words("request", book.schemas)
    if profile.barrier not in requests:
        yield Typo(("barrier",), f"barrier: {unknown_name('request', profile.barrier, requests)}")
    yield from _param_typos("thread", "thread/start", profile.thread)
    for capability, params in profile.turn.items():
        yield from _param_typos(("turn", capability), "turn/start", params)
    yield from _rename_typos(profile, book)
    for key in ("command", "listen_arguments", "env", "home"):
        yield from _placeholder_typos(key, getattr(profile, key))
    yield from _time_typos(profile, book)
    for index, tool in enumerate(profile.tools):
        for key in ("name", "namespace", "arguments"):
            for place, near, word in misspelt_placeholders(
                getattr(tool, key), VALUES_OF_INTENT[tool.intent]
            ):
                message = f"unknown placeholder {word!r}; did you mean {near!r}?"
                yield Typo(("tools", index, key, *place), f"tools: {message}")


def _time_typos(profile: Profile, book: Book) -> Iterator[Typo]:
    """Yield unknown messages; without `to` only a request of the client can be meant."""
    requests = protocol_words("request", book.schemas)
    server = [
        *protocol_words("notification of the server", book.schemas),
        *protocol_words("request of the server", book.schemas),
    ]
    for index, row in enumerate(profile.times):
        starts = [*requests, *server] if row.to else requests
        if row.start not in starts:
            kind = "message" if row.to else "request"
            message = f"times: {unknown_name(kind, row.start, starts)}"
            yield Typo(("times", index, "from"), message)
        if row.to and row.to not in server:
            message = f"times: {unknown_name('message of the server', row.to, server)}"
            yield Typo(("times", index, "to"), message)


def _capability_typos(profile: Profile, capabilities: Collection[str]) -> Iterator[Typo]:
    if profile.capabilities != "probe":
        strange = [name for name in profile.capabilities if name not in capabilities]
        for index, name in enumerate(profile.capabilities):
            if name in strange:
                message = f"capabilities: {unknown_name('capability', name, capabilities)}"
                yield Typo(("capabilities", index), message)
        if "core" not in profile.capabilities and not strange:
            message = (
                "capabilities: 'core' is missing; without it no scenario can be played: add it"
            )
            yield Typo(("capabilities",), message)
    for name in profile.turn:
        if name not in capabilities:
            yield Typo(
                ("turn", name), f"turn: {unknown_name('capability', name, capabilities)}", key=True
            )


def _param_typos(
    keys: str | tuple[str, ...], method: str, params: dict[str, Any]
) -> Iterator[Typo]:
    loc = (keys,) if isinstance(keys, str) else keys
    for wrong in protocol_lexicon().mistakes_in(method, "params", params, complete=False):
        message = f"{'.'.join(loc)}: {wrong.message}"
        yield Typo((*loc, *wrong.path), message, key=wrong.key)


def _rename_typos(profile: Profile, book: Book) -> Iterator[Typo]:
    for name, wire_name in profile.names.items():
        kind, dot, member = name.partition(".")
        if not dot:
            yield Typo(("names", name), f"names: {name!r}: expected TYPE.MEMBER", key=True)
        elif kind not in book.schemas.type_names:
            message = f"names: {unknown_name('type', kind, book.schemas.type_names)}"
            yield Typo(("names", name), message, key=True)
        elif member not in (members := _member_names(book, kind)):
            message = f"names: {unknown_name(f'member of {kind}', member, members)}"
            yield Typo(("names", name), message, key=True)
        elif not wire_name:
            yield Typo(("names", name), "names: an empty name; expected the one on the wire")


def _member_names(book: Book, kind: str) -> set[str]:
    reference = next(
        reference for reference in book.schemas.references() if reference.endswith(f"/{kind}")
    )
    shape = shape_of(book.schemas, reference)
    variants = [member for variant in shape.variants for member in variant.members]
    return {member.name for member in (*shape.members, *variants)}


def _placeholder_typos(key: str, value: Any) -> Iterator[Typo]:
    for place, near, word in misspelt_placeholders(value, PLACEHOLDERS):
        message = f"{key}: unknown placeholder {word!r}; did you mean {near!r}?"
        yield Typo((key, *place), message)
