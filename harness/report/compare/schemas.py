"""Differences between the messages of two servers, and whether a client may break.

A client reads results, notifications, and the params of the server's requests. It breaks if
something is missing that it may read, or if something may arrive that it does not know; it passes
over members and notifications that it does not use.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from harness.report.compare.choices import MIN_DISAGREEING_SCENARIOS
from harness.report.compare.values import NO_PLACE, Change, Kind, Run, TracePlace
from harness.report.compare.verdicts import unsteady_scenarios
from harness.report.results.sightings import unpack, unpack_places


class ChangeSort(StrEnum):
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


# Whether a change breaks a client, and why.
CLIENT_EFFECTS: Final[dict[ChangeSort, tuple[bool, str]]] = {
    ChangeSort.NOTIFICATION_GONE: (True, "a client may wait for it"),
    ChangeSort.NOTIFICATION_NEW: (
        False,
        "a client passes over a notification that it does not know",
    ),
    ChangeSort.REQUEST_GONE: (False, "the client is asked less"),
    ChangeSort.REQUEST_NEW: (True, "the server waits for an answer, and an older client has none"),
    ChangeSort.EVENT_GONE: (True, "a client may wait for it"),
    ChangeSort.EVENT_NEW: (False, "a client passes over an event that it does not know"),
    ChangeSort.RESULT_GONE: (True, "the request is not granted any more"),
    ChangeSort.RESULT_NEW: (False, "the request was not granted before"),
    ChangeSort.MEMBER_GONE: (True, "a client may read it"),
    ChangeSort.MEMBER_NEW: (False, "a client passes over a member that it does not know"),
    ChangeSort.OPTIONAL: (True, "a client may rely on it"),
    ChangeSort.ALWAYS: (False, "a client that can do without it can do with it"),
    ChangeSort.WIDER: (True, "a client may not expect the other type"),
    ChangeSort.NARROWER: (False, "a client still meets what it knows"),
    ChangeSort.WORD_NEW: (True, "a client may not know the word"),
    ChangeSort.WORD_GONE: (False, "a client still meets what it knows"),
    ChangeSort.VARIANT_NEW: (True, "a client may not know the variant"),
    ChangeSort.VARIANT_GONE: (False, "a client still meets what it knows"),
    ChangeSort.ELSEWHERE: (False, "a client knows it from other messages"),
}
_GONE: Final = {
    "notification": ChangeSort.NOTIFICATION_GONE,
    "event": ChangeSort.EVENT_GONE,
    "request": ChangeSort.REQUEST_GONE,
    "result": ChangeSort.RESULT_GONE,
}
_NEW: Final = {
    "notification": ChangeSort.NOTIFICATION_NEW,
    "event": ChangeSort.EVENT_NEW,
    "request": ChangeSort.REQUEST_NEW,
    "result": ChangeSort.RESULT_NEW,
}

# The ids of scenarios.
Ids = frozenset[str]
_NONE: Final[Ids] = frozenset()
_ABSENT: Final = "not seen"
_OR: Final = " or "
# Fewest messages with a common prefix that are reported in one line.
MIN_FAMILY_MESSAGES: Final = 4


@dataclass(slots=True)
class _Member:
    """A member in the scenarios that both played: the scenarios with it, by type and by word."""

    types: dict[str, Ids]
    words: dict[str, Ids]
    sometimes: Ids
    first: TracePlace

    @property
    def scenarios(self) -> Ids:
        return frozenset[str]().union(*self.types.values())


@dataclass(frozen=True, slots=True)
class _MemberChange:
    """A change before it is reported; `scenarios` are those that show it.

    `lacking` is a scenario in which one side lacks the member.
    """

    sort: ChangeSort
    message: str
    path: str
    before: str
    after: str
    first: TracePlace
    second: TracePlace
    scenarios: Ids
    lacking: str = ""
    by_chance: bool = False


class _Side:
    """The messages of one run in the scenarios that both played."""

    def __init__(self, run: Run, common: set[str]) -> None:
        self._ids = [scenario.id for scenario in run.report.scenarios]
        self._traces = [scenario.trace for scenario in run.report.scenarios]
        self._common = common
        self.messages: dict[str, dict[str, _Member]] = {}
        for message, members in run.report.spoken.items():
            common_members = {
                path: _Member(
                    self._scenarios_by_name(result.types),
                    self._scenarios_by_name(result.words),
                    self._common_ids(unpack_places(result.sometimes)),
                    self._first(result.types),
                )
                for path, result in members.items()
            }
            common_members = {
                path: member for path, member in common_members.items() if member.types
            }
            if common_members:
                self.messages[message] = common_members

    def _scenarios_by_name(self, packed: dict[str, str]) -> dict[str, Ids]:
        ids_by_name = {
            name: self._common_ids(unpack(packed_sightings).scenarios)
            for name, packed_sightings in packed.items()
        }
        return {name: ids for name, ids in ids_by_name.items() if ids}

    def _common_ids(self, places: Iterator[int] | tuple[int, ...]) -> Ids:
        return frozenset(self._ids[place] for place in places) & self._common

    def _first(self, packed: dict[str, str]) -> TracePlace:
        sightings = [unpack(sighting) for sighting in packed.values()]
        best = min(sightings, key=lambda sighting: sighting.first)
        return TracePlace(self._traces[best.first], best.frame)

    def trace_of(self, scenario: str) -> TracePlace:
        """Return the trace of a scenario."""
        return TracePlace(self._traces[self._ids.index(scenario)])

    def has_seen(self, change: "_MemberChange") -> bool:
        """Return whether this run has a change's new variant, word or type in another place."""
        key = _path_key(
            f"{change.path}.type" if change.sort is ChangeSort.VARIANT_NEW else change.path
        )
        alike = [
            member
            for members in self.messages.values()
            for path, member in members.items()
            if _path_key(path) == key
        ]
        match change.sort:
            case ChangeSort.VARIANT_NEW:
                return bool(alike)
            case ChangeSort.WORD_NEW:
                return any(change.after in member.words for member in alike)
            case ChangeSort.WIDER:
                known_types = {name for member in alike for name in member.types}
                return set(change.after.split(_OR)) <= known_types
            case _:
                return False

    def scenarios_by_object(self, message: str) -> dict[str, Ids]:
        """Return path of an object in a message -> scenarios with any of its members."""
        scenarios: dict[str, Ids] = defaultdict(frozenset)
        for path, member in self.messages.get(message, {}).items():
            scenarios[path.rpartition(".")[0]] |= member.scenarios
        return scenarios


def schema_changes(before: Run, after: Run) -> list[tuple[Change, bool]]:
    """Return the changes of messages, each with whether chance may have made it."""
    common = before.played_scenarios & after.played_scenarios
    first, second = _Side(before, common), _Side(after, common)
    member_changes: list[_MemberChange] = []
    for message in sorted(first.messages.keys() | second.messages.keys()):
        member_changes += _message_changes(message, first, second)
    shaky = unsteady_scenarios(before) | unsteady_scenarios(after)
    return [
        _change(change)
        for change in _group(
            [
                replace(change, by_chance=change.by_chance or change.scenarios <= shaky)
                for change in member_changes
            ]
        )
    ]


def _message_changes(message: str, first: _Side, second: _Side) -> Iterator[_MemberChange]:
    was, now = first.messages.get(message), second.messages.get(message)
    form = message.partition(" ")[0]
    if was is None or now is None:
        only = was or now or {}
        sort = (_GONE if now is None else _NEW).get(form)
        scenarios = frozenset[str]().union(*(member.scenarios for member in only.values()))
        if sort is not None:
            place = next(iter(only.values())).first
            description = f"seen in {len(scenarios)} scenarios"
            yield _one_sided(sort, message, "", description, place, scenarios, gone=now is None)
        return
    objects = first.scenarios_by_object(message), second.scenarios_by_object(message)
    for path in sorted(was.keys() | now.keys()):
        around = path.rpartition(".")[0]
        if around and not (around in objects[0] and around in objects[1]):
            changes = _variant_changes(message, path, (was, now), objects)
        else:
            changes = _member_changes(message, path, (was, now), objects, (first, second))
        for change in changes:
            yield replace(change, sort=ChangeSort.ELSEWHERE) if first.has_seen(change) else change


Members = dict[str, _Member]


def _variant_changes(
    message: str, path: str, both: tuple[Members, Members], objects: tuple[dict[str, Ids], ...]
) -> Iterator[_MemberChange]:
    """Yield a change for a variant of an object that one side never has, at its `type`."""
    around, _, name = path.rpartition(".")
    if name != "type" or not around.endswith(">"):
        return
    base = around.rpartition("<")[0]
    was, now = both
    if not (base in was and base in now):
        return
    gone = path in was
    variant_scenarios = objects[0 if gone else 1][around]
    place = (was if gone else now)[path].first
    # Count only scenarios in which the other side had such an object too.
    shows = variant_scenarios & (now if gone else was)[base].scenarios
    if shows:
        sort = ChangeSort.VARIANT_GONE if gone else ChangeSort.VARIANT_NEW
        yield _one_sided(sort, message, around, "there", place, shows, gone=gone)


def _one_sided(
    sort: ChangeSort,
    message: str,
    path: str,
    description: str,
    place: TracePlace,
    scenarios: Ids,
    *,
    gone: bool,
) -> _MemberChange:
    """Return a change that only one run shows: `before` if `gone`, else `after`."""
    if gone:
        return _MemberChange(sort, message, path, description, _ABSENT, place, NO_PLACE, scenarios)
    return _MemberChange(sort, message, path, _ABSENT, description, NO_PLACE, place, scenarios)


def _member_changes(
    message: str,
    path: str,
    both: tuple[Members, Members],
    objects: tuple[dict[str, Ids], ...],
    traces: tuple[_Side, _Side],
) -> Iterator[_MemberChange]:
    around = path.rpartition(".")[0]
    was, now = both[0].get(path), both[1].get(path)
    parent_scenarios = objects[0].get(around, _NONE), objects[1].get(around, _NONE)
    if was is None or now is None:
        present, parents = (was, parent_scenarios[1]) if now is None else (now, parent_scenarios[0])
        assert present is not None
        shared = present.scenarios & parents
        if shared and not _is_element(path):
            gone = now is None
            sort = ChangeSort.MEMBER_GONE if gone else ChangeSort.MEMBER_NEW
            words = _type_words(present)
            yield _one_sided(sort, message, path, words, present.first, shared, gone=gone)
        return
    sides = was.first, now.first
    pair = _type_words(was), _type_words(now)
    shared = was.scenarios & now.scenarios
    for sort, more, less in ((ChangeSort.WIDER, now, was), (ChangeSort.NARROWER, was, now)):
        extra = more.types.keys() - less.types.keys()
        shows = frozenset[str]().union(*(more.types[name] for name in extra)) & less.scenarios
        if shows:
            agreeing = shared - shows
            chance = _depends_on_moment(path, shows, agreeing)
            yield _MemberChange(sort, message, path, *pair, *sides, shows, by_chance=chance)
            break  # A replaced type is wider, and needs no second line.
    missing = (
        _contexts_without(was, parent_scenarios[0]),
        _contexts_without(now, parent_scenarios[1]),
    )
    if bool(missing[0]) != bool(missing[1]) and not _is_element(path):
        optional = bool(missing[1])
        sort = ChangeSort.OPTIONAL if optional else ChangeSort.ALWAYS
        # Scenarios in which the other side had the object, and always with the member.
        shows = (
            (missing[1] & parent_scenarios[0]) if optional else (missing[0] & parent_scenarios[1])
        )
        left, right = ("always there", "sometimes absent")[:: 1 if optional else -1]
        if shows:
            # The message that is cited shows the member: cite a trace that lacks it.
            lacking = min(shows)
            places = (
                (sides[0], traces[1].trace_of(lacking))
                if optional
                else (traces[0].trace_of(lacking), sides[1])
            )
            chance = _depends_on_moment(path, shows, shared - shows)
            yield _MemberChange(sort, message, path, left, right, *places, shows, lacking, chance)
    for sort, more, less in ((ChangeSort.WORD_NEW, now, was), (ChangeSort.WORD_GONE, was, now)):
        for name in sorted(more.words.keys() - less.words.keys()):
            shows = more.words[name] & shared
            if shows and not path.endswith(">.type"):
                left, right = (name, _ABSENT)[:: 1 if sort is ChangeSort.WORD_GONE else -1]
                yield _MemberChange(sort, message, path, left, right, *sides, shows)


def _is_element(path: str) -> bool:
    """Return whether a path is that of the elements of an array or map, which may be empty."""
    name = path.rpartition(".")[2]
    return name.endswith("[]") or name.startswith("*")


def _depends_on_moment(path: str, differing: Ids, agreeing: Ids) -> bool:
    """Return whether an array may have had other elements in the few scenarios that differ."""
    return "[]" in path and len(differing) < MIN_DISAGREEING_SCENARIOS and bool(agreeing)


def _type_words(member: _Member) -> str:
    return _OR.join(sorted(member.types))


def _contexts_without(member: _Member, around: Ids) -> Ids:
    """Return the scenarios of `around` in which a parent object lacked this member."""
    return (around - member.scenarios) | (member.sometimes & around)


def _path_key(path: str) -> str:
    """Return the shared part of a path, as `turn.status` of `result.turns[].status`."""
    parts = [part.replace("[]", "") for part in path.split(".")[-2:]]
    return ".".join(re.sub(r"s(?=$|<)", "", part) for part in parts)


def _group(changes: list[_MemberChange]) -> list[_MemberChange]:
    """Return the changes, those of a member in several messages merged into the most frequent.

    New members of one object are one change, and so are many notifications of one family.
    """
    groups: dict[tuple[str, ...], list[_MemberChange]] = defaultdict(list)
    for change in changes:
        groups[_group_of(change)].append(change)
    merged: list[_MemberChange] = []
    for group in groups.values():
        if not group[0].path and len(group) >= MIN_FAMILY_MESSAGES:
            merged.append(_merge_family(group))
        elif not group[0].path:
            merged += group
        elif group[0].sort is ChangeSort.MEMBER_NEW:
            merged.append(_merge_new_members(group))
        else:
            merged.append(_most_frequent(group))
    return merged


def _group_of(change: _MemberChange) -> tuple[str, ...]:
    if not change.path:
        return change.sort, change.message.rpartition("/")[0]
    if change.sort is ChangeSort.MEMBER_NEW:
        return change.sort, _object_of(change)
    return change.sort, _path_key(change.path), change.before, change.after


def _object_of(change: _MemberChange) -> str:
    """Return the name of a member's object; the message for members of params or a result."""
    around = change.path.rpartition(".")[0]
    last = around.rpartition(".")[2].replace("[]", "")
    if "." not in around:
        return change.message
    return re.sub(r"s(?=$|<)", "", re.sub(r"<\w+>$", "<…>", last))


def _most_frequent(group: list[_MemberChange]) -> _MemberChange:
    best = max(group, key=lambda change: len(change.scenarios))
    other_messages = len({change.message for change in group} - {best.message})
    more = (
        f" (and in {other_messages} other message{'s' if other_messages > 1 else ''})"
        if other_messages
        else ""
    )
    return replace(
        best,
        message=best.message + more,
        by_chance=all(change.by_chance for change in group),
    )


def _merge_new_members(group: list[_MemberChange]) -> _MemberChange:
    """Merge the new members of one object, with the types of each."""
    types: dict[str, set[str]] = defaultdict(set)
    for change in group:
        types[change.path.rpartition(".")[2]] |= set(change.after.split(_OR))
    after = ", ".join(f"{name} ({_OR.join(sorted(types[name]))})" for name in sorted(types))
    best = max(group, key=lambda change: len(change.scenarios))
    place = "" if _object_of(best) == best.message else f"of {_object_of(best)}"
    return replace(_most_frequent(group), path=place, after=after)


def _merge_family(group: list[_MemberChange]) -> _MemberChange:
    """Merge many messages with a common prefix: their number, and one of them."""
    best = max(group, key=lambda change: len(change.scenarios))
    family = best.message.rpartition("/")[0]
    return replace(best, message=f"{family}/… ({len(group)} of them), such as {best.message}")


def _change(member_change: _MemberChange) -> tuple[Change, bool]:
    breaks, reason = CLIENT_EFFECTS[member_change.sort]
    place = (
        f"{member_change.message}: {member_change.path}"
        if member_change.path
        else member_change.message
    )
    if member_change.sort in (*_GONE.values(), *_NEW.values()):
        # The words for the change already name the form of the message.
        for form in _GONE:
            place = place.replace(f"{form} ", "")
    if member_change.lacking:
        reason += f"; absent for example in {member_change.lacking}"
    change = Change(
        Kind.BREAKING if breaks else Kind.ADDITIVE,
        f"{member_change.sort}: {place}",
        member_change.before,
        member_change.after,
        reason,
        breaks,
        shown_before=member_change.first,
        shown_after=member_change.second,
    )
    return change, member_change.by_chance
