"""The scripted model: takes a call, plays the next step of its script, and keeps an audit.

Here: which step a call gets, gates, repetition, what it noticed about its caller. Not here: HTTP
(server, inprocess) and event names (wire). One value serves one scenario.
"""

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from harness.backend.asked import asked
from harness.backend.encoder import Encoder, Stream
from harness.backend.gates import Gates
from harness.backend.script import (
    Delta,
    Disconnect,
    Fail,
    Hold,
    Message,
    ModelStep,
    Part,
    Reasoning,
    Script,
    Usage,
    UsageBody,
)
from harness.backend.tracks import Tracks
from harness.trace.values import obj

Marker = Callable[[str, dict[str, Any]], object]

# The outcome of a call whose answer is not over.
OPEN = "open"
EXHAUSTED = "(the scenario's script has no further reply)"


class StreamCut(Exception):
    """The script closes the connection here."""


@dataclass(slots=True)
class Call:
    """One model call, for the audit: its thread ("" for none known) and the step it got."""

    number: int
    body: dict[str, Any]
    thread: str
    index: int
    step: ModelStep | None
    problems: list[str] = field(default_factory=list[str])
    outcome: str = OPEN


@dataclass(frozen=True, slots=True)
class Answer:
    """What to send: an HTTP status, headers, and a body or a stream of chunks."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    chunks: AsyncGenerator[bytes] | None = None


class ScriptedModel:
    """Plays the model's side of one scenario. `mark` is told of each call's beginning and end.

    `script` is one script, or one per thread alias; see `Tracks` for how a call finds its own.
    """

    def __init__(
        self,
        script: Script | Mapping[str, Script],
        encoder: Encoder,
        *,
        gates: Gates | None = None,
        mark: Marker | None = None,
        markers: Mapping[str, str] | None = None,
        strict: bool = False,
    ) -> None:
        self.gates = gates or Gates()
        self.calls: list[Call] = []
        self.open_streams = 0
        self._tracks = Tracks({"": script} if isinstance(script, list) else script, markers)
        self._encoder = encoder
        self._mark: Marker = mark or (lambda _kind, _data: None)
        self._strict = strict
        self._happened = anyio.Event()

    @property
    def unplayed(self) -> int:
        """How many steps no call has asked for."""
        return self._tracks.unplayed

    async def called(self, number: int, *, ended: bool = False) -> None:
        """Wait until the call of that number was made, or until its answer is over."""
        while len(self.calls) < number or (ended and self.calls[number - 1].outcome == OPEN):
            await self._happened.wait()

    def _note(self, kind: str, call: Call, **more: Any) -> None:
        """Tell the trace and whoever waits."""
        self._mark(kind, {"call": call.number, **more})
        self._happened.set()
        self._happened = anyio.Event()

    def answer(self, raw: bytes) -> Answer:
        """The answer to one call; its chunks must be iterated to the end or closed."""
        try:
            body = obj(json.loads(raw))
        except ValueError:
            body = {}
        call, step = self._assign(body)
        about = asked(body, self._encoder.user_texts(body))
        self._note("model-call", call, thread=call.thread, step=call.index, **about)
        if step.fail is not None and step.fail.status is not None:
            return self._http_failure(call, step.fail, step.fail.status)
        return Answer(
            200, {"content-type": self._encoder.content_type}, chunks=self._play(call, step)
        )

    def _assign(self, body: dict[str, Any]) -> tuple[Call, ModelStep]:
        texts = self._encoder.user_texts(body)
        track = self._tracks.owner(texts)
        index = track.next_step(len(texts)) if track else -1
        step = track.step(index) if track else None
        call = Call(
            number=len(self.calls) + 1,
            body=body,
            thread=track.alias if track else "",
            index=index,
            step=step,
            problems=self._encoder.orphans(body),
        )
        self.calls.append(call)
        if not body:
            call.problems.append("the body is no JSON object")
        if step is not None:
            self._check(call, step)
            return call, step
        if track is not None or self._strict:
            call.problems.append(f"call {call.number} is not in the script")
        return call, ModelStep.model_validate({"reply": [{"message": EXHAUSTED}]})

    def _check(self, call: Call, step: ModelStep) -> None:
        expected = step.expect.input_contains if step.expect else []
        whole = json.dumps(call.body.get("input"), ensure_ascii=False)
        for wanted in expected:
            if json.dumps(wanted, ensure_ascii=False)[1:-1] not in whole:
                call.problems.append(f"call {call.number}: its input does not contain {wanted!r}")

    def _http_failure(self, call: Call, fail: Fail, status: int) -> Answer:
        call.outcome = f"status {status}"
        self._note("model-end", call, outcome=call.outcome)
        headers = {"content-type": "application/json"}
        if fail.retry_after is not None:
            headers["retry-after"] = f"{fail.retry_after:g}"
        return Answer(
            status, headers, body=self._encoder.error_body(status, fail.code, fail.message)
        )

    async def _play(self, call: Call, step: ModelStep) -> AsyncGenerator[bytes]:
        stream = self._encoder.stream(call.number, call.body)
        self.open_streams += 1
        outcome = "dropped by the caller"
        try:
            yield stream.opened()
            if step.fail is not None:
                yield stream.failed(step.fail.code or "server_error", step.fail.message)
                outcome = f"failed {step.fail.code or 'server_error'}"
                return
            usage = UsageBody()
            for part in step.reply or []:
                if isinstance(part, Usage):
                    usage = part.usage
                async for chunk in self._part(stream, part):
                    yield chunk
            yield stream.completed(usage)
            outcome = "completed"
        except StreamCut:
            outcome = "disconnected"
            raise
        finally:
            self.open_streams -= 1
            call.outcome = outcome
            self._note("model-end", call, outcome=outcome)

    async def _part(self, stream: Stream, part: Part) -> AsyncGenerator[bytes]:
        match part:
            case Message():
                yield stream.message_started()
                said: list[str] = []
                async for delta in self._deltas(part.message.deltas):
                    said.append(delta)
                    yield stream.message_delta(delta)
                yield stream.message_done("".join(said), part.message.phase)
            case Reasoning():
                async for chunk in self._reasoning(stream, part):
                    yield chunk
            case Hold():
                await self.gates.pass_through(part.hold)
            case Disconnect():
                raise StreamCut
            case Usage():
                return

    async def _reasoning(self, stream: Stream, part: Reasoning) -> AsyncGenerator[bytes]:
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
            match entry:
                case Hold():
                    await self.gates.pass_through(entry.hold)
                case Disconnect():
                    raise StreamCut
                case _:
                    yield entry


def catalogue(model: str = "mock-model") -> Mapping[str, Any]:
    """The stock answer to `GET /models`."""
    return {"object": "list", "data": [{"id": model, "object": "model"}], "models": []}
