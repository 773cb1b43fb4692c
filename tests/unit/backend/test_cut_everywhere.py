"""The scenarios of failures cut the model's stream around every kind of event that it can have.

The kinds come from the encoder itself, so that a new event asks for a scenario. All that a server
sees of a cut is what was sent before it: a cut right after one event is a cut before each event
that can follow it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from harness.model.gates import Gates
from harness.model.parts import Disconnect, UsageBody
from harness.model.performance import Performance, StreamCut
from harness.model.script import ModelStep
from harness.model.tool_parts import WebSearch, WebSearchBody
from harness.model.tools import BUILT_IN_ROWS, ChosenTool, OfferedTool
from harness.model.wire.responses import ResponsesEncoder, ResponsesStream
from harness.scenario.bundled import bundled_folder
from harness.scenario.loader import find_scenarios, load

ASKED: dict[str, list[tuple[Any, ...]]] = {
    "start": [(UsageBody(),)],
    "start_message": [()],
    "message_delta": [("a",)],
    "end_message": [("a", None)],
    "start_reasoning": [()],
    "summary_part": [(0,)],
    "summary_delta": [(0, "a")],
    "raw_delta": [(0, "a")],
    "end_reasoning": [(["a"], ["b"])],
    "tool_call": [
        (ChosenTool(OfferedTool("one"), {}),),
        (ChosenTool(OfferedTool("two", takes_free_text=True), {}),),
    ],
    "provider_item": [(WebSearch(web_search=WebSearchBody(query="a")),)],
    "fail": [("code", "said")],
    "complete": [(UsageBody(),)],
}
"""Every method of a stream that makes events, with arguments for each kind of them."""

BEGIN = "(the begin of the stream)"
OFFERED: list[dict[str, Any]] = [
    {"type": "custom" if row.name == "apply_patch" else "function", "name": row.name}
    for row in BUILT_IN_ROWS
]


def kind_of(chunk: bytes) -> str | None:
    """The event's type, and that of the item that it begins or ends; None for what is no event."""
    _, _, data = chunk.partition(b"\ndata: ")
    try:
        event = json.loads(data)
    except ValueError:
        return None
    return " ".join(filter(None, [event["type"], event.get("item", {}).get("type")]))


def kinds_of_the_encoder() -> set[str]:
    found: set[str] = set()
    for name, calls in ASKED.items():
        for arguments in calls:
            made: Any = getattr(ResponsesStream(1), name)(*arguments)
            chunks = made[1] if isinstance(made, tuple) else made
            for chunk in [chunks] if isinstance(chunks, bytes) else chunks:
                kind = kind_of(chunk)
                assert kind is not None
                found.add(kind)
    return found


def steps() -> Iterator[ModelStep]:
    for root, path in find_scenarios([bundled_folder() / "failures"]):
        for script in load(path, root=root).scenario.scripts().values():
            yield from script


def sent(step: ModelStep) -> tuple[list[str | None], bool]:
    """Return the kinds of events that a step sends, and whether the script cuts the stream."""
    gates, heard, encoder = Gates(), list[str | None](), ResponsesEncoder()
    gates.open_all()
    body = {"tools": OFFERED}
    performance = Performance(encoder.stream(1, body), encoder, body, gates, BUILT_IN_ROWS)

    async def play() -> bool:
        try:
            async for chunk in performance.play(step):
                heard.append(kind_of(chunk))
        except StreamCut:
            return True
        return False

    cut = anyio.run(play)
    assert performance.missing_tools == []
    return heard, cut


def cuts(step: ModelStep) -> bool:
    return any(isinstance(entry, Disconnect) for _, entry in step.entries())


def uncut(step: ModelStep) -> ModelStep:
    """The same step without its cuts between the parts."""
    parts = [part for part in step.reply or [] if not isinstance(part, Disconnect)]
    return step.model_copy(update={"reply": parts})


@pytest.fixture(scope="module")
def last_events() -> set[str]:
    """Return the last events of the streams that are cut."""
    found: set[str] = set()
    for step in steps():
        if cuts(step) or (step.fail is not None and step.fail.disconnect):
            heard, cut = sent(step)
            assert cut
            found.add(([BEGIN, *heard][-1]) or "(half an event)")
    return found


@pytest.fixture(scope="module")
def followers() -> set[tuple[str, str]]:
    """Return the pairs of events that follow each other in the streams of these scenarios."""
    found: set[tuple[str, str]] = set()
    for step in steps():
        if step.fail is None and cuts(step):
            heard, _ = sent(uncut(step))
        elif step.fail is not None and step.fail.status is None:
            heard, _ = sent(step)
        else:
            continue
        whole = [kind for kind in heard if kind is not None]
        found |= set(zip([BEGIN, *whole], whole, strict=False))
    return found


def test_every_method_that_makes_events_is_asked() -> None:
    methods = inspect.getmembers(ResponsesStream, inspect.isfunction)
    assert {name for name, _ in methods if not name.startswith("_")} == set(ASKED)


def test_streams_are_cut_before_all_events_and_after_every_kind(last_events: set[str]) -> None:
    assert {BEGIN} | kinds_of_the_encoder() <= last_events


def test_streams_are_cut_before_every_kind_of_event(
    last_events: set[str], followers: set[tuple[str, str]]
) -> None:
    before = {kind for last, kind in followers if last in last_events}
    assert kinds_of_the_encoder() <= before


def test_kinds_are_told_apart_by_event_and_item() -> None:
    kinds = kinds_of_the_encoder()
    assert "response.custom_tool_call_input.delta" in kinds
    assert "response.output_item.done web_search_call" in kinds
    assert len([kind for kind in kinds if kind.startswith("response.output_item.added ")]) == 5
