"""Bugs about compactions: the history after them, their reports, and the next turns."""

from __future__ import annotations

from typing import Any

from tests.conformance.bugs.planting import Message, replied, swap
from tests.conformance.bugs.registry import bug
from tests.conformance.bugs.tables.interrupts import refuses_the_next_turn
from tests.conformance.bugs.tables.turns import TURN

COMPACTION = "reference_server.engine.compaction"
# By the turn that runs out of room, and by thread/compact/start.
ASKED_BY = (f"{TURN}:compact", "reference_server.handlers.compaction:compact")


def compactions(change: Any) -> None:
    """Let `change(compact, turn)` do the work of a compaction."""

    def compact(original: Any) -> Any:
        async def changed(turn: Any) -> None:
            await change(original, turn)

        return changed

    for place in ASKED_BY:
        swap(place, compact)


@bug(
    reds={
        "compaction/asked-for": "scenario.expectation: call 3: its input",
        "compaction/tries-again": "scenario.expectation: call 4: its input",
        "compaction/within-a-turn": "scenario.expectation: call 3: its input",
    }
)
def a_compaction_leaves_nothing() -> None:
    """After a compaction the model gets neither the history nor its summary."""

    async def forgetting(compact: Any, turn: Any) -> None:
        await compact(turn)
        turn.thread.history = []

    compactions(forgetting)


@bug(reds={"compaction/automatic": "scenario.timeout: contextCompaction"})
def a_history_may_grow_as_it_likes() -> None:
    """A history is compacted only on request of the client."""
    swap("reference_server.engine.usage:Meter.is_full", lambda _: property(lambda meter: False))


@bug(reds={"compaction/automatic-cut-off": "scenario.expectation: contains 'Half a summary'"})
def half_a_summary_is_kept() -> None:
    """The first half of a summary that was cut off is sent to the model."""

    def summarise(original: Any) -> Any:
        async def kept(turn: Any, old: list[Message]) -> Any:
            from reference_server.model.errors import ModelError
            from reference_server.words import assistant_message

            try:
                return await original(turn, old)
            except ModelError:
                turn.remember([assistant_message(item.text) for _, item in turn._sampling._open])
                raise

        return kept

    swap(f"{COMPACTION}:_summarise", summarise)


@bug(
    reds={
        "compaction/cut-off": "scenario.expectation: call 3: its input",
        "compaction/fails": "scenario.expectation: call 3: its input",
        "compaction/falls-silent": "scenario.expectation: call 3: its input",
        "compaction/interrupted": "scenario.expectation: call 3: its input",
    }
)
def a_compaction_begins_by_forgetting() -> None:
    """A failed compaction deletes the history."""

    async def forgetting(compact: Any, turn: Any) -> None:
        try:
            await compact(turn)
        except BaseException:
            turn.thread.history = []
            raise

    compactions(forgetting)


@bug(reds={"compaction/within-a-turn-fails": "scenario.expectation: does not contain 'found'"})
def a_compaction_that_fails_forgets_the_calls() -> None:
    """A turn that cannot be compacted leaves no trace of its commands in the conversation."""

    async def forgetting(compact: Any, turn: Any) -> None:
        try:
            await compact(turn)
        except Exception:
            history = turn.thread.history
            history[:] = [one for one in history if "call" not in str(one.get("type"))]
            raise

    compactions(forgetting)


@bug(reds={"compaction/stored": "read.stored-equals-live"})
def what_is_compacted_is_gone_from_the_store() -> None:
    """A thread/read has no turns from before the last compaction."""

    def cut(result: Message) -> None:
        turns = result["thread"]["turns"]
        kinds = [{item["type"] for item in turn["items"]} for turn in turns]
        while any("contextCompaction" in one for one in kinds[1:]):
            del turns[0], kinds[0]

    replied("thread/read", cut)


@bug(reds={"compaction/twice": "scenario.expectation: thread/compact/start was answered by an"})
def a_thread_is_compacted_once() -> None:
    """A second compaction of a thread is refused."""

    def prepare(original: Any) -> Any:
        async def once(engine: Any, thread: Any, work: Any) -> Any:
            from reference_server.refusal import invalid_request

            if getattr(thread, "is_compacted", False):
                raise invalid_request("the thread is compacted already")
            thread.is_compacted = True
            return await original(engine, thread, work)

        return once

    swap("reference_server.engine.start:Engine.prepare_work", prepare)


@bug(reds={"threads/compact": "scenario.expectation: the thread is not ready"})
def a_compacted_thread_is_stuck() -> None:
    """No turn can begin after a compaction."""
    refuses_the_next_turn(lambda turn: not turn.takes_input)
