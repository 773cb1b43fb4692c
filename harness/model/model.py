"""The scripted model: answers a call by the next step of its script, and records all calls.

One instance serves one scenario.
"""

import json
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from harness.model.encoder import Encoder
from harness.model.gates import Gates
from harness.model.play import (
    MAX_TEXT_CHARACTERS,
    Performance,
    StreamCut,
    Unfit,
    answering_model,
    reply_summary,
)
from harness.model.script import Fail, ModelStep, Script, ToolOutput, When
from harness.model.tools import ToolRow, choose, outcome_of
from harness.model.tracks import Tracks
from harness.protocol.values import obj
from harness.trace.marks import CallEnd, FileWritten, MarkBody, McpAsked, ModelCall, ModelEnd

Marker = Callable[[MarkBody], object]

# So many characters of a line are hardly said by chance.
TELLING = 12
EXHAUSTED = "(the scenario's script has no further reply)"


@dataclass(slots=True)
class Call:
    """One recorded model call: its thread ("" for unknown) and the step it got.

    `tool_calls` holds the ids of the tool calls that its answer asked for; `ended` is what
    came of it, None while the answer is not over.
    """

    number: int
    body: dict[str, Any]
    thread: str
    index: int
    step: ModelStep | None
    problems: list[str] = field(default_factory=list[str])
    ended: ModelEnd | None = None
    tool_calls: list[str] = field(default_factory=list[str])

    @property
    def told(self) -> str:
        """Return the outcome in words, for people."""
        return "open" if self.ended is None else self.ended.told


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to send: an HTTP status, headers, and a body or a stream of chunks."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    chunks: AsyncGenerator[bytes] | None = None


class ScriptedModel:
    """Plays the model's side of one scenario. `mark` is called at each call's beginning and end.

    `script` is one script, or one per thread alias; `Tracks` finds the script of a call. `tools`
    and `outcomes` are the profile's tables. With `loose` the server may word the outcome of a tool
    call in its own way, and only an outcome that contradicts the script is a problem. `unfit` holds
    intents for which the server offered no tool; the first of them sets `stuck`, since the script
    cannot go on.
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
    ) -> None:
        self.gates = gates or Gates()
        self.calls: list[Call] = []
        self.open_streams = 0
        self.unfit: list[Unfit] = []
        self.stuck = anyio.Event()
        self._tracks = Tracks({"": script} if isinstance(script, list) else script, markers)
        self._encoder = encoder
        self._mark: Marker = mark or (lambda _body: None)
        self._strict = strict
        self._tools = tools
        self._outcomes = dict(outcomes or {})
        self._loose = loose
        self._happened = anyio.Event()
        self._watched: dict[str, None] = {}
        self._watched_tools: tuple[McpAsked, ...] = ()

    def watch(self, file: FileWritten) -> None:
        """From now on note in the marks of calls which hold the path, or lines, of this file."""
        lines = [line.strip() for line in (file.text or "").splitlines()]
        told = [line for line in lines if TELLING <= len(line) <= MAX_TEXT_CHARACTERS]
        self._watched |= dict.fromkeys([file.path, *told])

    def watch_tools(self, tools: Iterable[McpAsked]) -> None:
        """From now on note in the marks of calls which of these tools they offer."""
        self._watched_tools = tuple(tools)

    @property
    def unplayed(self) -> int:
        """The number of steps that no call has used."""
        return self._tracks.unplayed

    @property
    def unplayed_steps(self) -> dict[str, list[int]]:
        """The indexes of the steps that no call has used, by the alias of their thread."""
        return {track.alias: track.unplayed_steps for track in self._tracks.all}

    @property
    def over(self) -> bool:
        """Return whether every step was used, and as often as it says."""
        return all(track.over for track in self._tracks.all)

    async def called(self, number: int, *, ended: bool = False) -> None:
        """Wait until the call of that number was made, or until its answer is over."""
        while len(self.calls) < number or (ended and self.calls[number - 1].ended is None):
            await self._happened.wait()

    def _note(self, body: ModelCall | ModelEnd) -> None:
        """Tell the trace and whoever waits."""
        self._mark(body)
        self._happened.set()
        self._happened = anyio.Event()

    def skip_script(self) -> None:
        """From now on answer every call with a plain message, as one beyond the script."""
        for track in self._tracks.all:
            track.skip()

    def claims(self, raw: bytes) -> bool:
        """Return whether a call contains the marker of one of the scenario's threads."""
        return self._tracks.claims(self._encoder.user_texts(_parsed(raw)))

    def answer(self, raw: bytes) -> Answer:
        """The answer to one call; its chunks must be iterated to the end or closed."""
        body = _parsed(raw)
        call, step = self._assign(body)
        self._note(
            ModelCall(
                call=call.number,
                thread=call.thread,
                step=call.index,
                outputs=tuple(self._told(call)),
                held=self._held(body),
                offered=self._offered(body),
                **self._encoder.asked(body),
            )
        )
        if step.fail is not None and step.fail.status is not None:
            return self._http_failure(call, step.fail, step.fail.status)
        headers = {"content-type": self._encoder.content_type}
        model = answering_model(step)
        if model:
            headers.update(self._encoder.rerouted(model))
        return Answer(200, headers, chunks=self._play(call, step))

    def _assign(self, body: dict[str, Any]) -> tuple[Call, ModelStep]:
        texts = self._encoder.user_texts(body)
        track = self._tracks.owner(texts)
        holds = _holds(body)

        def fits(when: When) -> bool:
            return _contains(holds, when.input_contains) and not any(map(holds, when.input_lacks))

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
        call.problems += self._history(call, texts)
        if step is not None:
            self._check(call, step)
            return call, step
        if track is not None or self._strict:
            call.problems.append(f"call {call.number} is not in the script")
        return call, ModelStep.model_validate({"reply": [{"message": EXHAUSTED}]})

    def _held(self, body: dict[str, Any]) -> tuple[str, ...]:
        """Return the watched texts that stand anywhere in a call."""
        if not self._watched:
            return ()
        holds = _holds({"input": body})
        return tuple(one for one in self._watched if holds(one))

    def _offered(self, body: Mapping[str, Any]) -> tuple[McpAsked, ...]:
        if not self._watched_tools:
            return ()
        offered = self._encoder.offered(body)

        def can_call(one: McpAsked) -> bool:
            values: dict[str, Any] = {"server": one.server, "tool": one.tool, "arguments": {}}
            return choose(self._tools, offered, "mcp_call", values) is not None

        return tuple(one for one in self._watched_tools if can_call(one))

    def _history(self, call: Call, texts: list[str]) -> list[str]:
        """Problems: tool calls of the thread's last reply in this turn that the input lacks."""
        mine = [one for one in self.calls if one is not call and one.thread == call.thread]
        last = mine[-1] if mine else None
        if last is None or last.ended is None or not last.ended.completed:
            return []
        # A new input of the user can begin a turn, and what then stands in the input is open.
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
        holds = _holds(call.body)
        for wanted in step.expect.input_contains:
            if not _contains(holds, [wanted]):
                texts = [wanted] if isinstance(wanted, str) else wanted
                names = " or ".join(map(repr, texts))
                call.problems.append(f"call {call.number}: its input does not contain {names}")
        for unwanted in step.expect.input_lacks:
            if holds(unwanted):
                call.problems.append(f"call {call.number}: its input contains {unwanted!r}")
        if step.expect.tool_output is not None:
            call.problems += self._outputs(call, step.expect.tool_output)
        for key, name in step.expect.compared.items():
            call.problems += self._compared(call, key, name)

    def _compared(self, call: Call, key: str, name: str) -> list[str]:
        """Problems of a call that is compared with the call of a named step."""
        named = [one for one in self.calls if one.step is not None and one.step.alias == name]
        if not named:
            return [f"call {call.number}: no call of the step {name!r} was made before it"]
        return compared(key, call, named[-1], self._encoder)

    def _told(self, call: Call) -> list[str]:
        """The outcomes of the tool calls of the thread's last reply, as this call reports them."""
        mine = [one for one in self.calls if one is not call and one.thread == call.thread]
        if not mine or not mine[-1].tool_calls:
            return []
        outputs = self._encoder.outputs(call.body)
        found = [outputs[one] for one in mine[-1].tool_calls if one in outputs]
        return [output for output in found if len(output) <= MAX_TEXT_CHARACTERS]

    def _outputs(self, call: Call, wanted: ToolOutput) -> list[str]:
        """Problems of the outputs of the tool calls of the thread's last reply."""
        called: list[str] = next(
            (
                one.tool_calls
                for one in reversed(self.calls)
                if one is not call and one.thread == call.thread and one.tool_calls
            ),
            list[str](),
        )
        outputs = self._encoder.outputs(call.body)
        problems: list[str] = []
        for call_id in called:
            output = outputs.get(call_id)
            if output is None:
                problems.append(f"call {call.number}: no output for the tool call {call_id}")
                continue
            found = outcome_of(output, self._outcomes)
            if not self._agree(found, wanted.outcome):
                problems.append(
                    f"call {call.number}: the tool output is {found or 'of no known wording'}, "
                    f"expected {wanted.outcome}: {output[:200]!r}"
                    + (
                        ""
                        if found
                        else f"; the profile can name it: [outcomes] {wanted.outcome} = [...]"
                    )
                )
            if wanted.contains is not None and not _told(wanted.contains, output):
                problems.append(
                    f"call {call.number}: the tool output does not contain {wanted.contains!r}: "
                    f"{output[:200]!r}"
                )
            if wanted.lacks is not None and wanted.lacks in output:
                problems.append(
                    f"call {call.number}: the tool output contains {wanted.lacks!r}: "
                    f"{output[:200]!r}"
                )
        if not called:
            problems.append(f"call {call.number}: no tool was called before it")
        return problems

    def _agree(self, found: str, wanted: str) -> bool:
        """Return whether an output is worded as the wanted outcome.

        Where the server may use its own words, a denial can read like a failure, and words that
        are not in the tables are accepted.
        """
        if not self._loose:
            return found == wanted
        return not found or (found == "ok") is (wanted == "ok")

    def _http_failure(self, call: Call, fail: Fail, status: int) -> Answer:
        outcome = CallEnd.STATUS
        call.ended = ModelEnd(
            call=call.number, outcome=outcome, status=status, **fail.error_fields()
        )
        self._note(call.ended)
        body = fail.sent()
        if body is None:
            body = self._encoder.error_body(status, fail.code, fail.message)
        return Answer(status, fail.headers(time.time()), body=body)

    async def _play(self, call: Call, step: ModelStep) -> AsyncGenerator[bytes]:
        stream = self._encoder.stream(call.number, call.body)
        performance = Performance(stream, self._encoder, call.body, self.gates, self._tools)
        call.tool_calls = performance.called
        self.open_streams += 1
        outcome = CallEnd.DROPPED
        try:
            async for chunk in performance.play(step):
                yield chunk
            outcome = _whole(step)
        except StreamCut:
            outcome = _whole(step) if performance.complete else CallEnd.DISCONNECTED
            raise
        finally:
            self.open_streams -= 1
            call.problems += [f"call {call.number}: no event {one}" for one in performance.missed]
            self.unfit += performance.unfit
            if performance.unfit:
                self.stuck.set()
            end = reply_summary(performance, step, call.number, outcome)
            # Said because the script had nothing left to say: nobody need show that.
            call.ended = replace(end, texts=()) if call.step is None else end
            self._note(call.ended)


def compared(key: str, call: Call, other: Call, encoder: Encoder) -> list[str]:
    """Problems of a call compared with an earlier one, by the key of `Expect`."""
    mine, theirs = encoder.asked(call.body)["model"], encoder.asked(other.body)["model"]
    earlier = f"call {other.number}"
    if key == "same_model":
        if mine == theirs:
            return []
        return [f"call {call.number}: it asks the model {mine!r}, and {earlier} asked {theirs!r}"]
    schema = encoder.schema(other.body)
    if schema is None or (encoder.schema(call.body) == schema) is (key == "same_schema"):
        return []
    what = "does not ask" if key == "same_schema" else "asks"
    return [f"call {call.number}: it {what} for the output schema that {earlier} asked for"]


def _holds(body: Mapping[str, Any]) -> Callable[[str], bool]:
    """A function that says whether a text occurs anywhere in a call's input."""
    whole = json.dumps(body.get("input"), ensure_ascii=False)
    return lambda said: json.dumps(said, ensure_ascii=False)[1:-1] in whole


def _contains(holds: Callable[[str], bool], wanted: Sequence[str | list[str]]) -> bool:
    """Return whether each text occurs; of a list of texts, one of them."""
    return all(holds(one) if isinstance(one, str) else any(map(holds, one)) for one in wanted)


def _told(wanted: str, output: str) -> bool:
    """Return whether a tool's output contains this text, plainly or encoded as JSON."""
    quoted = (json.dumps(wanted, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
    return wanted in output or any(one in output for one in quoted)


def _whole(step: ModelStep) -> CallEnd:
    """Return the end of a stream that told all of its step."""
    return CallEnd.COMPLETED if step.fail is None else CallEnd.FAILED


def _parsed(raw: bytes) -> dict[str, Any]:
    """The body of a call, empty where it is no JSON object."""
    try:
        return obj(json.loads(raw))
    except ValueError:
        return {}


def catalogue(model: str = "mock-model") -> Mapping[str, Any]:
    """The stock answer to `GET /models`."""
    return {"object": "list", "data": [{"id": model, "object": "model"}], "models": []}
