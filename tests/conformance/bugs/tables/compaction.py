"""Bugs about compactions: what they leave, what they tell, what goes on after them."""

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


def summaries(change: Any) -> None:
    """Let `change(summarise, turn, old)` give the summary of what is old, and its tokens."""

    def summarise(original: Any) -> Any:
        async def changed(turn: Any, old: list[Message]) -> Any:
            return await change(original, turn, old)

        return changed

    swap(f"{COMPACTION}:_summarise", summarise)


def _has(item: Message, words: str) -> bool:
    return any(words in str(part.get("text")) for part in item.get("content") or [])


@bug(
    reds={
        "compaction/asked-for": "scenario.expectation: does not contain 'SUMMARY: a whale.'",
        "compaction/within-a-turn": "scenario.expectation: does not contain 'SUMMARY: it was",
    }
)
def the_summary_is_thrown_away() -> None:
    """After a compaction the model is told nothing of what was summarised."""

    async def nothing(summarise: Any, turn: Any, old: list[Message]) -> Any:
        _, tokens = await summarise(turn, old)
        return "", tokens

    summaries(nothing)


@bug(reds={"compaction/automatic": "scenario.timeout: contextCompaction"})
def a_history_may_grow_as_it_likes() -> None:
    """Nothing is compacted unless the client asks for it."""
    swap("reference_server.engine.usage:Meter.is_full", lambda _: property(lambda meter: False))


@bug(
    reds={
        "compaction/automatic-cut-off": "scenario.expectation: contains 'Half a summary'",
        "compaction/cut-off": "scenario.expectation: contains 'Half a summary'",
        "compaction/falls-silent": "scenario.expectation: contains 'Half a summary'",
    }
)
def half_a_summary_is_kept() -> None:
    """What was said of a summary that was cut off is told to the model."""

    async def kept(summarise: Any, turn: Any, old: list[Message]) -> Any:
        from reference_server.engine.sampling import assistant_message
        from reference_server.model.errors import ModelError

        try:
            return await summarise(turn, old)
        except ModelError:
            turn.remember([assistant_message(item.text) for _, item in turn._sampling._open])
            raise

    summaries(kept)


@bug(reds={"compaction/tries-again": "scenario.expectation: contains 'Half a summary'"})
def a_summary_begins_with_the_tries_before() -> None:
    """A summary that is asked for again has the half of it that came before, too."""
    said: list[str] = []

    def cut(original: Any) -> Any:
        def changed(sampling: Any) -> Any:
            said.extend(item.text for _, item in sampling._open if hasattr(item, "text"))
            return original(sampling)

        return changed

    async def joined(summarise: Any, turn: Any, old: list[Message]) -> Any:
        text, tokens = await summarise(turn, old)
        return " ".join([*said, text]), tokens

    swap("reference_server.engine.sampling:Sampling.cut", cut)
    summaries(joined)


@bug(
    reds={
        "compaction/fails": "scenario.expectation: does not contain 'A long story about a whale.'",
        "compaction/interrupted": "scenario.expectation: does not contain 'A long story about a",
    }
)
def a_compaction_begins_by_forgetting() -> None:
    """A compaction that comes to nothing has left nothing of the history."""

    async def forgetting(compact: Any, turn: Any) -> None:
        try:
            await compact(turn)
        except BaseException:
            turn.thread.history = []
            raise

    compactions(forgetting)


@bug(reds={"compaction/automatic-fails": "scenario.expectation: ended as completed"})
def a_compaction_that_fails_is_passed_over() -> None:
    """A turn whose automatic compaction fails goes on without it."""

    async def passed_over(compact: Any, turn: Any) -> None:
        from reference_server.model.errors import ModelError

        try:
            await compact(turn)
        except ModelError:
            turn.thread.context_tokens = 0

    compactions(passed_over)


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


@bug(reds={"compaction/twice": "scenario.expectation: does not contain 'FIRST SUMMARY'"})
def a_summary_is_not_summarised() -> None:
    """A second compaction leaves away what the first had summarised."""

    async def without(summarise: Any, turn: Any, old: list[Message]) -> Any:
        return await summarise(turn, [item for item in old if not _has(item, "Summary of the")])

    summaries(without)


@bug(reds={"threads/compact": "scenario.expectation: the thread is not ready"})
def a_compacted_thread_is_stuck() -> None:
    """No turn can begin after a compaction."""
    refuses_the_next_turn(lambda turn: not turn.takes_input)
