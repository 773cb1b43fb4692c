"""Bugs about the lasting work of a turn: declines, questions, outputs, diffs, usage."""

from __future__ import annotations

import asyncio
import atexit
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conformance.bugs.moments import (
    PATCH,
    SHELL,
    model_is_asked_again,
    turn_begins,
    turn_ends,
)
from tests.conformance.bugs.planting import Message, received, replied, sent, swap, untold
from tests.conformance.bugs.registry import bug

DECLINED = "lasting/declined"
MADE = "scenario.expectation: made.txt exists"
Act = Callable[[], object]


def declined(column: str, red: str = MADE) -> dict[str, str]:
    """Return the findings that show ignored declines, by scenario, in one table column."""
    return {f"{DECLINED}/{row}/{column}": red for row in ("command", "file-change")}


def putting_off(acts: list[Act]) -> None:
    """Append each declined action to `acts`, to be carried out later."""

    def denied(original: Any) -> Any:
        def changed(run: Any, decision: Any) -> Any:
            wanted = run._call
            acts.append(lambda: subprocess.run(wanted.argv, cwd=wanted.cwd, check=False))
            return original(run, decision)

        return changed

    def complete(original: Any) -> Any:
        async def changed(run: Any, status: str) -> None:
            if status == "declined":
                acts.append(lambda: _write(run))
            await original(run, status)

        return changed

    swap(f"{SHELL}._decline", denied)
    swap(f"{PATCH}._complete", complete)


def _write(run: Any) -> None:
    """Add the diff of a declined change to its file."""
    cwd = Path(run._context.settings.cwd)
    for change in run._work.item.changes:
        with (cwd / change.path).open("a") as file:
            file.write(change.diff)


def do_all(acts: list[Act]) -> None:
    """Carry out the actions that were put off."""
    for act in acts:
        act()
    acts.clear()


@bug(reds=declined("same-turn"))
def an_accept_brings_what_was_declined_before() -> None:
    """An accept also carries out the actions that were declined before it."""
    acts: list[Act] = []
    putting_off(acts)

    def note(method: str, message: Message) -> Message:
        if method == "answer" and message.get("result", {}).get("decision") == "accept":
            do_all(acts)
        return message

    received(note)


@bug(reds=declined("next-turn"))
def a_decline_holds_for_its_turn_only() -> None:
    """A declined action is carried out when the next turn begins."""
    acts: list[Act] = []
    putting_off(acts)
    turn_begins(lambda _: do_all(acts))


@bug(reds=declined("after-interrupt"))
def an_interrupt_brings_what_was_declined() -> None:
    """A declined action is carried out when its turn is interrupted."""
    acts: list[Act] = []
    putting_off(acts)
    turn_ends("interrupted", lambda _: do_all(acts))


@bug(reds=declined("after-retry"))
def a_retry_brings_what_was_declined() -> None:
    """A declined action is carried out when the model was cut off and is called again."""
    acts: list[Act] = []
    putting_off(acts)
    model_is_asked_again(lambda _: do_all(acts))


@bug(reds=declined("after-restart"))
def the_end_of_the_server_brings_what_was_declined() -> None:
    """A declined action is carried out when the server ends."""
    acts: list[Act] = []
    putting_off(acts)
    atexit.register(do_all, acts)


@bug(reds=declined("asked-again", "scenario.expectation: none of 2 accepted outcomes"))
def what_was_declined_is_done_with_its_namesake() -> None:
    """A declined action is carried out at the end of the turn in which its like was accepted."""
    acts: list[Act] = []
    putting_off(acts)
    turn_ends("completed", lambda _: do_all(acts) if _is_second() else None)
    turns = Counter[str]()

    def _is_second() -> bool:
        turns["all"] += 1
        return turns["all"] == 2


@bug(reds=declined("other-thread"))
def an_answer_is_for_all_open_questions() -> None:
    """An answer to one question answers all open questions."""

    def take(original: Any) -> Any:
        def changed(asks: Any, request_id: Any, answer: Any, sender: Any) -> None:
            for name in list(asks._open) or [request_id]:
                original(asks, name, answer, sender)

        return changed

    swap("reference_server.session.server_requests:ServerRequests.take_answer", take)


QUESTIONS = "lasting/questions"
UNMADE = "scenario.expectation: made.txt is absent"


def questions(column: str, red: str) -> dict[str, str]:
    """Return the findings that show a lost question, by scenario, in one column of their table."""
    return {f"{QUESTIONS}/{row}/{column}": red for row in ("command", "file-change")}


def settling() -> Callable[[], None]:
    """Return a function that declines all open questions of the server."""
    every: list[Any] = []

    def init(original: Any) -> Any:
        def changed(asks: Any) -> None:
            original(asks)
            every.append(asks)

        return changed

    def settle() -> None:
        for asks in every:
            for question in asks._open.values():
                question.answer = {"result": {"decision": "decline"}}
                question.answered.set()

    swap("reference_server.session.server_requests:ServerRequests.__init__", init)
    return settle


@bug(reds=questions("while-read", UNMADE))
def a_read_settles_questions() -> None:
    """A question counts as declined once its thread is read."""
    settle = settling()

    def note(method: str, message: Message) -> Message:
        if method == "thread/read":
            settle()
        return message

    received(note)


@bug(reds={f"{QUESTIONS}/file-change/other-thread-works": UNMADE})
def the_end_of_any_turn_settles_questions() -> None:
    """A question counts as declined once a turn of another thread has completed."""
    settle = settling()
    turn_ends("completed", lambda _: settle())


@bug(reds={f"{QUESTIONS}/file-change/other-thread-interrupted": UNMADE})
def an_interrupt_settles_all_questions() -> None:
    """A question counts as declined once a turn of another thread was interrupted."""
    settle = settling()
    turn_ends("interrupted", lambda _: settle())


@bug(reds=questions("after-interrupt", "scenario.timeout: for the server request"))
def what_was_asked_in_vain_is_not_asked_again() -> None:
    """After an interrupt an action whose question was open is carried out without an approval."""
    interrupted: list[bool] = []
    turn_ends("interrupted", lambda _: interrupted.append(True))

    def has(original: Any) -> Any:
        return lambda *about, **more: original(*about, **more) or bool(interrupted)

    swap("reference_server.session.consents:Consents.has_command", has)
    swap("reference_server.session.consents:Consents.has_files", has)


OUTPUTS = "lasting/outputs"
FIRST = "scenario.expectation: the tool output contains 'one-first'"


def one_buffer(more: Callable[[list[str]], None]) -> None:
    """Keep the output of all commands in one buffer, which is sent to the model whole."""
    buffer: list[str] = []

    def output(original: Any) -> Any:
        async def changed(work: Any, text: str) -> None:
            buffer.append(text)
            await original(work, text)

        return changed

    def complete(original: Any) -> Any:
        def changed(run: Any, status: str, finished: Any, *about: Any) -> None:
            buffer.append(finished.output)
            original(run, status, finished, *about)

        return changed

    def told(original: Any) -> Any:
        return lambda finished: original(finished) + "".join(buffer)

    swap(f"{SHELL}._complete", complete)
    swap("reference_server.engine.work_items:CommandWork.output", output)
    swap("reference_server.engine.tools.shell:_model_output", told)
    more(buffer)


@bug(
    reds={
        f"{OUTPUTS}/same-turn": FIRST,
        f"{OUTPUTS}/next-turn": FIRST,
        f"{OUTPUTS}/at-once": "scenario.expectation: the tool output contains 'two-second'",
        f"{OUTPUTS}/after-interrupt": FIRST,
        f"{OUTPUTS}/after-retry": FIRST,
        f"{OUTPUTS}/other-thread": FIRST,
    }
)
def the_output_of_a_command_is_never_cleared() -> None:
    """The output of a command contains all output since the server began."""

    def read_before_interrupts(buffer: list[str]) -> None:
        def interrupt(original: Any) -> Any:
            def changed(turn: Any) -> None:
                if buffer:
                    original(turn)
                else:  # What was printed is read first: a command that is ended is read no more.
                    asyncio.get_running_loop().call_soon(changed, turn)

            return changed

        swap("reference_server.engine.turn:ActiveTurn.interrupt", interrupt)

    one_buffer(read_before_interrupts)


@bug(reds={f"{OUTPUTS}/after-decline": FIRST})
def a_declined_command_is_tried_out() -> None:
    """A declined command is run, and its output is sent to the model with that of the next one."""

    def try_out(buffer: list[str]) -> None:
        def denied(original: Any) -> Any:
            def changed(run: Any, decision: Any) -> Any:
                line = run._call.command.split(";")[0]
                buffer.append(subprocess.check_output(["bash", "-c", line], text=True))
                return original(run, decision)

            return changed

        swap(f"{SHELL}._decline", denied)

    one_buffer(try_out)


DIFFS = "lasting/diffs"
OLD = "scenario.expectation: the last one has 'one.txt'"


def diffs(edit: Callable[[Message, list[Message]], None]) -> None:
    """Edit each diff of a turn; `edit` gets its params, and those of all diffs before."""
    before: list[Message] = []

    def told(method: str, message: Message) -> list[Message]:
        if method == "turn/diff/updated":
            params = message["params"]
            original = dict(params)
            edit(params, before)
            before.append(original)
        return [message]

    sent(told)


@bug(reds={f"{DIFFS}/after-interrupt": OLD})
def a_diff_is_that_of_the_thread() -> None:
    """The diff of a turn has the changes of the turns before it."""

    def add(params: Message, before: list[Message]) -> None:
        others = {
            one["turnId"]: one["diff"]
            for one in before
            if one["threadId"] == params["threadId"] and one["turnId"] != params["turnId"]
        }
        params["diff"] = "".join(others.values()) + params["diff"]

    diffs(add)


@bug(sequences="turn.diff-own")
def a_diff_is_that_of_all_threads() -> None:
    """The diff of a turn has the changes of other threads."""

    def add(params: Message, before: list[Message]) -> None:
        others = [one["diff"] for one in before if one["threadId"] != params["threadId"]]
        params["diff"] = "".join(others) + params["diff"]

    diffs(add)


@bug(reds={f"{DIFFS}/third-change": "scenario.expectation: the last one lacks 'one.txt'"})
def a_diff_has_the_last_two_changes() -> None:
    """The diff of a turn forgets all but the last two changes."""

    def cut(params: Message, _: list[Message]) -> None:
        pieces = params["diff"].split("diff --git")[1:]
        params["diff"] = "".join(f"diff --git{one}" for one in pieces if "one.txt" not in one)

    diffs(lambda params, before: cut(params, before) if len(before) > 1 else None)


@bug(reds={f"{DIFFS}/after-retry": "scenario.expectation: the last one lacks 'one.txt'"})
def a_retry_forgets_the_diff() -> None:
    """The diff of a turn lacks the changes before the model was cut off."""

    def forget(original: Any) -> Any:
        def changed(turn: Any, *about: Any) -> None:
            original(turn, *about)
            vars(turn._calls).pop("_context", None)

        return changed

    swap("reference_server.engine.turn:ActiveTurn.tell_retry", forget)


@bug(reds={f"{DIFFS}/after-decline": OLD})
def a_diff_has_what_was_declined() -> None:
    """The diffs that follow a declined change have it, too."""
    refused: list[str] = []

    def told(method: str, message: Message) -> list[Message]:
        item = message.get("params", {}).get("item", {})
        if method == "item/completed" and item.get("status") == "declined":
            refused.extend(f"+++ {one['path']}\n{one['diff']}" for one in item["changes"])
        if method == "turn/diff/updated":
            message["params"]["diff"] += "".join(refused)
        return [message]

    sent(told)


@bug(sequences="status.change-notified")
def a_failed_thread_stays_active() -> None:
    """After a failed turn a thread is read as active for ever."""
    failed: list[str] = []
    turn_ends("failed", lambda thread: failed.append(thread.id))

    def change(result: Message) -> None:
        if result["thread"]["id"] in failed:
            result["thread"]["status"] = {"type": "active", "activeFlags": []}

    replied("thread/read", change)


USAGE = "turn.usage-told"


@bug(reds={"lasting/usage/second-time": USAGE})
def usage_is_told_once() -> None:
    """The token usage is reported for the first turn of a thread only."""
    told = Counter[str]()

    def again(params: Message) -> bool:
        told[params["threadId"]] += 1
        return told[params["threadId"]] > 1

    untold("thread/tokenUsage/updated", again)


@bug(reds={"lasting/usage/after-retry": USAGE})
def a_retry_ends_the_count_of_usage() -> None:
    """The token usage is not reported once the model was cut off."""
    cut: list[str] = []
    model_is_asked_again(lambda thread: cut.append(thread.id))
    untold("thread/tokenUsage/updated", lambda params: params["threadId"] in cut)


REFUSED = "scenario.expectation: turn/start was answered by an error"


@bug(
    reds={
        "lasting/words/effort": REFUSED,
        "lasting/words/summary": REFUSED,
    }
)
def the_second_word_of_a_list_is_unknown() -> None:
    """The server rejects some valid words for the effort and the summary of a turn."""
    unknown = {"medium", "verbose"}

    def prepare(original: Any) -> Any:
        async def changed(engine: Any, thread: Any, params: Any, schema: Any = None) -> Any:
            from reference_server.refusal import invalid_params

            given = {params.effort, params.summary}
            if given & unknown:
                raise invalid_params("unknown word")
            return await original(engine, thread, params, schema)

        return changed

    swap("reference_server.engine.start:Engine.prepare", prepare)
