"""The common part of several plays of one scenario: the transcript that each shows again.

Where the order of messages differs, it is not kept.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

from harness.protocol.values import arr, obj, text
from harness.report.snapshot.message import VARIES, Message, Transcript, dumped, labels

_NUMBERED = re.compile(r"<([a-z]+) \d+>")

Kind = tuple[int, bool, str]
"""The client, whether it sent the message, and what the message is called."""
_MAX_LOOSE_KINDS = 6
# So many kinds of messages may have no place before no order is kept at all.


def common(plays: Sequence[Transcript]) -> Transcript:
    """Return the messages that all plays have, of which there is at least one."""
    first = plays[0]
    if all(_text(one) == _text(first) for one in plays):
        return first
    loose = None if first.free else _loose_kinds([_kinds_of(one) for one in plays])
    if loose is None:
        return _common_free([freed(one) for one in plays])
    split = [floated(one, loose) for one in plays]
    fixed = [[one for one in play.messages if not one.any_place] for play in split]
    messages = [_common_message(row) for row in zip(*fixed, strict=True)]
    groups = [_groups(one, placed=False) for one in split]
    return Transcript((*messages, *_common_groups(groups)), _common_end(plays))


def floating(transcript: Transcript) -> set[Kind]:
    """The kinds of messages that have no place."""
    kinds = zip(transcript.messages, _kinds_of(transcript), strict=True)
    return {kind for message, kind in kinds if message.any_place}


def floated(transcript: Transcript, kinds: Collection[Kind]) -> Transcript:
    """The transcript with these kinds of messages at its end, as they are without a place."""
    if transcript.free or not kinds:
        return transcript
    found = list(zip(transcript.messages, _kinds_of(transcript), strict=True))
    fixed = [message for message, kind in found if kind not in kinds]
    loose = [(kind, _placeless(message, kind)) for message, kind in found if kind in kinds]
    loose.sort(key=lambda item: (item[0], item[1].line))
    return replace(transcript, messages=(*fixed, *(message for _, message in loose)))


def _placeless(message: Message, kind: Kind) -> Message:
    unnumbered = replace(message, value=_unnumbered(message.value), any_place=True)
    return _with_its_request(unnumbered, kind[2])


def _loose_kinds(plays: Sequence[list[Kind]]) -> set[Kind] | None:
    """The fewest kinds without which all plays have one order, about; None where they are many."""
    loose: set[Kind] = set()
    while True:
        left = [[kind for kind in play if kind not in loose] for play in plays]
        moved: Counter[Kind] = Counter()
        for play in left[1:]:
            matcher = SequenceMatcher(None, left[0], play, autojunk=False)
            for tag, i1, i2, j1, j2 in matcher.get_opcodes():
                if tag != "equal":
                    moved.update({*left[0][i1:i2], *play[j1:j2]})
        if not moved:
            return loose
        # Of those that moved most often the rarest, since it takes the least order with it.
        often = Counter(left[0])
        kind = min(moved, key=lambda one: (-moved[one], often[one], one))
        client, sent, label = kind
        # An answer stands just behind its request, and goes where it goes.
        method = label.removeprefix("answer to ").removeprefix("refusal of ")
        loose |= {kind} | {
            (client, not sent, f"{of} {method}") for of in ("answer to", "refusal of")
        }
        if method != label:
            loose.add((client, not sent, method))
        if len(loose & {one for play in plays for one in play}) > _MAX_LOOSE_KINDS:
            return None


def _kinds_of(transcript: Transcript) -> list[Kind]:
    names = labels(transcript.messages)
    return [
        (one.client, one.sent, name) for one, name in zip(transcript.messages, names, strict=True)
    ]


def _text(transcript: Transcript) -> list[str]:
    """All of it; as values, true would equal 1."""
    lines = [f"{one.client} {one.line}" for one in transcript.messages]
    return [*lines, transcript.end, str(transcript.free)]


def freed(transcript: Transcript) -> Transcript:
    """The transcript without its order, and without the numbers that come from it."""
    if transcript.free:
        return transcript
    messages = [
        replace(one, value=_unnumbered(one.value), any_place=False) for one in transcript.messages
    ]
    return Transcript(_sorted(messages, transcript.messages), transcript.end, free=True)


def shows(kept: Transcript, played: Transcript) -> bool:
    """Return whether a play is as a kept transcript says, `<varies>` being equal to everything."""
    if kept.end not in (played.end, VARIES):
        return False
    if kept.free:
        return _groups_agree(_groups(kept), _groups(freed(played)))
    split = floated(played, floating(kept))
    fixed, given = ([one for one in play.messages if not one.any_place] for play in (kept, split))
    return (
        len(fixed) == len(given)
        and all(map(_agrees, fixed, given))
        and _groups_agree(_groups(kept, placed=False), _groups(split, placed=False))
    )


def _groups_agree(asked: dict[Kind, list[Message]], given: dict[Kind, list[Message]]) -> bool:
    optional = {kind for kind, ones in asked.items() if ones[0].any_number}
    return set(given) <= set(asked) and all(
        _group_agrees(asked[kind], given.get(kind, []))
        for kind in asked
        if kind in given or kind not in optional
    )


def same_value(kept: Any, played: Any) -> bool:
    """Return whether two values are the same, `<varies>` being equal to everything.

    1 is not true.
    """
    if isinstance(kept, str) and isinstance(played, str):
        # A name without a number is that of any of its kind.
        return kept in (VARIES, played) or kept == _plain(played)
    if isinstance(kept, str) and kept == VARIES:
        return True
    if isinstance(kept, dict) and isinstance(played, dict):
        one, other = obj(kept), obj(played)  # pyright: ignore[reportUnknownArgumentType]
        return one.keys() == other.keys() and all(
            same_value(value, other[name]) for name, value in one.items()
        )
    if isinstance(kept, list) and isinstance(played, list):
        ours, theirs = arr(kept), arr(played)  # pyright: ignore[reportUnknownArgumentType]
        return len(ours) == len(theirs) and all(map(same_value, ours, theirs))
    # By their text: 1 is not true, and not 1.0 either.
    return dumped(kept) == dumped(played)


def _agrees(kept: Message, played: Message) -> bool:
    return (
        (kept.sent, kept.client, kept.garbled) == (played.sent, played.client, played.garbled)
    ) and same_value(kept.value, played.value)


def _group_agrees(kept: list[Message], played: list[Message]) -> bool:
    """Return whether each message has a kept one of its own, those without `<varies>` first."""
    if kept[0].any_number:
        return all(any(_agrees(one, message) for one in kept) for message in played)
    left = sorted(kept, key=lambda one: VARIES in one.line)
    for message in played:
        found = next((one for one in left if _agrees(one, message)), None)
        if found is None:
            return False
        left.remove(found)
    return not left


def _common_free(plays: Sequence[Transcript]) -> Transcript:
    messages = _common_groups([_groups(one) for one in plays])
    return Transcript(tuple(messages), _common_end(plays), free=True)


def _common_groups(groups: Sequence[dict[Kind, list[Message]]]) -> list[Message]:
    """The messages of each kind, where they have no order."""
    messages: list[Message] = []
    for kind in dict.fromkeys(kind for group in groups for kind in group):
        found = [group.get(kind, []) for group in groups]
        if len({len(one) for one in found}) == 1:
            messages += _paired(found)
        else:
            every = [message for one in found for message in one]
            messages.append(replace(_common_message(every), any_number=True))
    return messages


def _paired(groups: Sequence[list[Message]]) -> list[Message]:
    """Messages of one kind: those that every play has, then the others in the order of their text.

    Pairing all in the order of their text would set those beside each other that are next to one
    that differs.
    """
    rest = [list(group) for group in groups]
    paired: list[Message] = []
    for message in groups[0]:
        if all(message in group for group in rest):
            paired.append(message)
            for group in rest:
                group.remove(message)
    return paired + [_common_message(row) for row in zip(*rest, strict=True)]


def _common_message(row: Sequence[Message]) -> Message:
    value = row[0].value
    for other in row[1:]:
        value = _common_value(value, other.value)
    return replace(row[0], value=value)


def _common_value(one: Any, other: Any) -> Any:
    if same_value(one, other):
        return one
    if isinstance(one, str) and isinstance(other, str) and _plain(one) == _plain(other):
        return _plain(one)
    if isinstance(one, dict) and isinstance(other, dict):
        ours, theirs = obj(one), obj(other)  # pyright: ignore[reportUnknownArgumentType]
        if ours.keys() == theirs.keys():
            return {name: _common_value(value, theirs[name]) for name, value in ours.items()}
    if isinstance(one, list) and isinstance(other, list):
        first, second = arr(one), arr(other)  # pyright: ignore[reportUnknownArgumentType]
        if len(first) == len(second):
            return list(map(_common_value, first, second))
    return VARIES


def _common_end(plays: Sequence[Transcript]) -> str:
    return plays[0].end if len({one.end for one in plays}) == 1 else VARIES


def _groups(transcript: Transcript, *, placed: bool = True) -> dict[Kind, list[Message]]:
    """The messages by kind; without `placed` only those that have no place."""
    found: dict[Kind, list[Message]] = defaultdict(list)
    for message, kind in zip(transcript.messages, _kinds_of(transcript), strict=True):
        if placed or message.any_place:
            found[kind].append(message)
    return found


def _sorted(messages: Sequence[Message], before: Sequence[Message]) -> tuple[Message, ...]:
    """In the order of clients, then of what they are called, then of their text.

    Requests have the name of their method in place of a number, and so have their answers.
    """
    found = list(zip(messages, labels(before), strict=True))
    found.sort(key=lambda item: (item[0].client, not item[0].sent, item[1], item[0].line))
    return tuple(_with_its_request(message, label) for message, label in found)


def _with_its_request(message: Message, label: str) -> Message:
    value = obj(message.value)
    of = re.fullmatch(r"(?:answer to|refusal of) (.*)", label)
    method = of[1] if of else text(value.get("method"))
    if "id" not in value or not method:
        return message
    return replace(message, value={**value, "id": f"<request {method}>"})


def _unnumbered(value: Any) -> Any:
    if isinstance(value, dict):
        members = obj(value)  # pyright: ignore[reportUnknownArgumentType]
        return {_plain(name): _unnumbered(one) for name, one in members.items()}
    if isinstance(value, list):
        return [_unnumbered(one) for one in arr(value)]  # pyright: ignore[reportUnknownArgumentType]
    return _plain(value) if isinstance(value, str) else value


def _plain(words: str) -> str:
    return _NUMBERED.sub(r"<\1>", words)
