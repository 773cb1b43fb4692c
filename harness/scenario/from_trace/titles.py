"""Titles of scenarios made from traces."""

from collections.abc import Iterator
from typing import Final

from harness.protocol.values import dig
from harness.scenario.from_trace.story import texts_of
from harness.trace.foreign import TARGET
from harness.trace.frame import Direction, Kind
from harness.trace.marks import ProgramStarted
from harness.trace.surfaces import EXEC
from harness.trace.trace import Trace

_MAX_TITLE_CHARACTERS: Final = 60
_HANDSHAKE_METHODS: Final = ("initialize", "initialized")


def title_of(trace: Trace) -> str:
    """Return a title with the scenario id of a run, or the first user text of a recording."""
    if trace.header.target != TARGET and trace.header.scenario:
        name = trace.header.scenario.removesuffix(f"@{EXEC}")
        return f"What was played as {name} happens again"
    first_text = next(filter(None, _user_texts(trace)), "")
    if first_text:
        return f"The session that began with '{_shorten(first_text)}' happens again"
    methods = dict.fromkeys(
        frame.method
        for frame in trace.frames
        if frame.direction is Direction.TO_TARGET
        and frame.kind is Kind.REQUEST
        and frame.method not in _HANDSHAKE_METHODS
    )
    method_names = _shorten(", ".join(methods))
    return (
        f"A client that asks for {method_names} is answered again"
        if method_names
        else "What was recorded happens again"
    )


def _user_texts(trace: Trace) -> Iterator[str]:
    """Yield the user's texts in order, on one line each."""
    for mark in trace.marks_of(ProgramStarted):
        last_word = mark.body.argv[-1]
        if " " in last_word:  # A prompt; others come by standard input.
            yield last_word
    for frame in trace.frames:
        if frame.direction is not Direction.TO_TARGET:
            continue
        if frame.kind is Kind.INPUT:
            yield " ".join(frame.raw.decode("utf-8", "replace").split())
        elif frame.method == "turn/start":
            yield " ".join(" ".join(texts_of(dig(frame.params, "input"))).split())


def _shorten(words: str) -> str:
    """Return words cut to the length of a title, between two words if possible."""
    plain = "".join(char if char.isprintable() else " " for char in words)
    if len(plain) <= _MAX_TITLE_CHARACTERS:
        return plain
    cut = plain[:_MAX_TITLE_CHARACTERS]
    return f"{cut.rpartition(' ')[0] or cut} …"
