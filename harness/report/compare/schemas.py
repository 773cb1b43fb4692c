"""Differences of the messages that two servers spoke, and whether a client may break.

A client reads all of these: results, notifications, the params of the server's requests. So it
breaks where something is missing that it may read, and where something may come that it does not
know; it passes over members and notifications that it does not ask for.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from harness.report.compare.values import NOWHERE, Change, Kind, Run, Where
from harness.report.results.recorded import unpack, unpack_places


class Sort(StrEnum):
    """The kinds of change of a message or a member."""

    NOTIFICATION_GONE = "notification gone"
    NOTIFICATION_NEW = "new notification"
    REQUEST_GONE = "request gone"
    REQUEST_NEW = "new request"
    EVENT_GONE = "event gone"
    EVENT_NEW = "new event"
    RESULT_GONE = "no result any more"
    RESULT_NEW = "a result for the first time"
    MEMBER_GONE = "member gone"
    MEMBER_NEW = "new member"
    OPTIONAL = "not always there any more"
    ALWAYS = "always there now"
    WIDER = "wider type"
    NARROWER = "narrower type"
    WORD_NEW = "new word"
    WORD_GONE = "word gone"
    VARIANT_NEW = "new variant"
    VARIANT_GONE = "variant gone"
    ELSEWHERE = "in a new place"


# Whether it breaks a client, and why.
WHY: Final[dict[Sort, tuple[bool, str]]] = {
    Sort.NOTIFICATION_GONE: (True, "a client may wait for it"),
    Sort.NOTIFICATION_NEW: (False, "a client passes over a notification that it does not know"),
    Sort.REQUEST_GONE: (False, "the client is asked less"),
    Sort.REQUEST_NEW: (True, "the server waits for an answer, and an older client has none"),
    Sort.EVENT_GONE: (True, "a client may wait for it"),
    Sort.EVENT_NEW: (False, "a client passes over an event that it does not know"),
    Sort.RESULT_GONE: (True, "the request is not granted any more"),
    Sort.RESULT_NEW: (False, "the request was not granted before"),
    Sort.MEMBER_GONE: (True, "a client may read it"),
    Sort.MEMBER_NEW: (False, "a client passes over a member that it does not know"),
    Sort.OPTIONAL: (True, "a client may rely on it"),
    Sort.ALWAYS: (False, "a client that can do without it can do with it"),
    Sort.WIDER: (True, "a client may not expect the other type"),
    Sort.NARROWER: (False, "a client still meets what it knows"),
    Sort.WORD_NEW: (True, "a client may not know the word"),
    Sort.WORD_GONE: (False, "a client still meets what it knows"),
    Sort.VARIANT_NEW: (True, "a client may not know the variant"),
    Sort.VARIANT_GONE: (False, "a client still meets what it knows"),
    Sort.ELSEWHERE: (False, "a client knows it from other messages"),
}
_GONE: Final = {
    "notification": Sort.NOTIFICATION_GONE,
    "event": Sort.EVENT_GONE,
    "request": Sort.REQUEST_GONE,
    "result": Sort.RESULT_GONE,
}
_NEW: Final = {
    "notification": Sort.NOTIFICATION_NEW,
    "event": Sort.EVENT_NEW,
    "request": Sort.REQUEST_NEW,
    "result": Sort.RESULT_NEW,
}

# The ids of scenarios.
Ids = frozenset[str]
_NONE: Final[Ids] = frozenset()
_ABSENT: Final = "not seen"
_OR: Final = " or "
# So many notifications with one beginning are told in one line.
_FAMILY: Final = 4


@dataclass(slots=True)
class _Member:
    """A member in the scenarios that both played: where it was seen, by type and by word."""

    types: dict[str, Ids]
    words: dict[str, Ids]
    sometimes: Ids
    first: Where

    @property
    def seen(self) -> Ids:
        return frozenset[str]().union(*self.types.values())


@dataclass(frozen=True, slots=True)
class _Found:
    """A change before it is told; `scenarios` is in how many it shows."""

    sort: Sort
    message: str
    path: str
    before: str
    after: str
    first: Where
    second: Where
    scenarios: int


class _Side:
    """The messages of one run in the scenarios that both played."""

    def __init__(self, run: Run, common: set[str]) -> None:
        self._ids = [one.id for one in run.report.scenarios]
        self._traces = [one.trace for one in run.report.scenarios]
        self._common = common
        self.messages: dict[str, dict[str, _Member]] = {}
        for message, members in run.report.spoken.items():
            found = {
                path: _Member(
                    self._seen(result.types),
                    self._seen(result.words),
                    self._within(unpack_places(result.sometimes)),
                    self._first(result.types),
                )
                for path, result in members.items()
            }
            found = {path: member for path, member in found.items() if member.types}
            if found:
                self.messages[message] = found

    def _seen(self, packed: dict[str, str]) -> dict[str, Ids]:
        found = {name: self._within(unpack(one).scenarios) for name, one in packed.items()}
        return {name: ids for name, ids in found.items() if ids}

    def _within(self, places: Iterator[int] | tuple[int, ...]) -> Ids:
        return frozenset(self._ids[place] for place in places) & self._common

    def _first(self, packed: dict[str, str]) -> Where:
        shown = [unpack(one) for one in packed.values()]
        best = min(shown, key=lambda one: one.first)
        return Where(self._traces[best.first], best.frame)

    def knows(self, change: "_Found") -> bool:
        """Return whether a variant, a word or a type that is new in one place was seen in
        another.
        """
        key = _key(f"{change.path}.type" if change.sort is Sort.VARIANT_NEW else change.path)
        alike = [
            member
            for members in self.messages.values()
            for path, member in members.items()
            if _key(path) == key
        ]
        match change.sort:
            case Sort.VARIANT_NEW:
                return bool(alike)
            case Sort.WORD_NEW:
                return any(change.after in one.words for one in alike)
            case Sort.WIDER:
                known = {name for one in alike for name in one.types}
                return set(change.after.split(_OR)) <= known
            case _:
                return False

    def objects(self, message: str) -> dict[str, Ids]:
        """Return the places of each object of a message, by what was seen of its members."""
        found: dict[str, Ids] = defaultdict(frozenset)
        for path, member in self.messages.get(message, {}).items():
            found[path.rpartition(".")[0]] |= member.seen
        return found


def schema_changes(before: Run, after: Run) -> list[tuple[Change, bool]]:
    """The changes of messages, each with whether chance may have made it."""
    common = before.played & after.played
    first, second = _Side(before, common), _Side(after, common)
    found: list[_Found] = []
    for message in sorted(first.messages.keys() | second.messages.keys()):
        found += _of_message(message, first, second)
    return [_change(one) for one in _grouped(found)]


def _of_message(message: str, first: _Side, second: _Side) -> Iterator[_Found]:
    was, now = first.messages.get(message), second.messages.get(message)
    form = message.partition(" ")[0]
    if was is None or now is None:
        only = was or now or {}
        sort = (_GONE if now is None else _NEW).get(form)
        seen = len(frozenset[str]().union(*(one.seen for one in only.values())))
        if sort is not None:
            shown = next(iter(only.values())).first
            there = f"seen in {seen} scenarios"
            yield _one_sided(sort, message, "", there, shown, seen, gone=now is None)
        return
    objects = first.objects(message), second.objects(message)
    for path in sorted(was.keys() | now.keys()):
        around = path.rpartition(".")[0]
        if around and not (around in objects[0] and around in objects[1]):
            changes = _variant(message, path, (was, now), objects)
        else:
            changes = _of_member(message, path, (was, now), objects)
        for one in changes:
            yield replace(one, sort=Sort.ELSEWHERE) if first.knows(one) else one


Members = dict[str, _Member]


def _variant(
    message: str, path: str, both: tuple[Members, Members], objects: tuple[dict[str, Ids], ...]
) -> Iterator[_Found]:
    """A variant of an object that one side never has; told once, at its `type`."""
    around, _, name = path.rpartition(".")
    if name != "type" or not around.endswith(">"):
        return
    base = around.rpartition("<")[0]
    was, now = both
    if not (base in was and base in now):
        return
    gone = path in was
    seen = objects[0 if gone else 1][around]
    shown = (was if gone else now)[path].first
    # Only where the other side had such an object too.
    count = len(seen & (now if gone else was)[base].seen)
    if count:
        sort = Sort.VARIANT_GONE if gone else Sort.VARIANT_NEW
        yield _one_sided(sort, message, around, "there", shown, count, gone=gone)


def _one_sided(
    sort: Sort, message: str, path: str, there: str, shown: Where, scenarios: int, *, gone: bool
) -> _Found:
    """A change of which only one side has anything to show."""
    if gone:
        return _Found(sort, message, path, there, _ABSENT, shown, NOWHERE, scenarios)
    return _Found(sort, message, path, _ABSENT, there, NOWHERE, shown, scenarios)


def _of_member(
    message: str, path: str, both: tuple[Members, Members], objects: tuple[dict[str, Ids], ...]
) -> Iterator[_Found]:
    around = path.rpartition(".")[0]
    was, now = both[0].get(path), both[1].get(path)
    held = objects[0].get(around, _NONE), objects[1].get(around, _NONE)
    if was is None or now is None:
        there, other = (was, held[1]) if now is None else (now, held[0])
        assert there is not None
        shared = there.seen & other
        if shared and "[]" not in path.rpartition(".")[2]:
            gone = now is None
            sort = Sort.MEMBER_GONE if gone else Sort.MEMBER_NEW
            words, count = _types(there), len(shared)
            yield _one_sided(sort, message, path, words, there.first, count, gone=gone)
        return
    sides = was.first, now.first
    pair = _types(was), _types(now)
    shared = was.seen & now.seen
    for sort, more, less in ((Sort.WIDER, now, was), (Sort.NARROWER, was, now)):
        extra = more.types.keys() - less.types.keys()
        shows = frozenset[str]().union(*(more.types[name] for name in extra)) & less.seen
        if shows:
            yield _Found(sort, message, path, *pair, *sides, len(shows))
            break  # Another type instead of the former is wider, and needs no second line.
    missing = _missing(was, held[0]), _missing(now, held[1])
    if bool(missing[0]) != bool(missing[1]):
        optional = bool(missing[1])
        sort = Sort.OPTIONAL if optional else Sort.ALWAYS
        # Where the other side had the object, and always with the member.
        shows = (missing[1] & held[0]) if optional else (missing[0] & held[1])
        left, right = ("always there", "sometimes absent")[:: 1 if optional else -1]
        if shows:
            yield _Found(sort, message, path, left, right, *sides, len(shows))
    for sort, more, less in ((Sort.WORD_NEW, now, was), (Sort.WORD_GONE, was, now)):
        for name in sorted(more.words.keys() - less.words.keys()):
            shows = more.words[name] & shared
            if shows and not path.endswith(">.type"):
                left, right = (name, _ABSENT)[:: 1 if sort is Sort.WORD_GONE else -1]
                yield _Found(sort, message, path, left, right, *sides, len(shows))


def _types(member: _Member) -> str:
    return _OR.join(sorted(member.types))


def _missing(member: _Member, around: Ids) -> Ids:
    """Return the contexts in which the parent object lacked this member."""
    return (around - member.seen) | (member.sometimes & around)


def _key(path: str) -> str:
    """Return the shared part of a path, as `turn.status` of `result.turns[].status`."""
    parts = [one.replace("[]", "") for one in path.split(".")[-2:]]
    return ".".join(re.sub(r"s(?=$|<)", "", one) for one in parts)


def _grouped(found: list[_Found]) -> list[_Found]:
    """One change for the same member in several messages: the one that most scenarios show.

    New members of one object are one change, and so are many notifications of one family.
    """
    groups: dict[tuple[str, ...], list[_Found]] = defaultdict(list)
    for one in found:
        groups[_group_of(one)].append(one)
    kept: list[_Found] = []
    for group in groups.values():
        if not group[0].path and len(group) >= _FAMILY:
            kept.append(_family(group))
        elif not group[0].path:
            kept += group
        elif group[0].sort is Sort.MEMBER_NEW:
            kept.append(_members_of(group))
        else:
            kept.append(_most(group))
    return kept


def _group_of(one: _Found) -> tuple[str, ...]:
    if not one.path:
        return one.sort, one.message.rpartition("/")[0]
    if one.sort is Sort.MEMBER_NEW:
        return one.sort, _object(one)
    return one.sort, _key(one.path), one.before, one.after


def _object(one: _Found) -> str:
    """The object that a member is of; params and results are those of their message."""
    around = one.path.rpartition(".")[0]
    last = around.rpartition(".")[2].replace("[]", "")
    if "." not in around:
        return one.message
    return re.sub(r"s(?=$|<)", "", re.sub(r"<\w+>$", "<…>", last))


def _most(group: list[_Found]) -> _Found:
    best = max(group, key=lambda one: one.scenarios)
    others = len({one.message for one in group} - {best.message})
    more = f" (and in {others} other message{'s' if others > 1 else ''})" if others else ""
    return replace(best, message=best.message + more)


def _members_of(group: list[_Found]) -> _Found:
    """All new members of one object, with the types of each."""
    types: dict[str, set[str]] = defaultdict(set)
    for one in group:
        types[one.path.rpartition(".")[2]] |= set(one.after.split(_OR))
    after = ", ".join(f"{name} ({_OR.join(sorted(types[name]))})" for name in sorted(types))
    best = max(group, key=lambda one: one.scenarios)
    place = "" if _object(best) == best.message else f"of {_object(best)}"
    return replace(_most(group), path=place, after=after)


def _family(group: list[_Found]) -> _Found:
    """Many messages with names alike: their number, and one of them."""
    best = max(group, key=lambda one: one.scenarios)
    family = best.message.rpartition("/")[0]
    return replace(best, message=f"{family}/… ({len(group)} of them), such as {best.message}")


def _change(one: _Found) -> tuple[Change, bool]:
    breaks, why = WHY[one.sort]
    place = f"{one.message}: {one.path}" if one.path else one.message
    if one.sort in (*_GONE.values(), *_NEW.values()):
        # The form of a message is in the words for what happened to it.
        for form in _GONE:
            place = place.replace(f"{form} ", "")
    change = Change(
        Kind.BREAKING if breaks else Kind.ADDITIVE,
        f"{one.sort}: {place}",
        one.before,
        one.after,
        why,
        breaks,
        one.first,
        one.second,
    )
    return change, False
