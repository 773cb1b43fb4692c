"""The common part of several plays of one scenario: the transcript that each play repeats.

If the order of messages differs, it is not kept.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

from harness.protocol.values import arr, obj, text
from harness.report.snapshot.message import VARIES, Message, Transcript, dump_json, message_labels

_NUMBERED = re.compile(r"<([a-z]+) \d+>")

Kind = tuple[int, bool, str]
"""The client, whether it sent the message, and the label of the message."""
_MAX_LOOSE_KINDS = 6
# With more kinds of messages without a fixed place, no order is kept at all.


def common_transcript(plays: Sequence[Transcript]) -> Transcript:
    """Return the common messages of all plays; there must be at least one play."""
    first = plays[0]
    if all(_text_lines(play) == _text_lines(first) for play in plays):
        return first
    loose = None if first.free else _loose_kinds([_kinds_of(play) for play in plays])
    if loose is None:
        return _common_free([without_order(play) for play in plays])
    split = [move_placeless(play, loose) for play in plays]
    fixed = [[message for message in play.messages if not message.any_place] for play in split]
    messages = [_common_message(row) for row in zip(*fixed, strict=True)]
    groups = [_groups(play, placed=False) for play in split]
    return Transcript((*messages, *_common_groups(groups)), _common_end(plays))


def placeless_kinds(transcript: Transcript) -> set[Kind]:
    """Return the kinds of messages without a fixed place."""
    kinds = zip(transcript.messages, _kinds_of(transcript), strict=True)
    return {kind for message, kind in kinds if message.any_place}


def move_placeless(transcript: Transcript, kinds: Collection[Kind]) -> Transcript:
    """Return the transcript with these kinds of messages moved to its end, without a place."""
    if transcript.free or not kinds:
        return transcript
    messages = list(zip(transcript.messages, _kinds_of(transcript), strict=True))
    fixed = [message for message, kind in messages if kind not in kinds]
    loose = [(kind, _placeless(message, kind)) for message, kind in messages if kind in kinds]
    loose.sort(key=lambda item: (item[0], item[1].line))
    return replace(transcript, messages=(*fixed, *(message for _, message in loose)))


def _placeless(message: Message, kind: Kind) -> Message:
    unnumbered = replace(message, value=_strip_all_numbers(message.value), any_place=True)
    return _with_its_request(unnumbered, kind[2])


def _loose_kinds(plays: Sequence[list[Kind]]) -> set[Kind] | None:
    """Return kinds without which all plays have one order; None if over `_MAX_LOOSE_KINDS`."""
    loose: set[Kind] = set()
    while True:
        remaining = [[kind for kind in play if kind not in loose] for play in plays]
        moved: Counter[Kind] = Counter()
        for play in remaining[1:]:
            matcher = SequenceMatcher(None, remaining[0], play, autojunk=False)
            for tag, i1, i2, j1, j2 in matcher.get_opcodes():
                if tag != "equal":
                    moved.update({*remaining[0][i1:i2], *play[j1:j2]})
        if not moved:
            return loose
        # Of the kinds that moved most often, drop the rarest, which loses the least order.
        often = Counter(remaining[0])
        kind = min(moved, key=lambda item: (-moved[item], often[item], item))
        client, sent, label = kind
        # An answer stands just behind its request, and moves with it.
        method = label.removeprefix("answer to ").removeprefix("refusal of ")
        loose |= {kind} | {
            (client, not sent, f"{of} {method}") for of in ("answer to", "refusal of")
        }
        if method != label:
            loose.add((client, not sent, method))
        if len(loose & {kind for play in plays for kind in play}) > _MAX_LOOSE_KINDS:
            return None


def _kinds_of(transcript: Transcript) -> list[Kind]:
    names = message_labels(transcript.messages)
    return [
        (message.client, message.is_sent, name)
        for message, name in zip(transcript.messages, names, strict=True)
    ]


def _text_lines(transcript: Transcript) -> list[str]:
    """Return a transcript as text to compare, since as values true would equal 1."""
    lines = [f"{message.client} {message.line}" for message in transcript.messages]
    return [*lines, transcript.end, str(transcript.free)]


def without_order(transcript: Transcript) -> Transcript:
    """Return the transcript without its order, and without the numbers that come from it."""
    if transcript.free:
        return transcript
    messages = [
        replace(message, value=_strip_all_numbers(message.value), any_place=False)
        for message in transcript.messages
    ]
    return Transcript(_sort(messages, transcript.messages), transcript.end, free=True)


def matches(expected: Transcript, played: Transcript) -> bool:
    """Return whether a play matches an expected transcript; `<varies>` matches everything."""
    if expected.end not in (played.end, VARIES):
        return False
    if expected.free:
        return _groups_match(_groups(expected), _groups(without_order(played)))
    split = move_placeless(played, placeless_kinds(expected))
    fixed, played_fixed = (
        [message for message in play.messages if not message.any_place]
        for play in (expected, split)
    )
    return (
        len(fixed) == len(played_fixed)
        and all(map(_messages_match, fixed, played_fixed))
        and _groups_match(_groups(expected, placed=False), _groups(split, placed=False))
    )


def _groups_match(expected: dict[Kind, list[Message]], played: dict[Kind, list[Message]]) -> bool:
    optional = {kind for kind, ones in expected.items() if ones[0].any_number}
    return set(played) <= set(expected) and all(
        _group_matches(expected[kind], played.get(kind, []))
        for kind in expected
        if kind in played or kind not in optional
    )


def same_value(expected: Any, played: Any) -> bool:
    """Return whether two values are the same; `<varies>` equals everything, and 1 is not true."""
    if isinstance(expected, str) and isinstance(played, str):
        # A name without a number matches any of its kind.
        return expected in (VARIES, played) or expected == _strip_numbers(played)
    if isinstance(expected, str) and expected == VARIES:
        return True
    if isinstance(expected, dict) and isinstance(played, dict):
        expected_members, played_members = obj(expected), obj(played)  # pyright: ignore[reportUnknownArgumentType]
        return expected_members.keys() == played_members.keys() and all(
            same_value(value, played_members[name]) for name, value in expected_members.items()
        )
    if isinstance(expected, list) and isinstance(played, list):
        expected_elements, played_elements = arr(expected), arr(played)  # pyright: ignore[reportUnknownArgumentType]
        return len(expected_elements) == len(played_elements) and all(
            map(same_value, expected_elements, played_elements)
        )
    # By their text: 1 is not true, and not 1.0 either.
    return dump_json(expected) == dump_json(played)


def _messages_match(expected: Message, played: Message) -> bool:
    return (
        (expected.is_sent, expected.client, expected.is_garbled)
        == (played.is_sent, played.client, played.is_garbled)
    ) and same_value(expected.value, played.value)


def _group_matches(expected: list[Message], played: list[Message]) -> bool:
    """Return whether each message matches an expected one of its own, exact ones first."""
    if expected[0].any_number:
        return all(any(_messages_match(kept, message) for kept in expected) for message in played)
    unmatched = sorted(expected, key=lambda message: VARIES in message.line)
    for message in played:
        match = next((kept for kept in unmatched if _messages_match(kept, message)), None)
        if match is None:
            return False
        unmatched.remove(match)
    return not unmatched


def _common_free(plays: Sequence[Transcript]) -> Transcript:
    messages = _common_groups([_groups(play) for play in plays])
    return Transcript(tuple(messages), _common_end(plays), free=True)


def _common_groups(groups: Sequence[dict[Kind, list[Message]]]) -> list[Message]:
    """Return the common messages of each kind in several plays, without an order."""
    messages: list[Message] = []
    for kind in dict.fromkeys(kind for group in groups for kind in group):
        messages_by_play = [group.get(kind, []) for group in groups]
        if len({len(messages_of_play) for messages_of_play in messages_by_play}) == 1:
            messages += _pair(messages_by_play)
        else:
            all_messages = [
                message for messages_of_play in messages_by_play for message in messages_of_play
            ]
            messages.append(replace(_common_message(all_messages), any_number=True))
    return messages


def _pair(groups: Sequence[list[Message]]) -> list[Message]:
    """Return the common messages of one kind: those in every play, then the others, paired by text.

    Pairing all of them by their text would mispair the neighbours of one that differs.
    """
    remaining = [list(group) for group in groups]
    paired: list[Message] = []
    for message in groups[0]:
        if all(message in group for group in remaining):
            paired.append(message)
            for group in remaining:
                group.remove(message)
    return paired + [_common_message(row) for row in zip(*remaining, strict=True)]


def _common_message(row: Sequence[Message]) -> Message:
    value = row[0].value
    for message in row[1:]:
        value = _common_value(value, message.value)
    return replace(row[0], value=value)


def _common_value(first: Any, second: Any) -> Any:
    if same_value(first, second):
        return first
    if (
        isinstance(first, str)
        and isinstance(second, str)
        and _strip_numbers(first) == _strip_numbers(second)
    ):
        return _strip_numbers(first)
    if isinstance(first, dict) and isinstance(second, dict):
        first_members, second_members = obj(first), obj(second)  # pyright: ignore[reportUnknownArgumentType]
        if first_members.keys() == second_members.keys():
            return {
                name: _common_value(value, second_members[name])
                for name, value in first_members.items()
            }
    if isinstance(first, list) and isinstance(second, list):
        first_elements, second_elements = arr(first), arr(second)  # pyright: ignore[reportUnknownArgumentType]
        if len(first_elements) == len(second_elements):
            return list(map(_common_value, first_elements, second_elements))
    return VARIES


def _common_end(plays: Sequence[Transcript]) -> str:
    return plays[0].end if len({play.end for play in plays}) == 1 else VARIES


def _groups(transcript: Transcript, *, placed: bool = True) -> dict[Kind, list[Message]]:
    """Return the messages by kind; without `placed` only those without a place."""
    messages_by_kind: dict[Kind, list[Message]] = defaultdict(list)
    for message, kind in zip(transcript.messages, _kinds_of(transcript), strict=True):
        if placed or message.any_place:
            messages_by_kind[kind].append(message)
    return messages_by_kind


def _sort(messages: Sequence[Message], before: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages sorted by client, direction, label and text.

    Requests have the name of their method in place of a number, and so have their answers.
    """
    labelled = list(zip(messages, message_labels(before), strict=True))
    labelled.sort(key=lambda item: (item[0].client, not item[0].is_sent, item[1], item[0].line))
    return tuple(_with_its_request(message, label) for message, label in labelled)


def _with_its_request(message: Message, label: str) -> Message:
    value = obj(message.value)
    of = re.fullmatch(r"(?:answer to|refusal of) (.*)", label)
    method = of[1] if of else text(value.get("method"))
    if "id" not in value or not method:
        return message
    return replace(message, value={**value, "id": f"<request {method}>"})


def _strip_all_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        members = obj(value)  # pyright: ignore[reportUnknownArgumentType]
        return {
            _strip_numbers(name): _strip_all_numbers(member) for name, member in members.items()
        }
    if isinstance(value, list):
        return [_strip_all_numbers(element) for element in arr(value)]  # pyright: ignore[reportUnknownArgumentType]
    return _strip_numbers(value) if isinstance(value, str) else value


def _strip_numbers(words: str) -> str:
    return _NUMBERED.sub(r"<\1>", words)
