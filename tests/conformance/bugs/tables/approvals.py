"""Bugs about approvals: wrong effects of a client's answer."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.conformance.bugs.planting import Message, instead, received, sent, swap
from tests.conformance.bugs.registry import bug
from tests.conformance.bugs.tables.commands import finished
from tests.conformance.bugs.tables.files import instead_of_applying

APPROVALS = "reference_server.engine.approvals"
SHELL = "reference_server.engine.tools.shell"
PATCH = "reference_server.engine.tools.patch"
ASKS = "reference_server.session.server_requests:ServerRequests"
QUESTION = "item/commandExecution/requestApproval"


def run_at_once(params: Message) -> None:
    """Run the command of an approval request outside the sandbox, and drop its output."""
    subprocess.run(params["command"], cwd=params["cwd"], stdout=subprocess.DEVNULL, check=False)


def asked(change: Any) -> None:
    """Let `change(params)` see each question about a command before it goes out."""

    def edit(method: str, message: Message) -> list[Message]:
        if method == QUESTION:
            change(message["id"], message["params"])
        return [message]

    sent(edit)


def answers(change: Any) -> None:
    """Change the client's answers in place, before anything is made of them."""

    def receive(method: str, message: Message) -> Message:
        if method == "answer":
            change(message)
        return message

    received(receive)


def commands_read(change: Any) -> None:
    """Let `change(answer, read)` make a decision on a command of the client's answer."""
    swap(f"{APPROVALS}:read_command_answer", lambda read: lambda answer: change(answer, read))


@bug(reds={"approvals/accept-command": "approval.asks-before-acting"})
def a_command_runs_while_its_question_is_open() -> None:
    """A command has run, and printed, before its approval request is sent."""

    def ask(original: Any) -> Any:
        async def run_first(command: Any, *words: Any, **outside: Any) -> Any:
            prepared = await command._prepare(outside=False, network=False)
            await command._execute(prepared)
            return await original(command, *words, **outside)

        return run_first

    swap(f"{SHELL}:_CommandRun._ask", ask)


@bug(
    reds={
        "approvals/accept-file-change": "scenario.expectation: made.txt is absent",
        "approvals/on-failure-accept-file-change": "scenario.expectation: made.txt is absent",
        "approvals/on-request-accept-file-change": "scenario.expectation: made.txt is absent",
        "recorded/python-client": "scenario.expectation: added.txt is absent",
    }
)
def an_accepted_file_change_is_not_made() -> None:
    """An accepted file change is reported as completed, but not written."""
    instead_of_applying(lambda plan, apply: None)


@bug(
    reds={
        "approvals/on-failure-accept": "scenario.expectation: made.txt is absent",
        "approvals/on-request-accept": "scenario.expectation: made.txt is absent",
    }
)
def an_accepted_command_does_not_run() -> None:
    """An accepted command is reported as completed, but not run."""

    def ask(original: Any) -> Any:
        async def accepted(command: Any, *words: Any, **outside: Any) -> Any:
            answer = await original(command, *words, **outside)

            async def prepared(**how: Any) -> Any:
                ready = await prepare(**how)
                ready.process.command = dataclasses.replace(ready.process.command, argv=("true",))
                return ready

            prepare, command._prepare = command._prepare, prepared
            return answer

        return accepted

    swap(f"{SHELL}:_CommandRun._ask", ask)


@bug(
    reds={
        "approvals/accept-for-session": "approval.session-remembered",
    }
)
def what_is_accepted_for_the_session_is_asked_about_again() -> None:
    """A command that was accepted for the session is accepted once."""
    instead("reference_server.session.consents:Consents.accept_command", lambda *_, **__: None)


@bug(reds={"approvals/accepted-twice": "approval.asked-again"})
def every_yes_is_for_the_session() -> None:
    """A command that was accepted once runs the next time without an approval request."""

    def widen(message: Message) -> None:
        if message["result"].get("decision") == "accept":
            message["result"]["decision"] = "acceptForSession"

    answers(widen)


@bug(
    reds={
        "approvals/on-failure-for-session": "scenario.expectation: made.txt: line",
        "approvals/on-failure-lasting-rule": "scenario.expectation: made.txt: line",
        "approvals/on-request-for-session": "scenario.expectation: made.txt: line",
        "approvals/on-request-lasting-rule": "scenario.expectation: made.txt: line",
    }
)
def what_was_accepted_before_is_taken_for_done() -> None:
    """A command accepted for longer is reported as completed the next time, but not run."""

    def known(original: Any) -> Any:
        def remembered(command: Any, **where: Any) -> bool:
            command.is_known = original(command, **where)
            return command.is_known

        return remembered

    def prepare(original: Any) -> Any:
        async def changed(command: Any, **how: Any) -> Any:
            ready = await original(command, **how)
            if getattr(command, "is_known", False):
                ready.process.command = dataclasses.replace(ready.process.command, argv=("true",))
            return ready

        return changed

    swap(f"{SHELL}:_CommandRun._was_accepted", known)
    swap(f"{SHELL}:_CommandRun._prepare", prepare)


@bug(reds={"approvals/answer-by-an-error": "scenario.expectation: made.txt exists"})
def an_error_is_no_objection() -> None:
    """A command whose question is answered by an error runs."""
    _accepts(lambda answer: "error" in answer)


@bug(reds={"approvals/answer-without-decision": "scenario.expectation: made.txt exists"})
def an_answer_without_a_decision_is_no_objection() -> None:
    """A command whose question is answered by an empty object runs."""
    _accepts(lambda answer: answer.get("result") == {})


def _accepts(which: Any) -> None:
    def read(answer: Message, original: Any) -> Any:
        return original({"result": {"decision": "accept"}} if which(answer) else answer)

    commands_read(read)


@bug(reds={"approvals/unheard-of-decision": "scenario.crash: exit status 70"})
def a_decision_that_is_not_known_ends_the_server() -> None:
    """The server stops at a decision that it does not know."""

    def stop(message: Message) -> None:
        if message.get("result", {}).get("decision") == "perhaps":
            os._exit(70)

    answers(stop)


@bug(reds={"approvals/answer-to-nothing": "scenario.expectation: made.txt exists"})
def any_answer_is_for_the_open_question() -> None:
    """An answer with any id is taken as the answer to the first open question."""

    def take(original: Any) -> Any:
        def changed(asks: Any, request_id: Any, answer: Message, sender: Any) -> None:
            original(asks, next(iter(asks._open), request_id), answer, sender)

        return changed

    swap(f"{ASKS}.take_answer", take)


@bug(
    reds={
        "approvals/answered-twice": "scenario.expectation: made.txt: line",
        "approvals/declined-then-accepted": "scenario.expectation: made.txt exists",
        "approvals/late-answer": "scenario.expectation: made.txt exists",
        "interrupts/answered-too-late": "scenario.expectation: made.txt exists",
    }
)
def an_answer_to_a_settled_question_counts() -> None:
    """A command runs when its question, which is settled, is answered once more by yes."""
    questions: dict[Any, Message] = {}
    settled: set[Any] = set()
    asked(questions.__setitem__)

    def edit(method: str, message: Message) -> list[Message]:
        if method == "serverRequest/resolved":
            settled.add(message["params"]["requestId"])
        return [message]

    def late(message: Message) -> None:
        if message["id"] in settled and message["result"].get("decision") == "accept":
            run_at_once(questions[message["id"]])
        settled.add(message["id"])

    sent(edit)
    answers(late)


@bug(
    reds={
        "approvals/cancel-command": "approval.cancel-interrupts",
        "approvals/on-failure-cancel": "approval.cancel-interrupts",
        "approvals/on-request-cancel": "approval.cancel-interrupts",
    }
)
def cancel_is_decline() -> None:
    """A command that is cancelled is denied, and its turn goes on."""

    def soften(message: Message) -> None:
        if message["result"].get("decision") == "cancel":
            message["result"]["decision"] = "decline"

    answers(soften)


@bug(reds={"approvals/cancel-one-of-two": "approval.cancel-ends-work"})
def the_second_question_follows_a_cancel() -> None:
    """The second command of an answer has an approval request though the first was cancelled."""

    def carry_out(_: Any) -> Any:
        async def on_and_on(calls: Any, wanted: list[Message], remember: Any) -> None:
            from reference_server.engine.calls import ToolCall

            calls._unanswered = [ToolCall.read(call) for call in wanted]
            while calls._unanswered:
                call = calls._unanswered[0]
                remember([await calls._tools.toolbox.carry_out(call, calls._context)])
                calls._unanswered.pop(0)

        return on_and_on

    swap("reference_server.engine.tool_provider:TurnCalls.carry_out", carry_out)


@bug(reds={"approvals/client-leaves": "scenario.expectation: made.txt exists"})
def who_leaves_has_accepted() -> None:
    """A command whose approval is open runs when the client disconnects."""
    waiting: dict[Any, Message] = {}
    asked(waiting.__setitem__)

    def end(original: Any) -> Any:
        async def changed(server: Any) -> None:
            for params in waiting.values():
                run_at_once(params)
            await original(server)

        return changed

    swap("reference_server.server:Server.end_turns", end)


@bug(reds={"approvals/server-killed": "scenario.expectation: made.txt exists"})
def what_was_asked_about_runs_when_the_server_is_back() -> None:
    """A killed server runs the command of an open approval as soon as it is started again."""

    def recover(original: Any) -> Any:
        def changed(home: Any) -> None:
            nonlocal file
            file = Path(home.root) / "questions.json"
            if file.exists():
                run_at_once(json.loads(file.read_text()))
            original(home)

        return changed

    file = Path()
    swap("reference_server.cli.app_server:recover", recover)
    asked(lambda _, params: file.write_text(json.dumps(params)))


@bug(
    reds={
        "approvals/decline-file-change": "scenario.expectation: made.txt exists",
        "approvals/on-failure-decline-file-change": "scenario.expectation: made.txt exists",
        "approvals/on-request-decline-file-change": "scenario.expectation: notes.txt is absent",
    }
)
def a_declined_file_change_is_made() -> None:
    """A declined file change is reported as declined, but made."""
    _made_though("decline")


@bug(
    reds={
        "approvals/on-failure-cancel-file-change": "scenario.expectation: made.txt exists",
        "approvals/on-request-cancel-file-change": "scenario.expectation: made.txt exists",
        "approvals/untrusted-cancel-file-change": "scenario.expectation: made.txt exists",
    }
)
def a_cancelled_file_change_is_made() -> None:
    """A cancelled file change is reported as declined, but made."""
    _made_though("cancel")


def _made_though(decision: str) -> None:
    from reference_server.patch.apply import apply_plan

    def complete(original: Any) -> Any:
        async def made(patch: Any, status: Any) -> None:
            if status == "declined" and decided == [decision]:
                apply_plan(patch._plan, None)
            await original(patch, status)

        return made

    decided: list[Any] = []
    answers(lambda message: decided.append(message["result"].get("decision")))
    swap(f"{PATCH}:_PatchRun._complete", complete)


@bug(
    reds={
        "approvals/on-failure-decline": "scenario.expectation: made.txt exists",
        "approvals/on-request-decline": "scenario.expectation: made.txt exists",
    }
)
def a_declined_command_runs() -> None:
    """A declined command is reported as declined, but run."""
    questions: dict[Any, Message] = {}
    asked(questions.__setitem__)

    def run(message: Message) -> None:
        if message["result"].get("decision") == "decline":
            run_at_once(questions[message["id"]])

    answers(run)


@bug(
    reds={
        "approvals/on-failure-accepted-fails": "scenario.expectation: failed",
        "approvals/on-request-accepted-fails": "scenario.expectation: failed",
        "approvals/untrusted-accepted-fails": "scenario.expectation: failed",
        "approvals/on-failure-rule-fails": "scenario.expectation: failed",
        "approvals/on-request-rule-fails": "scenario.expectation: failed",
        "approvals/untrusted-rule-fails": "scenario.expectation: failed",
    }
)
def what_was_accepted_cannot_fail() -> None:
    """An accepted command that fails is reported as completed."""

    def change(found: Any, running: Any) -> Any:
        # What ran before the question ran in the sandbox.
        return found if running.command.wrapper else dataclasses.replace(found, exit_code=0)

    finished(change)


@bug(
    reds={
        "approvals/on-failure-file-change-fails": "scenario.expectation: failed",
        "approvals/on-request-file-change-fails": "scenario.expectation: failed",
        "approvals/untrusted-file-change-fails": "scenario.expectation: failed",
    }
)
def an_accepted_file_change_cannot_fail() -> None:
    """An accepted file change that has become impossible is reported as completed."""
    from reference_server.patch.parse import PatchError

    def make(plan: Any, apply: Any) -> None:
        with contextlib.suppress(PatchError):
            apply()

    instead_of_applying(make)


@bug(
    reds={
        "approvals/on-failure-file-change-for-session": "scenario.expectation: ended as failed",
        "approvals/on-request-file-change-for-session": "scenario.expectation: ended as failed",
        "approvals/untrusted-file-change-for-session": "scenario.expectation: ended as failed",
    }
)
def a_file_change_accepted_for_the_session_fails_the_turn() -> None:
    """A turn fails at acceptForSession as the answer about a file change."""

    def read(original: Any) -> Any:
        def changed(answer: Message) -> Any:
            if answer["result"]["decision"] == "acceptForSession":
                raise OSError("no such decision")
            return original(answer)

        return changed

    swap(f"{APPROVALS}:read_file_answer", read)


@bug(
    reds={
        "approvals/untrusted-lasting-rule": "approval.session-remembered",
    }
)
def a_lasting_rule_lasts_for_one_command() -> None:
    """A command that was accepted with a lasting rule needs an approval again."""

    def read(answer: Message, original: Any) -> Any:
        return dataclasses.replace(original(answer), keep_rule=False)

    commands_read(read)


@bug(reds={"approvals/rule-after-restart": "scenario.expectation: made.txt: line"})
def a_lasting_rule_is_kept_in_memory() -> None:
    """A lasting rule ends with the server."""

    def recover(original: Any) -> Any:
        def forget(home: Any) -> None:
            for file in Path(home.root).rglob("*.rules"):
                file.unlink()
            original(home)

        return forget

    swap("reference_server.cli.app_server:recover", recover)


@bug(
    reds={
        "approvals/on-failure-network-rule": "approval.order",
        "approvals/on-request-network-rule": "approval.order",
        "approvals/untrusted-network-rule": "approval.order",
    }
)
def a_rule_of_the_network_leaves_the_question_open() -> None:
    """A question answered by a rule of the network policy is never reported as resolved."""
    about_network: set[Any] = set()

    def note(message: Message) -> None:
        if message["result"].get("decision") == "applyNetworkPolicyAmendment":
            about_network.add(message["id"])

    def edit(method: str, message: Message) -> list[Message]:
        resolved = method == "serverRequest/resolved"
        return [] if resolved and message["params"]["requestId"] in about_network else [message]

    answers(note)
    sent(edit)


@bug(reds={"approvals/second-of-two": "scenario.timeout: step answer"})
def one_answer_serves_for_a_turn() -> None:
    """The first answer about a command of a turn is taken for that of the next, too."""

    def ask(original: Any) -> Any:
        async def once(approvals: Any, method: str, params: Any) -> Any:
            key = approvals.turn_id
            if key not in given:
                given[key] = await original(approvals, method, params)
            return given[key]

        return once

    given: dict[str, Any] = {}
    swap(f"{APPROVALS}:Approvals._ask", ask)
