"""Answers one model call: turns the parts of a reply into chunks of a stream."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from harness.errors import HarnessError
from harness.model.asks import McpCall, ProviderPart, Review, ReviewBody, UpdatePlan
from harness.model.encoder import Encoder, Stream
from harness.model.gates import Gates
from harness.model.parts import (
    Cut,
    Delay,
    Delta,
    Disconnect,
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
from harness.model.tools import Offered, ToolRow, choose, intent_of
from harness.trace.marks import CallEnd, McpAsked, ModelEnd, PlanStep, Said

# So many characters of a message's text are kept for the mark; the text may be longer.
MAX_TEXT_CHARACTERS = 4000

PLAN_OPEN, PLAN_CLOSE = "<proposed_plan>\n", "\n</proposed_plan>"


class StreamCut(HarnessError):
    """Raised where the script closes the connection."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """An intent for which the server offered no tool that the tables know.

    `lacks` is the capability that the tool would also need.
    """

    intent: str
    offered: tuple[Offered, ...]
    lacks: str = ""


@dataclass(slots=True)
class Performance:
    """Plays one reply. `called` gathers the ids of the tool calls it made, `mcp` the tools of MCP
    servers among them, `unfit` the calls it could not make, `missed` the events at which it should
    have been cut and that never came. `said` are the messages it gave, with their phases ("" for
    none), `plans` the plans, `tokens` the number it counted, 0 while it has not said so. `complete`
    tells whether the answer was whole when it was cut.
    """

    stream: Stream
    encoder: Encoder
    body: Mapping[str, Any]
    gates: Gates
    tools: Sequence[ToolRow] = ()
    called: list[str] = field(default_factory=list[str])
    mcp: list[McpAsked] = field(default_factory=list[McpAsked])
    said: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    plans: list[tuple[PlanStep, ...]] = field(default_factory=list[tuple[PlanStep, ...]])
    tokens: int = 0
    unfit: list[Unfit] = field(default_factory=list[Unfit])
    missed: list[str] = field(default_factory=list[str])
    complete: bool = False

    async def play(self, step: ModelStep) -> AsyncGenerator[bytes]:
        """The chunks of the whole reply. Raises `StreamCut` where the script cuts it."""
        cuts = [entry.cut for _, entry in step.entries() if isinstance(entry, Disconnect)]
        at_events = {name: cut for cut in cuts for name in (cut.before, cut.after) if name}
        async for chunk in self._whole(step):
            cut: Cut | None = None
            if at_events:
                cut = at_events.pop(self.encoder.event_of(chunk), None)
            if cut is not None and cut.before:
                raise StreamCut
            yield chunk
            if cut is not None:
                self.complete = cut.after == "response.completed"
                raise StreamCut
        self.missed = list(at_events)

    async def _whole(self, step: ModelStep) -> AsyncGenerator[bytes]:
        yield self.stream.opened()
        if step.fail is not None:
            yield self.stream.failed(step.fail.code or "server_error", step.fail.message)
            if step.fail.disconnect:
                self.complete = True
                raise StreamCut
            return
        usage = UsageBody()
        for part in step.reply or []:
            if isinstance(part, Usage):
                usage = part.usage
            async for chunk in self._part(part):
                yield chunk
        self.tokens = usage.input + usage.output
        yield self.stream.completed(usage)

    async def _part(self, part: Part) -> AsyncGenerator[bytes]:
        if isinstance(part, ProviderPart):
            for chunk in self.stream.provider_item(part):
                yield chunk
            return
        match part:
            case Message():
                told = {"text": "", "phase": part.message.phase or ""}
                self.said.append(told)
                async for chunk in self._message(part.message, told=told):
                    yield chunk
            case PlanItem():
                plan = part.plan_item
                deltas = [PLAN_OPEN, *plan.deltas, PLAN_CLOSE]
                whole = MessageBody(deltas=deltas, phase=plan.phase)
                final = None if plan.final is None else f"{PLAN_OPEN}{plan.final}{PLAN_CLOSE}"
                async for chunk in self._message(whole, final):
                    yield chunk
            case Review():
                async for chunk in self._message(MessageBody(deltas=[review_text(part.review)])):
                    yield chunk
            case Reasoning():
                async for chunk in self._reasoning(part):
                    yield chunk
            case Malformed():
                yield part.malformed.raw
            case Usage() | Reroute():
                return
            case Hold() | Disconnect() | Delay():
                await self._pause(part)
            case _:
                intent, values = intent_of(part)
                offered = self.encoder.offered(self.body)
                chosen = choose(self.tools, offered, intent, values)
                if chosen is None or chosen.lacks:
                    lacks = chosen.lacks if chosen else ""
                    self.unfit.append(Unfit(intent, tuple(offered), lacks))
                    return
                call_id, chunks = self.stream.tool_call(chosen)
                self.called.append(call_id)
                if isinstance(part, McpCall):
                    asked = part.mcp_call
                    given = json.dumps(asked.arguments)
                    self.mcp.append(McpAsked(asked.server, asked.tool, given))
                if isinstance(part, UpdatePlan):
                    steps = part.update_plan.steps
                    self.plans.append(tuple(PlanStep(s.step, s.status) for s in steps))
                for chunk in chunks:
                    yield chunk

    async def _message(
        self, body: MessageBody, final: str | None = None, told: dict[str, str] | None = None
    ) -> AsyncGenerator[bytes]:
        yield self.stream.message_started()
        said: list[str] = []
        async for delta in self._deltas(body.deltas):
            said.append(delta)
            if told is not None:
                told["text"] += delta[: MAX_TEXT_CHARACTERS - len(told["text"])]
            yield self.stream.message_delta(delta)
        yield self.stream.message_done("".join(said) if final is None else final, body.phase)

    async def _reasoning(self, part: Reasoning) -> AsyncGenerator[bytes]:
        stream = self.stream
        yield stream.reasoning_started()
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
        yield stream.reasoning_done(summary, raw)

    async def _deltas(self, block: str | list[Delta]) -> AsyncGenerator[str]:
        for entry in [block] if isinstance(block, str) else block:
            if isinstance(entry, str):
                yield entry
            else:
                await self._pause(entry)

    async def _pause(self, entry: Hold | Disconnect | Delay) -> None:
        match entry:
            case Hold():
                await self.gates.pass_through(entry.hold)
            case Disconnect():
                if entry.here:
                    raise StreamCut
            case Delay():
                # The only wait by the clock on the model's side: the scenario is about time.
                with anyio.move_on_after(entry.delay.seconds):
                    await anyio.sleep_forever()


def review_text(body: ReviewBody) -> str:
    """A reviewer's answer, in the form that models are asked for."""
    findings = [
        {
            "title": one.title,
            "body": one.body,
            "confidence_score": 0.9,
            "priority": 1,
            "code_location": {
                "absolute_file_path": one.path,
                "line_range": {"start": one.start, "end": one.end},
            },
        }
        for one in body.findings
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
    """The model that answers, by the step; "" for the requested one."""
    for part in step.reply or []:
        if isinstance(part, Reroute):
            return part.reroute.model
    return ""


def reply_summary(
    performance: Performance, step: ModelStep, call: int, outcome: CallEnd
) -> ModelEnd:
    """Summarise the streamed answer to a call. Texts are cut at MAX_TEXT_CHARACTERS."""
    odd = any(isinstance(entry, Malformed | Delay) for _, entry in step.entries())
    said = (Said(one["text"], one["phase"]) for one in performance.said)
    return ModelEnd(
        call=call,
        outcome=outcome,
        usage=performance.tokens,
        plans=tuple(performance.plans),
        answers=answering_model(step),
        texts=() if odd else tuple(said),
        tools=0 if odd else len(performance.called),
        mcp=() if odd else tuple(performance.mcp),
        **(step.fail.error_fields() if step.fail is not None else NO_ERROR),
    )
