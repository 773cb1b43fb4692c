"""Bugs about commands: how they run, how they are reported, how they end."""

from __future__ import annotations

import dataclasses
from typing import Any

import anyio

from tests.conformance.bugs.planting import Message, items, sent, swap
from tests.conformance.bugs.registry import bug

PROCESS = "reference_server.sandbox.process"
A_WHILE = 2.6
"""Seconds that something hangs: longer than a step is waited for."""
SHELL = "reference_server.engine.tools.shell"


def finished(change: Any) -> None:
    """Let `change(found, running)` replace the result of each command that has ended."""

    def finish(original: Any) -> Any:
        def changed(running: Any, failure: str | None = None) -> Any:
            running.finished = change(original(running, failure), running)
            return running.finished

        return changed

    swap(f"{PROCESS}:Running._finish", finish)


@bug(reds={"commands/exit-code": "scenario.expectation: exitCode"})
def a_failed_command_exits_with_one() -> None:
    """The exit code of every failed command is reported as 1."""

    def flatten(_: str, item: Message) -> None:
        if item.get("exitCode"):
            item["exitCode"] = 1

    items("commandExecution", flatten)


@bug(reds={"commands/both-streams": "item.command-output"})
def stderr_is_no_output() -> None:
    """The item of a command has only its stdout."""

    def forget(_: str, item: Message) -> None:
        if "aggregatedOutput" in item:
            item["aggregatedOutput"] = item["aggregatedOutput"].replace("to the other\n", "")

    items("commandExecution", forget)


@bug(
    reds={
        "commands/terminals-in-one-answer": "scenario.expectation: two.txt",
        "commands/two-at-once": "scenario.expectation: two.txt",
    }
)
def only_the_first_call_is_carried_out() -> None:
    """The first of several commands in one answer runs; the others are only reported as run."""

    def carry_out(original: Any) -> Any:
        async def first(calls: Any, wanted: list[Message], remember: Any) -> None:
            await original(calls, wanted[:1], remember)
            for call in wanted[1:]:
                output = "Exit code: 0\nOutput:\n"
                kind = f"{call['type']}_output"
                remember([{"type": kind, "call_id": call["call_id"], "output": output}])

        return first

    swap("reference_server.engine.tool_provider:TurnCalls.carry_out", carry_out)


@bug(reds={"commands/no-output": "item.completes"})
def a_silent_command_is_never_completed() -> None:
    """The end of a command without output is not reported."""

    def edit(method: str, message: Message) -> list[Message]:
        item = message.get("params", {}).get("item", {})
        silent = item.get("type") == "commandExecution" and not item.get("aggregatedOutput")
        return [] if method == "item/completed" and silent else [message]

    sent(edit)


@bug(reds={"commands/killed": "scenario.expectation: failed"})
def an_end_by_a_signal_is_a_success() -> None:
    """A command ended by a signal is reported as completed."""

    def change(found: Any, running: Any) -> Any:
        by_signal = (found.exit_code or 0) > 128
        return dataclasses.replace(found, exit_code=0) if by_signal else found

    finished(change)


@bug(reds={"commands/missing": "scenario.expectation: failed"})
def a_missing_program_fails_the_turn() -> None:
    """A command whose program does not exist fails the whole turn."""

    def finish(original: Any) -> Any:
        def changed(run: Any, found: Any, prepared: Any) -> str:
            words: str = original(run, found, prepared)
            if found.exit_code == 127:
                raise OSError(2, "No such file or directory")
            return words

        return changed

    swap(f"{SHELL}:_CommandRun._finish", finish)


@bug(reds={"commands/terminal": "scenario.expectation: failed"})
def a_terminal_is_a_pipe() -> None:
    """A command that the model wants a terminal for gets a pipe, as every other."""

    def read(original: Any) -> Any:
        whole = original.__func__

        def without(cls: Any, call: Any, cwd: str) -> Any:
            return dataclasses.replace(whole(cls, call, cwd), tty=False)

        return classmethod(without)

    swap(f"{SHELL}:ShellCall.read", read)


@bug(reds={"commands/another-folder": "scenario.expectation: sub/more.txt"})
def the_folder_of_a_turn_holds_for_commands_of_that_turn_only() -> None:
    """The cwd of a turn/start is forgotten with its turn."""

    def start(original: Any) -> Any:
        async def prepared(engine: Any, thread: Any, params: Any, schema: Any = None) -> Any:
            before = thread.settings
            turn = await original(engine, thread, params, schema)
            end = turn._end

            def ended(error: Any) -> None:
                thread.settings = thread.settings.model_copy(update={"cwd": before.cwd})
                end(error)

            turn._end = ended
            return turn

        return prepared

    swap("reference_server.engine.start:Engine.prepare", start)


@bug(reds={"commands/big-output": "scenario.expectation: failed"})
def much_output_is_too_much() -> None:
    """A command that has printed a hundred thousand bytes is ended."""

    def read(original: Any) -> Any:
        async def counted(running: Any) -> bytes:
            data: bytes = await original(running)
            running.printed = getattr(running, "printed", 0) + len(data)
            if running.printed > 100_000:
                # Nothing more is read, so that it cannot come to its end before it is ended.
                running.stop()
                return b""
            return data

        return counted

    swap(f"{PROCESS}:Running._read", read)


@bug(reds={"commands/streamed-late": "delta.both-streams"})
def stderr_is_not_streamed() -> None:
    """The stderr of a command is in its item, but not in a delta."""

    def edit(method: str, message: Message) -> list[Message]:
        if method == "item/commandExecution/outputDelta":
            params = message["params"]
            params["delta"] = params["delta"].replace("to the other\n", "")
        return [message]

    sent(edit)


@bug(reds={"commands/waits": "scenario.expectation: failed"})
def a_command_that_takes_a_while_has_failed() -> None:
    """A command that is not done within a millisecond counts as failed, though it goes on."""

    def change(found: Any, running: Any) -> Any:
        slow = found.duration_ms >= 1
        return dataclasses.replace(found, exit_code=124) if slow else found

    finished(change)


def _not_ended(run: str) -> None:
    """Replace the clean-up of commands; `run` names the step that remains."""

    def clear(original: Any) -> Any:
        async def changed(running: Any) -> None:
            account = running._account
            if account.finished.is_set():
                await original(running)
                return
            if run == "asked":
                account.end()
            running._finish()

        return changed

    swap(f"{PROCESS}:Running._clean_up", clear)


@bug(
    reds={
        "commands/interrupted": "scenario.expectation: made.txt exists",
        "reviews/interrupted-command": "scenario.expectation: made.txt exists",
    }
)
def an_interrupted_command_goes_on() -> None:
    """The turn of an interrupted command ends, and the command runs on."""
    _not_ended("left alone")


@bug(reds={"commands/ignores-term": "scenario.expectation: made.txt exists"})
def an_interrupted_command_is_asked_to_end() -> None:
    """A command whose turn is interrupted gets a TERM only, and no KILL."""

    def request(original: Any) -> Any:
        async def patient(account: Any, program: str, command: Any) -> None:
            await original(account, program, dataclasses.replace(command, grace=600.0))

        return patient

    swap(f"{PROCESS}:WardenReports.request", request)
    _not_ended("asked")


@bug(reds={"commands/child-left-behind": "scenario.timeout: wait"})
def a_command_is_over_when_all_that_it_started_is() -> None:
    """The end of a command is delayed until its background processes end."""

    def last_word(_: Any) -> Any:
        async def wait(running: Any, account: Any) -> None:
            with anyio.move_on_after(A_WHILE):
                await account.wait_until_gone()

        return wait

    swap(f"{PROCESS}:Running._drain_background", last_word)


@bug(reds={"commands/reads-stdin": "scenario.timeout: wait"})
def nobody_closes_the_standard_input() -> None:
    """A command's standard input is never at its end."""

    def request(original: Any) -> Any:
        async def endless(account: Any, program: str, command: Any) -> None:
            line = ("bash", "-c", f"exec < <(exec sleep {A_WHILE})\n{command.argv[-1]}")
            await original(account, program, dataclasses.replace(command, argv=line))

        return endless

    swap(f"{PROCESS}:WardenReports.request", request)


@bug(reds={"commands/split-utf8": "item.command-output"})
def each_piece_of_output_is_decoded_by_itself() -> None:
    """The client is shown two broken characters where the bytes of one came apart."""

    def spoil(_: str, item: Message) -> None:
        if "aggregatedOutput" in item:
            item["aggregatedOutput"] = item["aggregatedOutput"].replace("é", "\ufffd\ufffd")

    items("commandExecution", spoil)
