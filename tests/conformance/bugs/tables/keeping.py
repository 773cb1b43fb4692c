"""Bugs about features that the reference server lacks: stored threads, clients, tools.

They are planted in fixtures/servers/keeper.py.
"""

from __future__ import annotations

import subprocess
from importlib import import_module
from typing import Any

from tests.conformance.bugs.planting import Message, instead, swap
from tests.conformance.bugs.registry import bug

KEEPER = "keeper:Keeper"


@bug(
    reds={"language/disconnect-in-approval": "scenario.expectation: made.txt exists"},
    server="keeper",
)
def whoever_leaves_has_said_yes() -> None:
    """A command whose approval is open runs when the client disconnects."""

    def left(original: Any) -> Any:
        def changed(keeper: Any, client: Any) -> None:
            for question in keeper.asked.values():
                asked = question["params"]
                subprocess.run(asked["command"], cwd=asked["cwd"], check=False)
            original(keeper, client)

        return changed

    swap(f"{KEEPER}.left", left)


@bug(
    reds={"language/disconnect-mid-turn": "scenario.timeout: the end of turn u"},
    server="keeper",
)
def a_turn_is_lost_with_the_client_that_began_it() -> None:
    """A turn ends without a report when a client of its thread disconnects."""

    def left(original: Any) -> Any:
        def changed(keeper: Any, client: Any) -> None:
            original(keeper, client)
            for thread in keeper.threads.values():
                thread.turn = None

        return changed

    swap(f"{KEEPER}.left", left)


@bug(reds={"language/two-clients": "thread.started-announced"}, server="keeper")
def each_client_counts_for_itself() -> None:
    """The first thread of a client has the id that the first of every other has."""

    def start(original: Any) -> Any:
        def changed(keeper: Any, params: Message, reply: Any) -> None:
            minimal: Any = import_module("minimal")
            counted = vars(keeper.caller).setdefault("counted", iter(range(900, 1000)))
            minimal.NUMBERS, numbers = counted, minimal.NUMBERS
            original(keeper, params, reply)
            minimal.NUMBERS = numbers

        return changed

    swap(f"{KEEPER}.thread_start", start)


@bug(
    reds={"threads/archive": "scenario.expectation: thread/list was answered by a result"},
    server="keeper",
)
def what_is_archived_is_listed_as_before() -> None:
    """A thread in the archive is listed among those that are not."""

    def listed(original: Any) -> Any:
        def changed(keeper: Any, thread: Any, params: Message) -> bool:
            return original(keeper, thread, {**params, "archived": thread.archived})

        return changed

    swap(f"{KEEPER}.is_listed", listed)


@bug(reds={"threads/fork": "scenario.expectation: call 3 is not in the script"}, server="keeper")
def a_fork_and_its_thread_share_their_history() -> None:
    """A message in a fork is sent to the model in the original thread, too."""
    instead(f"{KEEPER}.copied", lambda keeper, thread: (thread.turns, thread.history))


@bug(reds={"threads/name": "scenario.expectation: thread/name/set was answered"}, server="keeper")
def a_thread_of_which_something_is_kept_has_its_name_for_good() -> None:
    """A thread that has had a turn cannot be named."""

    def name(original: Any) -> Any:
        def refuse(keeper: Any, params: Message, reply: Any) -> None:
            if keeper.threads[params["threadId"]].turns:
                raise ValueError("the thread has begun")
            original(keeper, params, reply)

        return refuse

    swap(f"{KEEPER}.thread_name_set", name)


@bug(
    reds={
        "threads/resume": "scenario.expectation: does not contain 'One.'",
        "threads/unsubscribe-resume": "scenario.expectation: does not contain 'Farewell.'",
    },
    server="keeper",
)
def a_resumed_thread_begins_anew() -> None:
    """The model does not get the history from before the restart."""

    def resume(original: Any) -> Any:
        def changed(keeper: Any, params: Message, reply: Any) -> None:
            keeper.threads[params["threadId"]].history = []
            original(keeper, params, reply)

        return changed

    swap(f"{KEEPER}.thread_resume", resume)


@bug(reds={"threads/rollback": "scenario.expectation: contains 'Two.'"}, server="keeper")
def a_rollback_is_only_shown() -> None:
    """A dropped turn is hidden from the client, but still sent to the model."""
    instead(f"{KEEPER}.forget_last", lambda keeper, thread: None)


@bug(
    reds={"threads/unsubscribe": "scenario.expectation: thread/unsubscribe was answered by an"},
    server="keeper",
)
def a_thread_that_was_left_cannot_be_left() -> None:
    """A client that leaves a thread twice gets an error."""

    def leave(original: Any) -> Any:
        def changed(keeper: Any, params: Message, reply: Any) -> None:
            if keeper.caller not in keeper.heard_by.get(params["threadId"], []):
                raise ValueError("you are not subscribed")
            original(keeper, params, reply)

        return changed

    swap(f"{KEEPER}.thread_unsubscribe", leave)


@bug(reds={"threads/unsubscribe-one": "loading.kept-for-others"}, server="keeper")
def whoever_leaves_closes_the_thread() -> None:
    """A thread is reported as closed whenever a client unsubscribes."""

    def leave(original: Any) -> Any:
        def changed(keeper: Any, params: Message, reply: Any) -> None:
            original(keeper, params, reply)
            keeper.notify(keeper.threads[params["threadId"]], "thread/closed")

        return changed

    swap(f"{KEEPER}.thread_unsubscribe", leave)


@bug(
    reds={
        "tools/dynamic-tool": "scenario.expectation: does not contain 'vermilion'",
        "tools/mcp-call": "scenario.expectation: does not contain 'the sum is 5'",
        "tools/mcp-call-fails": "scenario.expectation: does not contain 'it always fails'",
    },
    server="keeper",
)
def the_model_is_told_that_a_tool_is_done() -> None:
    """The model gets no result of a tool that is not the server's."""

    def answered(original: Any) -> Any:
        return lambda keeper, call, output: original(keeper, call, "It is done.")

    swap(f"{KEEPER}.answered", answered)


@bug(reds={"threads/attach-by-another": "turn.completes"}, server="keeper")
def who_comes_in_hears_no_end() -> None:
    """The end of a turn is reported only to the first client of its thread."""

    def pass_on(original: Any) -> Any:
        def changed(keeper: Any, clients: list[Any], message: Message) -> None:
            ends = message.get("method") == "turn/completed"
            original(keeper, clients[:1] if ends else clients, message)

        return changed

    swap(f"{KEEPER}.pass_on", pass_on)
