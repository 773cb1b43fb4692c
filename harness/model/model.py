"""The scripted model: answers each call by the next step of its script, and records all calls.

One instance serves one scenario.
"""

import json
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import anyio

from harness.model.encoder import RESPONSES_API, Encoder
from harness.model.gates import Gates
from harness.model.pace import Pacer, Sleep, sleep
from harness.model.performance import (
    MAX_TEXT_CHARACTERS,
    MissingTool,
    Performance,
    StreamCut,
    answering_model,
    further_headers,
    reply_summary,
)
from harness.model.recalled import EarlierTexts
from harness.model.script import Fail, ModelStep, Script, ToolOutput, When
from harness.model.tools import ToolRow, choose_tool, outcome_of
from harness.model.tracks import Tracks
from harness.protocol.values import arr, obj
from harness.trace.marks import CallEnd, FileWritten, MarkBody, McpToolCall, ModelCall, ModelEnd

Marker = Callable[[MarkBody], object]

# Shorter lines of a file may occur in a call by chance.
MIN_LINE_CHARACTERS = 12
EXHAUSTED_MESSAGE = "(the scenario's script has no further reply)"


@dataclass(slots=True)
class Call:
    """One recorded model call: its thread ("" if unknown) and its step with its index.

    `tool_calls` holds the ids of the tool calls in its answer; `end` is the outcome, None while the
    answer is in progress. `wire` is the name of the call's API.
    """

    number: int
    body: dict[str, Any]
    thread: str
    index: int
    step: ModelStep | None
    problems: list[str] = field(default_factory=list[str])
    end: ModelEnd | None = None
    tool_calls: list[str] = field(default_factory=list[str])
    wire: str = ""

    @property
    def outcome_text(self) -> str:
        """Return the outcome in words, for people."""
        return "open" if self.end is None else self.end.outcome_text


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to send: an HTTP status, headers, and a body or a stream of chunks."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    chunks: AsyncGenerator[bytes] | None = None


class ScriptedModel:
    """The model's side of one scenario. `mark` is called at each call's beginning and end.

    `script` is one script, or one per thread alias; `Tracks` finds the script of a call. `tools`
    and `outcomes` are the profile's tables. With `loose` the server may word the outcome of a tool
    call in its own way, and only an outcome that contradicts the script is a problem.
    `missing_tools` holds intents for which the server offered no tool; the first of them sets
    `is_stuck`, since the script cannot continue. `numbers` number its answers, in the ids of items.
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
        tools: Sequence[ToolRow] = (),
        outcomes: Mapping[str, Sequence[str]] | None = None,
        loose: bool = False,
        numbers: Iterator[int] | None = None,
    ) -> None:
        self.gates = gates or Gates()
        self.sleep: Sleep = sleep
        self.calls: list[Call] = []
        self.open_streams = 0
        self.missing_tools: list[MissingTool] = []
        self.is_stuck = anyio.Event()
        self._tracks = Tracks({"": script} if isinstance(script, list) else script, markers)
        self._encoder = encoder
        self._mark: Marker = mark or (lambda _body: None)
        self._strict = strict
        self._tools = tools
        self._outcomes = dict(outcomes or {})
        self._loose = loose
        self._numbers = numbers
        self._next_event = anyio.Event()
        self._watched: dict[str, None] = {}
        self._watched_tools: tuple[McpToolCall, ...] = ()
        self._earlier_texts = EarlierTexts()

    def watch(self, file: FileWritten) -> None:
        """Record in the marks of later calls whether they contain this file's path or lines."""
        lines = [line.strip() for line in (file.text or "").splitlines()]
        distinctive = [
            line for line in lines if MIN_LINE_CHARACTERS <= len(line) <= MAX_TEXT_CHARACTERS
        ]
        self._watched |= dict.fromkeys([file.path, *distinctive])

    def watch_tools(self, tools: Iterable[McpToolCall]) -> None:
        """Record in the marks of later calls which of these tools they offer."""
        self._watched_tools = tuple(tools)

    @property
    def unplayed_count(self) -> int:
        """Return the number of steps that no call has used."""
        return self._tracks.unplayed_count

    @property
    def unplayed_steps(self) -> dict[str, list[int]]:
        """Return thread alias -> indexes of the steps that no call has used."""
        return {track.alias: track.unplayed_steps for track in self._tracks.all}

    @property
    def is_finished(self) -> bool:
        """Return whether every step was used as often as it says."""
        return all(track.is_finished for track in self._tracks.all)

    async def wait_for_call(self, number: int, *, until_ended: bool = False) -> None:
        """Wait until call `number` (from 1) was made, or until its answer has ended."""
        while len(self.calls) < number or (until_ended and self.calls[number - 1].end is None):
            await self._next_event.wait()

    def _add_mark(self, body: ModelCall | ModelEnd) -> None:
        """Add a mark to the trace, and wake all waiters."""
        self._mark(body)
        self._next_event.set()
        self._next_event = anyio.Event()

    def skip_answered(self, raw: bytes) -> None:
        """Skip the steps whose answers a call's input contains: another process gave them."""
        items = map(obj, arr(_parse_body(raw).get("input")))
        said = [_is_of_model(item) for item in items]
        for before, now in pairwise([False, *said]):
            if now and not before:
                self._tracks.all[0].next_step(0)

    def skip_script(self) -> None:
        """Answer every later call with a stock message, like calls beyond the script."""
        for track in self._tracks.all:
            track.skip()

    def claims(self, raw: bytes, wire: Encoder | None = None) -> bool:
        """Return whether a call contains the marker of one of the scenario's threads."""
        body = (wire or self._encoder).read(_parse_body(raw))
        return self._tracks.claims(self._encoder.user_texts(body))

    def answer(self, raw: bytes, wire: Encoder | None = None) -> Answer:
        """Return the answer to one call; its chunks must be iterated to the end or closed.

        `wire` is the API of the call, by default the model's own. A step that it cannot say is
        answered by an empty reply, and the reason is in `missing_tools`.
        """
        wire = wire or self._encoder
        body = wire.read(_parse_body(raw))
        call, step = self._assign(body)
        call.wire = wire.name
        step = self._sayable(call, step, wire)
        contents = self._encoder.call_contents(body)
        self._add_mark(
            ModelCall(
                call=call.number,
                thread=call.thread,
                wire="" if wire.name == RESPONSES_API else wire.name,
                step=call.index,
                outputs=tuple(self._reported_outcomes(call)),
                held=self._watched_texts_in(body),
                offered=self._watched_tools_in(body),
                recalled=self._earlier_texts.contained_in(body, contents["user_texts"]),
                **contents,
            )
        )
        self._earlier_texts.add(self._encoder.user_texts(body))
        is_streamed = wire.is_streamed(body)
        if step.fail is not None and step.fail.status is not None:
            return self._http_failure(call, step.fail, step.fail.status, wire)
        if step.fail is not None and not is_streamed:
            return self._http_failure(call, step.fail, wire.status_of(step.fail.code or ""), wire)
        headers = {"content-type": "text/event-stream" if is_streamed else "application/json"}
        model = answering_model(step)
        if model:
            headers.update(wire.reroute_headers(model))
        headers.update(further_headers(step))
        return Answer(200, headers, chunks=self._play(call, step, wire))

    def _sayable(self, call: Call, step: ModelStep, wire: Encoder) -> ModelStep:
        """Return the step, or an empty reply if the wire cannot say it; then the model is stuck."""
        for part in wire.unsayable(step, call.body):
            self.missing_tools.append(MissingTool(part.part, (), part.capability, part.reason))
            self.is_stuck.set()
            return ModelStep(reply=[])
        return step

    def _assign(self, body: dict[str, Any]) -> tuple[Call, ModelStep]:
        texts = self._encoder.user_texts(body)
        holds = _text_finder(body)

        def fits(when: When) -> bool:
            return _contains_all(holds, when.input_contains) and not any(
                map(holds, when.input_lacks)
            )

        track = self._tracks.track_of(texts, fits)
        index = track.next_step(len(texts), fits) if track else -1
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
        call.problems += self._missing_outputs(call, texts)
        if step is not None:
            self._check(call, step)
            return call, step
        if track is not None or self._strict:
            call.problems.append(f"call {call.number} is not in the script")
        return call, ModelStep.model_validate({"reply": [{"message": EXHAUSTED_MESSAGE}]})

    def _watched_texts_in(self, body: dict[str, Any]) -> tuple[str, ...]:
        """Return the watched texts that occur anywhere in a call."""
        if not self._watched:
            return ()
        holds = _text_finder({"input": body})
        return tuple(watched for watched in self._watched if holds(watched))

    def _watched_tools_in(self, body: Mapping[str, Any]) -> tuple[McpToolCall, ...]:
        if not self._watched_tools:
            return ()
        offered_tools = self._encoder.offered_tools(body)

        def can_call(tool: McpToolCall) -> bool:
            values: dict[str, Any] = {"server": tool.server, "tool": tool.tool, "arguments": {}}
            return choose_tool(self._tools, offered_tools, "mcp_call", values) is not None

        return tuple(tool for tool in self._watched_tools if can_call(tool))

    def _missing_outputs(self, call: Call, texts: list[str]) -> list[str]:
        """Return a problem for each tool call of the last reply whose output is missing."""
        calls_of_thread = [
            earlier
            for earlier in self.calls
            if earlier is not call and earlier.thread == call.thread
        ]
        last = calls_of_thread[-1] if calls_of_thread else None
        if last is None or last.end is None or not last.end.is_complete:
            return []
        # New user input may begin a turn, whose input need not contain the outputs.
        if self._encoder.user_texts(last.body) != texts:
            return []
        outputs = self._encoder.outputs(call.body)
        return [
            f"call {call.number}: its input does not hold the output of the tool call {call_id}"
            for call_id in last.tool_calls
            if call_id not in outputs
        ]

    def _check(self, call: Call, step: ModelStep) -> None:
        if step.expect is None:
            return
        holds = _text_finder(call.body)
        for expected in step.expect.input_contains:
            if not _contains_all(holds, [expected]):
                texts = [expected] if isinstance(expected, str) else expected
                names = " or ".join(map(repr, texts))
                call.problems.append(f"call {call.number}: its input does not contain {names}")
        for unwanted in step.expect.input_lacks:
            if holds(unwanted):
                call.problems.append(f"call {call.number}: its input contains {unwanted!r}")
        if step.expect.tool_output is not None:
            call.problems += self._check_outputs(call, step.expect.tool_output)
        for key, name in step.expect.comparisons.items():
            call.problems += self._compare_with_step(call, key, name)

    def _compare_with_step(self, call: Call, key: str, name: str) -> list[str]:
        """Return problems of comparing a call with the last call of a named step."""
        calls_of_step = [
            earlier
            for earlier in self.calls
            if earlier.step is not None and earlier.step.alias == name
        ]
        if not calls_of_step:
            return [f"call {call.number}: no call of the step {name!r} was made before it"]
        return compare_calls(key, call, calls_of_step[-1], self._encoder)

    def _reported_outcomes(self, call: Call) -> list[str]:
        """Return the outputs in this call for the tool calls of the thread's last reply."""
        calls_of_thread = [
            earlier
            for earlier in self.calls
            if earlier is not call and earlier.thread == call.thread
        ]
        if not calls_of_thread or not calls_of_thread[-1].tool_calls:
            return []
        outputs = self._encoder.outputs(call.body)
        outputs_of_calls = [
            outputs[call_id] for call_id in calls_of_thread[-1].tool_calls if call_id in outputs
        ]
        return [output for output in outputs_of_calls if len(output) <= MAX_TEXT_CHARACTERS]

    def _check_outputs(self, call: Call, expected: ToolOutput) -> list[str]:
        """Return problems of the outputs for the tool calls of the thread's last reply."""
        call_ids: list[str] = next(
            (
                earlier.tool_calls
                for earlier in reversed(self.calls)
                if earlier is not call and earlier.thread == call.thread and earlier.tool_calls
            ),
            list[str](),
        )
        outputs = self._encoder.outputs(call.body)
        problems: list[str] = []
        for call_id in call_ids:
            output = outputs.get(call_id)
            if output is None:
                problems.append(f"call {call.number}: no output for the tool call {call_id}")
                continue
            outcome = outcome_of(output, self._outcomes)
            if not self._is_outcome(outcome, expected.outcome):
                problems.append(
                    f"call {call.number}: the tool output is {outcome or 'of no known wording'}, "
                    f"expected {expected.outcome}: {output[:200]!r}"
                    + (
                        ""
                        if outcome
                        else f"; the profile can name it: [outcomes] {expected.outcome} = [...]"
                    )
                )
            if expected.contains is not None and not _output_contains(expected.contains, output):
                problems.append(
                    f"call {call.number}: the tool output does not contain {expected.contains!r}: "
                    f"{output[:200]!r}"
                )
            if expected.lacks is not None and expected.lacks in output:
                problems.append(
                    f"call {call.number}: the tool output contains {expected.lacks!r}: "
                    f"{output[:200]!r}"
                )
        if not call_ids:
            problems.append(f"call {call.number}: no tool was called before it")
        return problems

    def _is_outcome(self, outcome: str, expected: str) -> bool:
        """Return whether an output's wording means the expected outcome.

        If the server may use its own words, a denial can read like a failure, and unknown words are
        accepted.
        """
        if not self._loose:
            return outcome == expected
        return not outcome or (outcome == "ok") is (expected == "ok")

    def _http_failure(self, call: Call, fail: Fail, status: int, wire: Encoder) -> Answer:
        outcome = CallEnd.STATUS
        call.end = ModelEnd(call=call.number, outcome=outcome, status=status, **fail.error_fields())
        self._add_mark(call.end)
        body = fail.body_to_send()
        if body is None:
            body = wire.error_body(status, fail.code, fail.message)
        return Answer(status, fail.headers(time.time()), body=body)

    async def _play(self, call: Call, step: ModelStep, wire: Encoder) -> AsyncGenerator[bytes]:
        model = answering_model(step)
        number = next(self._numbers) if self._numbers else call.number
        stream = wire.stream(number, {**call.body, "model": model} if model else call.body)
        performance = Performance(stream, wire, call.body, self.gates, self._tools)
        pace = self._tracks.pace_of(call.thread, call.index)
        if pace is not None:
            performance.pacer = Pacer(pace, call.number, self.sleep)
        call.tool_calls = performance.tool_call_ids
        self.open_streams += 1
        outcome = CallEnd.DROPPED
        try:
            async for chunk in performance.play(step):
                yield chunk
            outcome = _end_of_whole_stream(step)
        except StreamCut:
            outcome = (
                _end_of_whole_stream(step) if performance.is_complete else CallEnd.DISCONNECTED
            )
            raise
        finally:
            self.open_streams -= 1
            call.problems += [
                f"call {call.number}: no event {event}" for event in performance.missed_events
            ]
            self.missing_tools += performance.missing_tools
            if performance.missing_tools:
                self.is_stuck.set()
            end = reply_summary(performance, step, call.number, outcome)
            # The server need not show a reply beyond the script.
            call.end = replace(end, texts=()) if call.step is None else end
            if call.end.is_complete:
                self._earlier_texts.add(message.text for message in call.end.texts)
            self._add_mark(call.end)


def compare_calls(key: str, call: Call, other: Call, encoder: Encoder) -> list[str]:
    """Return problems of comparing a call with an earlier one; `key` is one of `Expect`."""
    model, earlier_model = (
        encoder.call_contents(call.body)["model"],
        encoder.call_contents(other.body)["model"],
    )
    earlier = f"call {other.number}"
    if key == "same_model":
        if model == earlier_model:
            return []
        return [
            f"call {call.number}: it asks the model {model!r}, and "
            f"{earlier} asked {earlier_model!r}"
        ]
    schema = encoder.schema(other.body)
    if schema is None or (encoder.schema(call.body) == schema) is (key == "same_schema"):
        return []
    verb = "does not ask" if key == "same_schema" else "asks"
    return [f"call {call.number}: it {verb} for the output schema that {earlier} asked for"]


def _text_finder(body: Mapping[str, Any]) -> Callable[[str], bool]:
    """Return a predicate for texts that occur anywhere in a call's input."""
    input_json = json.dumps(body.get("input"), ensure_ascii=False)
    return lambda wanted: json.dumps(wanted, ensure_ascii=False)[1:-1] in input_json


def _contains_all(holds: Callable[[str], bool], texts: Sequence[str | list[str]]) -> bool:
    """Return whether each entry occurs; of an entry that is a list, at least one text."""
    return all(
        holds(entry) if isinstance(entry, str) else any(map(holds, entry)) for entry in texts
    )


def _output_contains(expected: str, output: str) -> bool:
    """Return whether a tool's output contains this text, literally or encoded as JSON."""
    quoted = (json.dumps(expected, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
    return expected in output or any(form in output for form in quoted)


def _end_of_whole_stream(step: ModelStep) -> CallEnd:
    """Return the outcome of a stream that played its whole step."""
    return CallEnd.COMPLETED if step.fail is None else CallEnd.FAILED


def _is_of_model(item: Mapping[str, Any]) -> bool:
    """Return whether an item of an input is part of a model's answer."""
    if "role" in item:
        return item["role"] == "assistant"
    return not str(item.get("type", "")).endswith("_output")


def _parse_body(raw: bytes) -> dict[str, Any]:
    """Return the body of a call; {} if it is not a JSON object."""
    try:
        return obj(json.loads(raw))
    except ValueError:
        return {}


def model_list(model: str = "mock-model") -> Mapping[str, Any]:
    """Return the constant answer to `GET /models`."""
    return {"object": "list", "data": [{"id": model, "object": "model"}], "models": []}
