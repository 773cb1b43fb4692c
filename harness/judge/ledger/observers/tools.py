"""Choices about calls of MCP tools and of the client's tools."""

from collections.abc import Iterator
from typing import Final

from harness.judge.base import listen, on, on_kind
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.words import presence, word
from harness.protocol.values import MISSING, dig, obj, text
from harness.trace.frame import Frame, Kind

_CALL: Final = "item/tool/call"


@observes("item.mcp-tool-error", "item.mcp-progress", "approval.mcp-tools")
class McpCalls(Observer):
    """Calls of tools of MCP servers."""

    def begin(self) -> None:
        """Set up the state."""
        self._asked = False

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> None:
        """Note that the client got a request which is not a call of its tool."""
        self._asked = self._asked or frame.method != _CALL

    @on("item/mcpToolCall/progress")
    def on_item_mcp_tool_call_progress(self, frame: Frame) -> Iterator[Choice]:
        """Yield that progress is passed on."""
        yield Choice("item.mcp-progress", "passed on", frame)

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Iterator[Choice]:
        """Yield whether a call needed an approval, and the members of a failed one."""
        item = obj(dig(frame.params, "item"))
        if item.get("type") != "mcpToolCall":
            return
        value = "asked about" if self._asked else "not asked about"
        yield Choice("approval.mcp-tools", value, frame)
        self._asked = False
        if item.get("status") == "failed":
            error, result = (presence(item.get(name, MISSING)) for name in ("error", "result"))
            yield Choice("item.mcp-tool-error", f"failed, error {error}, result {result}", frame)


@observes("item.dynamic-call-asked", "item.dynamic-call-failed", "item.dynamic-success")
class ClientCalls(Observer):
    """Calls of tools that the client carries out."""

    def begin(self) -> None:
        """Set up the state."""
        self._asked: dict[str, list[Frame]] = {}
        self._failed: set[str] = set()

    @on(_CALL)
    def on__call(self, frame: Frame) -> None:
        """Note that a client is requested to run its tool."""
        self._asked.setdefault(text(obj(frame.params).get("callId")), []).append(frame)

    @listen(("own", ""))
    def on_own_answer(self, frame: Frame) -> None:
        """Note an answer of a client that is an error or does not say `success`."""
        question = (
            self.scene.request_of(frame) if frame.kind in (Kind.RESPONSE, Kind.ERROR) else None
        )
        if question is None or question.method != _CALL:
            return
        if frame.kind is Kind.ERROR or dig(frame.result, "success") is MISSING:
            self._failed.add(text(obj(question.params).get("callId")))

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Iterator[Choice]:
        """Yield the status of a failed call, and whether all clients got the request."""
        item = obj(dig(frame.params, "item"))
        if item.get("type") != "dynamicToolCall":
            return
        call, status = text(item.get("id")), word(item.get("status"))
        if call in self._failed:
            yield Choice("item.dynamic-call-failed", f"its item is {status}", frame)
        elif item.get("success") is False:
            yield Choice("item.dynamic-success", f"its item is {status}", frame)
        questions = self._asked.get(call, [])
        facts = self.scene.facts.thread_of(frame.params)
        if questions and len(facts.subscribers) > 1:
            several = len({question.connection for question in questions}) > 1
            yield Choice("item.dynamic-call-asked", "all" if several else "one client", frame)
