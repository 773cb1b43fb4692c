"""The answer to one model call: parts of a reply, as chunks of a stream."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.errors import HarnessError
from harness.model.encoder import Encoder, Stream
from harness.model.gates import Gates
from harness.model.pace import Pacer, sleep
from harness.model.parts import (
    Cut,
    Delay,
    Delta,
    Disconnect,
    Headers,
    Hold,
    Malformed,
    Message,
    MessageBody,
    Part,
    PlanItem,
    Reasoning,
    Reroute,
    Usage,
    UsageBody,
)
from harness.model.script import NO_ERROR, ModelStep
from harness.model.tool_parts import McpCall, ProviderPart, Review, ReviewBody, UpdatePlan
from harness.model.tools import OfferedTool, ToolRow, choose_tool, intent_of
from harness.trace.marks import CallEnd, McpToolCall, ModelEnd, ModelMessage, PlanStep

# Maximum characters of a text in a mark.
MAX_TEXT_CHARACTERS = 4000

PLAN_OPEN, PLAN_CLOSE = "<proposed_plan>\n", "\n</proposed_plan>"


class StreamCut(HarnessError):
    """Exception: the script closes the connection."""


@dataclass(frozen=True, slots=True)
class MissingTool:
    """An intent for which the server offered no known tool, or a part that its wire cannot say.

    `lacks` is the capability that the offered tool lacks for it, "" if no tool fits at all.
    `reason` says why the wire cannot say it, "" if the tool is missing.
    """

    intent: str
    offered_tools: tuple[OfferedTool, ...]
    lacks: str = ""
    reason: str = ""


@dataclass(slots=True)
class Performance:
    """The play of one reply.

    `tool_call_ids` are the ids of its tool calls, `mcp_calls` those of MCP tools, `missing_tools`
    the calls that it could not make, `missed_events` the events at which it should have been cut
    and that never came. `messages` are its messages, with their phases ("" for none), `plans` its
    plans, `tokens` its total usage, 0 until it is reported. `is_complete` is whether the answer was
    whole when it was cut. `pacer` waits before each piece, None for no
    waits.
    """

    stream: Stream
    encoder: Encoder
    body: Mapping[str, Any]
    gates: Gates
    tools: Sequence[ToolRow] = ()
    tool_call_ids: list[str] = field(default_factory=list[str])
    mcp_calls: list[McpToolCall] = field(default_factory=list[McpToolCall])
    messages: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    plans: list[tuple[PlanStep, ...]] = field(default_factory=list[tuple[PlanStep, ...]])
    tokens: int = 0
    missing_tools: list[MissingTool] = field(default_factory=list[MissingTool])
    missed_events: list[str] = field(default_factory=list[str])
    is_complete: bool = False
    pacer: Pacer | None = None

    async def play(self, step: ModelStep) -> AsyncGenerator[bytes]:
        """Yield the chunks of the whole reply. Raises `StreamCut` if the script cuts it."""
        cuts = [entry.as_cut for _, entry in step.entries() if isinstance(entry, Disconnect)]
        at_events = {name: cut for cut in cuts for name in (cut.before, cut.after) if name}
        async for chunk in self._reply_chunks(step):
            cut: Cut | None = None
            if at_events:
                cut = at_events.pop(self.encoder.event_of(chunk), None)
            if cut is not None and cut.before:
                raise StreamCut
            yield chunk
            if cut is not None:
                self.is_complete = cut.after == "response.completed"
                raise StreamCut
        self.missed_events = list(at_events)

    async def _reply_chunks(self, step: ModelStep) -> AsyncGenerator[bytes]:
        usage = UsageBody()
        for part in step.reply or []:
            if isinstance(part, Usage):
                usage = part.usage
        yield self.stream.start(usage)
        if step.fail is not None:
            yield self.stream.fail(step.fail.code or "server_error", step.fail.message)
            if step.fail.disconnect:
                self.is_complete = True
                raise StreamCut
            return
        for part in step.reply or []:
            async for chunk in self._part_chunks(part):
                yield chunk
        self.tokens = usage.input + usage.output if self.encoder.says_usage(self.body) else 0
        yield self.stream.complete(usage)

    async def _part_chunks(self, part: Part) -> AsyncGenerator[bytes]:
        if isinstance(part, ProviderPart):
            for chunk in self.stream.provider_item(part):
                yield chunk
            return
        match part:
            case Message():
                record = {"text": "", "phase": part.message.phase or ""}
                self.messages.append(record)
                async for chunk in self._message_chunks(part.message, record=record):
                    yield chunk
            case PlanItem():
                plan = part.plan_item
                deltas = [PLAN_OPEN, *plan.deltas, PLAN_CLOSE]
                message = MessageBody(deltas=deltas, phase=plan.phase)
                final = None if plan.final is None else f"{PLAN_OPEN}{plan.final}{PLAN_CLOSE}"
                async for chunk in self._message_chunks(message, final):
                    yield chunk
            case Review():
                async for chunk in self._message_chunks(
                    MessageBody(deltas=[review_text(part.review)])
                ):
                    yield chunk
            case Reasoning():
                async for chunk in self._reasoning_chunks(part):
                    yield chunk
            case Malformed():
                yield part.malformed.raw
            case Usage() | Reroute() | Headers():
                return
            case Hold() | Disconnect() | Delay():
                await self._pause(part)
            case _:
                intent, values = intent_of(part)
                tools = self.encoder.offered_tools(self.body)
                chosen = choose_tool(self.tools, tools, intent, values)
                if chosen is None or chosen.lacks:
                    lacks = chosen.lacks if chosen else ""
                    self.missing_tools.append(MissingTool(intent, tuple(tools), lacks))
                    return
                if chosen.tool.takes_free_text and not self.encoder.has_free_text_tools:
                    name = self.encoder.name
                    reason = f"{name} calls functions only, and {chosen.tool} takes free text"
                    self.missing_tools.append(MissingTool(intent, tuple(tools), reason=reason))
                    return
                call_id, chunks = self.stream.tool_call(chosen)
                self.tool_call_ids.append(call_id)
                if isinstance(part, McpCall):
                    mcp_call = part.mcp_call
                    arguments = json.dumps(mcp_call.arguments)
                    self.mcp_calls.append(McpToolCall(mcp_call.server, mcp_call.tool, arguments))
                if isinstance(part, UpdatePlan):
                    steps = part.update_plan.steps
                    self.plans.append(tuple(PlanStep(s.step, s.status) for s in steps))
                size = len(json.dumps(chosen.arguments)) // len(chunks)
                for chunk in chunks:
                    if self.pacer is not None:
                        await self.pacer.wait(size)
                    yield chunk

    async def _message_chunks(
        self, body: MessageBody, final: str | None = None, record: dict[str, str] | None = None
    ) -> AsyncGenerator[bytes]:
        yield self.stream.start_message()
        deltas: list[str] = []
        async for delta in self._deltas(body.deltas):
            deltas.append(delta)
            if record is not None:
                record["text"] += delta[: MAX_TEXT_CHARACTERS - len(record["text"])]
            yield self.stream.message_delta(delta)
        yield self.stream.end_message("".join(deltas) if final is None else final, body.phase)

    async def _reasoning_chunks(self, part: Reasoning) -> AsyncGenerator[bytes]:
        stream = self.stream
        yield stream.start_reasoning()
        summary: list[str] = []
        for index, block in enumerate(part.reasoning.summary):
            yield stream.summary_part(index)
            summary.append("")
            async for delta in self._deltas(block):
                summary[-1] += delta
                yield stream.summary_delta(index, delta)
        raw: list[str] = []
        for index, block in enumerate(part.reasoning.raw):
            raw.append("")
            async for delta in self._deltas(block):
                raw[-1] += delta
                yield stream.raw_delta(index, delta)
        yield stream.end_reasoning(summary, raw)

    async def _deltas(self, block: str | list[Delta]) -> AsyncGenerator[str]:
        for entry in [block] if isinstance(block, str) else block:
            if isinstance(entry, str):
                if self.pacer is not None:
                    await self.pacer.wait(len(entry))
                yield entry
            else:
                await self._pause(entry)

    async def _pause(self, entry: Hold | Disconnect | Delay) -> None:
        match entry:
            case Hold():
                await self.gates.pass_through(entry.hold)
            case Disconnect():
                if entry.is_here:
                    raise StreamCut
            case Delay():
                await sleep(entry.delay.seconds)


def review_text(body: ReviewBody) -> str:
    """Return a reviewer's answer as JSON, in the form that review models are asked for."""
    findings = [
        {
            "title": finding.title,
            "body": finding.body,
            "confidence_score": 0.9,
            "priority": 1,
            "code_location": {
                "absolute_file_path": finding.path,
                "line_range": {"start": finding.start, "end": finding.end},
            },
        }
        for finding in body.findings
    ]
    verdict = "patch is correct" if body.correct else "patch is incorrect"
    return json.dumps(
        {
            "findings": findings,
            "overall_correctness": verdict,
            "overall_explanation": body.explanation,
            "overall_confidence_score": 0.9,
        }
    )


def answering_model(step: ModelStep) -> str:
    """Return the model that answers instead of the requested one, "" for no other."""
    for part in step.reply or []:
        if isinstance(part, Reroute):
            return part.reroute.model
    return ""


def further_headers(step: ModelStep) -> dict[str, str]:
    """Return the HTTP headers that the parts `headers` of the reply add."""
    parts = [part.headers for part in step.reply or [] if isinstance(part, Headers)]
    return {name.lower(): value for headers in parts for name, value in headers.items()}


def reply_summary(
    performance: Performance, step: ModelStep, call: int, outcome: CallEnd
) -> ModelEnd:
    """Return a summary of the streamed answer to a call. Texts are cut at MAX_TEXT_CHARACTERS."""
    is_irregular = any(isinstance(entry, Malformed | Delay) for _, entry in step.entries())
    messages = (ModelMessage(message["text"], message["phase"]) for message in performance.messages)
    return ModelEnd(
        call=call,
        outcome=outcome,
        usage=performance.tokens,
        plans=tuple(performance.plans),
        answers=answering_model(step),
        texts=() if is_irregular else tuple(messages),
        tools=0 if is_irregular else len(performance.tool_call_ids),
        mcp=() if is_irregular else tuple(performance.mcp_calls),
        **(step.fail.error_fields() if step.fail is not None else NO_ERROR),
    )
