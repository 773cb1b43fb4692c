"""Transcripts of scenarios: the order in which a server writes messages, without ids and values.

A step is the name of a message with the type of its item. Requests of the client are left out: when
they are sent depends on the client. So is the handshake, which several scenarios can share.
Repetitions of a delta count once, since servers cut texts as they like. Two steps that one server
wrote in both orders, in two plays of one scenario, have no order.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Final, TypeAlias

from harness.protocol.values import obj, text
from harness.report.drift.messages import Message

Steps: TypeAlias = tuple[str, ...]
Transcript: TypeAlias = dict[str, Steps]
"""The steps of each connection, numbered in the order of their first message."""
Pair: TypeAlias = frozenset[str]

_REPEATED: Final = ("*elta", "*/progress")
MAX_DISTANCE: Final = 8
"""Steps that are further apart have the order of the steps between them."""
MAX_SEARCH: Final = 40
"""Steps among which the next one is looked for."""
_HANDSHAKE: Final = ("initialize", "remoteControl/status/changed", "configWarning")


def transcript_of(messages: Iterable[Message], ignored: Collection[str] = ()) -> Transcript:
    """Return the transcript of one scenario without the methods that match an ignored pattern."""
    connections: dict[str, list[str]] = {}
    for message in messages:
        left_out = any(fnmatchcase(message.method, pattern) for pattern in ignored)
        if left_out or not message.from_server or message.method in _HANDSHAKE:
            continue
        steps = connections.setdefault(message.connection, [])
        step = _step(message)
        is_repeated = any(fnmatchcase(message.method, pattern) for pattern in _REPEATED)
        if not (is_repeated and steps and steps[-1] == step):
            steps.append(step)
    return {
        f"client {number}": tuple(steps) for number, steps in enumerate(connections.values(), 1)
    }


def _step(message: Message) -> str:
    item_type = text(obj(obj(message.body).get("item")).get("type"))
    return f"{message.name} {item_type}".rstrip()


def unordered_pairs(plays: Sequence[Transcript]) -> set[Pair]:
    """Return the steps whose order differs between plays of one scenario by one server."""
    pairs: set[Pair] = set()
    for first, second in pairwise(plays):
        for connection in first.keys() & second.keys():
            pairs |= _exchanged_pairs(first[connection], second[connection])
    return pairs


def _exchanged_pairs(first: Steps, second: Steps) -> set[Pair]:
    """Return the near pairs of steps in `first` that `second` has in the other order.

    Plays that differ in more than the order say nothing of it.
    """
    if Counter(first) != Counter(second):
        return set()
    places = {step: place for place, step in enumerate(_with_counts(second))}
    steps = _with_counts(first)
    return {
        frozenset((left[0], right[0]))
        for place, left in enumerate(steps)
        for right in steps[place + 1 : place + 1 + MAX_DISTANCE]
        if places[left] > places[right] and not _of_one_item(left[0], right[0])
    }


def _of_one_item(left: str, right: str) -> bool:
    """Return whether two steps are equal, or of the same type of item: one can follow the other."""
    if left == right:
        return True
    return left.startswith("item/") and left.split(" ")[1:] == right.split(" ")[1:]


def _with_counts(steps: Steps) -> list[tuple[str, int]]:
    """Return each step with how often it came before."""
    seen: Counter[str] = Counter()
    numbered: list[tuple[str, int]] = []
    for step in steps:
        numbered.append((step, seen[step]))
        seen[step] += 1
    return numbered


def normal_form(transcript: Transcript, unordered: Collection[Pair]) -> Transcript:
    """Return the transcript with steps that have no order in a fixed one."""
    partners: dict[str, set[str]] = {}
    for pair in unordered:
        left, right = sorted(pair)
        partners.setdefault(left, set()).add(right)
        partners.setdefault(right, set()).add(left)
    return {name: _sorted_steps(steps, partners) for name, steps in transcript.items()}


def _sorted_steps(steps: Steps, partners: dict[str, set[str]]) -> Steps:
    """Return the least of all sequences that differ only in pairs without an order."""
    rest, result = list(steps), list[str]()
    while rest:
        best = 0
        ahead = {rest[0]}
        for place, step in enumerate(rest[1 : MAX_SEARCH + 1], 1):
            if ahead <= partners.get(step, set()) and step < rest[best]:
                best = place
            ahead.add(step)
        result.append(rest.pop(best))
    return tuple(result)


def differences(release: Transcript, double: Transcript) -> list[str]:
    """Return the differences of the double, each in words with the step before it."""
    words: list[str] = []
    for name in sorted(release.keys() | double.keys()):
        first, second = release.get(name, ()), double.get(name, ())
        matcher = SequenceMatcher(None, first, second, autojunk=False)
        for kind, start, end, start_double, end_double in matcher.get_opcodes():
            if kind == "equal":
                continue
            before = first[start - 1] if start else "the beginning"
            words += [f"lacks {step} after {before}" for step in first[start:end]]
            words += [f"adds {step} after {before}" for step in second[start_double:end_double]]
    return words
