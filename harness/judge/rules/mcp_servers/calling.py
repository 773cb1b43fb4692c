"""Rules on tool calls: the requests to the harness's MCP servers, and the results shown."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from harness.judge.base import Outcomes, Violation, Witness, listen, rule
from harness.judge.rules.shared.mcp_servers import (
    ITEM_ENDS,
    TURN_ENDS,
    ServerNotes,
    ServerRule,
    ToolCall,
    arguments_of,
    marks_before,
    turn_completed,
)
from harness.judge.rules.shared.violations import wrong
from harness.judge.verdict import Level
from harness.protocol.values import obj
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall, ModelEnd
from harness.trace.mcp_marks import McpAnswer, McpTransport
from harness.trace.order import marked_before
from harness.trace.surfaces import EXEC

# A longer text may be cut.
MAX_COMPARED_CHARACTERS = 400
_TRANSPORT_WORDS = {
    McpTransport.STDIO: "its program reads it from its standard input",
    McpTransport.HTTP: "its address gets it over HTTP",
}


class _ToolCallRule(ServerRule):
    """Base of rules on items that show a completed call of a tool that the harness plays."""

    @listen(*ITEM_ENDS)
    def on_item_end(self, frame: Frame) -> Outcomes:
        call_and_play = self.call_in(frame)
        return None if call_and_play is None else self.judge_call(*call_and_play)

    @abstractmethod
    def judge_call(self, call: ToolCall, played: ServerNotes) -> Outcomes:
        """Judge a call by the servers and their traffic before the message that shows it."""


@rule(
    "mcp-server.called",
    title="A completed call of a tool has reached its MCP server",
    level=Level.MUST,
    needs=("mcp-tools",),
    also_on=(EXEC,),
)
class Called(_ToolCallRule):
    """Judges that an MCP server of the harness was called for each tool call shown as completed.

    A stdio server is called over its standard streams, one with an address over HTTP. Left open:
    calls that failed or were declined, and names that are not in the configuration.
    """

    def judge_call(self, call: ToolCall, played: ServerNotes) -> Outcomes:
        if played.calls(call.server, call.tool):
            yield Witness(call.subject, (call.frame,))
            return
        way = _TRANSPORT_WORDS[played.servers[call.server].transport]
        expected = f"completed only when the server was called: {way}"
        yield wrong(call.subject, (call.frame,), call.member("status"), expected)


@rule(
    "mcp-server.call-arguments",
    title="A tool of an MCP server gets the arguments that the model gave",
    level=Level.SHOULD,
    needs=("mcp-tools",),
    also_on=(EXEC,),
)
class CallArguments(_ToolCallRule):
    """Judges that a completed call has the arguments with which its server was called.

    Those must also be arguments that the model gave for this tool. That arguments pass unchanged is
    derived from the nature of a tool, so SHOULD.
    """

    def judge_call(self, call: ToolCall, played: ServerNotes) -> Outcomes:
        received = [
            arguments_of(server_call) for server_call in played.calls(call.server, call.tool)
        ]
        arguments = call.item.get("arguments")
        if not received or None in received or not isinstance(arguments, dict):
            return
        model_arguments = self._model_arguments(call)
        if arguments not in received:
            expected = f"{literal(received[-1])}, with which the server was called"
            yield wrong(call.subject, (call.frame,), call.member("arguments"), expected)
        elif model_arguments and arguments not in model_arguments:
            expected = f"{literal(model_arguments[-1])}, which the model gave"
            yield wrong(call.subject, (call.frame,), call.member("arguments"), expected)
        else:
            yield Witness(call.subject, (call.frame,))

    def _model_arguments(self, call: ToolCall) -> list[dict[str, Any]]:
        """Return the model's arguments for a tool, [] if some were not recorded."""
        tool_calls = [
            tool_call
            for mark in marks_before(self.trace, call.frame, ModelEnd)
            for tool_call in mark.body.mcp
        ]
        same_tool = [
            tool_call
            for tool_call in tool_calls
            if (tool_call.server, tool_call.tool) == (call.server, call.tool)
        ]
        noted = [arguments for arguments in map(arguments_of, same_tool) if arguments is not None]
        return noted if len(noted) == len(same_tool) else []


@rule(
    "mcp-server.result-shown",
    title="A completed call shows the answer of its MCP server",
    level=Level.SHOULD,
    needs=("mcp-tools",),
    also_on=(EXEC,),
)
class ResultShown(_ToolCallRule):
    """Judges that the result of a completed call has the texts of an answer of its server.

    The specification does not show the form of a result, so they may stand anywhere in it. Left
    open: long texts, which may be cut, and calls without a result.
    """

    def judge_call(self, call: ToolCall, played: ServerNotes) -> Outcomes:
        answer_texts = list(_short_answers(played, call))
        if not answer_texts or not obj(call.item.get("result")):
            return
        if any(_is_contained(answer, call.item["result"]) for answer in answer_texts):
            yield Witness(call.subject, (call.frame,))
            return
        expected = f"{literal(answer_texts[-1])} in it, which the server answered"
        yield wrong(call.subject, (call.frame,), call.member("result"), expected)


@rule(
    "mcp-server.result-told",
    title="The model gets the answer of an MCP server's tool",
    level=Level.SHOULD,
    needs=("mcp-tools",),
    also_on=(EXEC,),
)
class ResultTold(ServerRule):
    """Judges that a server's answer stands in a tool output that the model gets afterwards.

    A tool serves the model, so the model gets its output: derived, so SHOULD. Left open: answers
    with no later model call, or none with outputs; long texts; turns that were not completed; runs
    with several threads, as a model call may be of another one.
    """

    def begin(self) -> None:
        self._last: Frame | None = None

    @listen(*TURN_ENDS)
    def on_turn_end(self, frame: Frame) -> Outcomes:
        since, self._last = self._last, frame
        played = self.notes_before(frame)
        calls = list(marks_before(self.trace, frame, ModelCall))
        several = len({call.body.thread for call in calls}) > 1
        if played is None or several or not turn_completed(frame):
            return
        requests = {played_request.number: played_request for played_request in played.requests}
        for answer, outputs in self._answers(frame, since):
            texts = [
                answer_text
                for answer_text in answer.texts
                if answer_text and len(answer_text) <= MAX_COMPARED_CHARACTERS
            ]
            request = requests.get(answer.number)
            if request is None or not outputs or not texts:
                continue
            subject = f"answer {request.number}, of {request.tool} of {request.server}"
            if all(any(_is_contained(text, output) for output in outputs) for text in texts):
                yield Witness(subject, (frame,))
                continue
            expected = f"an output for the model that has {literal(texts[0])}"
            yield Violation(subject, (frame,), expected, literal(outputs[0]))

    def _answers(self, end: Frame, since: Frame | None) -> list[tuple[McpAnswer, list[str]]]:
        """Return the answers in a turn, with the outputs of tools that the model got after each."""
        answers: list[tuple[McpAnswer, list[str]]] = []
        for mark in self.trace.marks:
            if not marked_before(mark, end):
                continue
            earlier = since is not None and marked_before(mark, since)
            match mark.body:
                case McpAnswer() as answer if not earlier:
                    answers.append((answer, []))
                case ModelCall(outputs=outputs):
                    for _, later in answers:
                        later += outputs
                case _:
                    pass
        return answers


def _short_answers(played: ServerNotes, call: ToolCall) -> Iterator[str]:
    """Yield the texts of the answers to the calls of a tool that are not too long."""
    for server_call in played.calls(call.server, call.tool):
        answer = played.answers.get(server_call.number)
        if answer is not None and not answer.failed:
            yield from (
                text for text in answer.texts if text and len(text) <= MAX_COMPARED_CHARACTERS
            )


def _is_contained(words: str, value: Any) -> bool:
    """Return whether a text is in a value, as it is or as JSON writes it."""
    container = value if isinstance(value, str) else json.dumps(value)
    forms = (words, json.dumps(words)[1:-1], json.dumps(words, ensure_ascii=False)[1:-1])
    return any(form in container for form in forms)
