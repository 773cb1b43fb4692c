"""Rules on the calls of tools: what a server of the play was asked, and what is shown of it."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from harness.judge.base import Outcomes, Violation, Witness, listen, rule
from harness.judge.rules.shared.mcp_servers import (
    ITEM_ENDS,
    TURN_ENDS,
    OfServers,
    Played,
    ToolCall,
    arguments_of,
    before,
    completed,
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

# A longer text may be cut where it is shown.
SHORT = 400
_WAYS = {
    McpTransport.STDIO: "its program reads it from its standard input",
    McpTransport.HTTP: "its address gets it over HTTP",
}


class _OfCalls(OfServers):
    """A rule over each completed call of a tool of the play that an item shows."""

    @listen(*ITEM_ENDS)
    def on_item_end(self, frame: Frame) -> Outcomes:
        found = self.call_in(frame)
        return None if found is None else self.judged(*found)

    @abstractmethod
    def judged(self, call: ToolCall, played: Played) -> Outcomes:
        """Judge a call."""


@rule(
    "mcp-server.called",
    title="A completed call of a tool has reached its MCP server",
    level=Level.MUST,
    needs=("mcp-tools",),
    also_on=(EXEC,),
)
class Called(_OfCalls):
    """Judges that a server of the play was asked for each tool that an item shows as called.

    A stdio server is asked over its standard streams, one at an address over HTTP. Left open: calls
    that failed or were declined, and names that are not those of the configuration.
    """

    def judged(self, call: ToolCall, played: Played) -> Outcomes:
        if played.calls(call.server, call.tool):
            yield Witness(call.subject, (call.frame,))
            return
        way = _WAYS[played.configured[call.server].transport]
        expected = f"completed only when the server was called: {way}"
        yield wrong(call.subject, (call.frame,), call.member("status"), expected)


@rule(
    "mcp-server.call-arguments",
    title="A tool of an MCP server gets the arguments that the model gave",
    level=Level.SHOULD,
    needs=("mcp-tools",),
    also_on=(EXEC,),
)
class CallArguments(_OfCalls):
    """Judges that a completed call has the arguments with which its server was called.

    And that the server got none but those that the model gave for this tool. That arguments go
    through unchanged is derived from what a tool is, so SHOULD.
    """

    def judged(self, call: ToolCall, played: Played) -> Outcomes:
        got = [arguments_of(one) for one in played.calls(call.server, call.tool)]
        shown = call.item.get("arguments")
        if not got or None in got or not isinstance(shown, dict):
            return
        given = self._given(call)
        if shown not in got:
            expected = f"{literal(got[-1])}, with which the server was called"
            yield wrong(call.subject, (call.frame,), call.member("arguments"), expected)
        elif given and shown not in given:
            expected = f"{literal(given[-1])}, which the model gave"
            yield wrong(call.subject, (call.frame,), call.member("arguments"), expected)
        else:
            yield Witness(call.subject, (call.frame,))

    def _given(self, call: ToolCall) -> list[dict[str, Any]]:
        """Return the model's arguments for a tool; none if a recorder did not note them."""
        asked = [one for mark in before(self.trace, call.frame, ModelEnd) for one in mark.body.mcp]
        mine = [one for one in asked if (one.server, one.tool) == (call.server, call.tool)]
        noted = [one for one in map(arguments_of, mine) if one is not None]
        return noted if len(noted) == len(mine) else []


@rule(
    "mcp-server.result-shown",
    title="A completed call shows what its MCP server said",
    level=Level.SHOULD,
    needs=("mcp-tools",),
    also_on=(EXEC,),
)
class ResultShown(_OfCalls):
    """Judges that the result of a completed call has the texts of an answer of its server.

    The text does not show what a result holds, so they may stand anywhere in it. Left open: long
    texts, which may be cut, and calls without a result.
    """

    def judged(self, call: ToolCall, played: Played) -> Outcomes:
        said = list(_said(played, call))
        if not said or not obj(call.item.get("result")):
            return
        if any(_stands_in(one, call.item["result"]) for one in said):
            yield Witness(call.subject, (call.frame,))
            return
        expected = f"{literal(said[-1])} in it, which the server answered"
        yield wrong(call.subject, (call.frame,), call.member("result"), expected)


@rule(
    "mcp-server.result-told",
    title="The model is told what a tool of an MCP server said",
    level=Level.SHOULD,
    needs=("mcp-tools",),
    also_on=(EXEC,),
)
class ResultTold(OfServers):
    """Judges that an answer of a server stands in an output of a tool that the model gets then.

    A tool is for the model, so it gets what the tool says: derived, so SHOULD. Left open: answers
    after which the model was called no more, or got no outputs; long texts; turns that were not
    completed; plays with several threads, of which a model call may be of another one.
    """

    def begin(self) -> None:
        self._last: Frame | None = None

    @listen(*TURN_ENDS)
    def on_turn_end(self, frame: Frame) -> Outcomes:
        since, self._last = self._last, frame
        played = self.played(frame)
        calls = list(before(self.trace, frame, ModelCall))
        several = len({one.body.thread for one in calls}) > 1
        if played is None or several or not completed(frame):
            return
        asked = {one.number: one for one in played.requests}
        for answer, outputs in self._answers(frame, since):
            texts = [one for one in answer.texts if one and len(one) <= SHORT]
            request = asked.get(answer.number)
            if request is None or not outputs or not texts:
                continue
            subject = f"answer {request.number}, of {request.tool} of {request.server}"
            if all(any(_stands_in(text, one) for one in outputs) for text in texts):
                yield Witness(subject, (frame,))
                continue
            expected = f"an output for the model that has {literal(texts[0])}"
            yield Violation(subject, (frame,), expected, literal(outputs[0]))

    def _answers(self, end: Frame, since: Frame | None) -> list[tuple[McpAnswer, list[str]]]:
        """The answers in a turn, with the outputs of tools that the model got after each."""
        found: list[tuple[McpAnswer, list[str]]] = []
        for mark in self.trace.marks:
            if not marked_before(mark, end):
                continue
            earlier = since is not None and marked_before(mark, since)
            match mark.body:
                case McpAnswer() as answer if not earlier:
                    found.append((answer, []))
                case ModelCall(outputs=outputs):
                    for _, later in found:
                        later += outputs
                case _:
                    pass
        return found


def _said(played: Played, call: ToolCall) -> Iterator[str]:
    """The texts of the answers to the calls of a tool that are not too long."""
    for one in played.calls(call.server, call.tool):
        answer = played.answers.get(one.number)
        if answer is not None and not answer.failed:
            yield from (text for text in answer.texts if text and len(text) <= SHORT)


def _stands_in(words: str, value: Any) -> bool:
    """Return whether a text stands in a value, as it is or as JSON writes it."""
    whole = value if isinstance(value, str) else json.dumps(value)
    forms = (words, json.dumps(words)[1:-1], json.dumps(words, ensure_ascii=False)[1:-1])
    return any(form in whole for form in forms)
