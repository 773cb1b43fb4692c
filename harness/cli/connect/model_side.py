"""The model's side of a conversation by hand: a short message to every call, or a script."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from harness.client.target.profile import Profile
from harness.model.call_words import describe_missing_tool, entry_line, step_summary
from harness.model.model import ScriptedModel
from harness.model.parts import Message, MessageBody
from harness.model.script import ModelStep, Script
from harness.model.server import ModelServer
from harness.model.service import GateReporter
from harness.model.tool_parts import Run, RunBody
from harness.model.tools import ToolRow
from harness.model.wire.responses import ResponsesEncoder
from harness.protocol.values import arr
from harness.trace.marks import MarkBody, McpToolCall, ModelCall, ModelEnd
from harness.trace.recorder import Recorder

DEFAULT_DELTAS = ("Hello ", "from ", "the fake model.")
# Repetitions of an answer to every call: more than a session by hand can need.
_ENDLESS_CALLS = 100_000
# New input entries shown per call, the last ones.
_MAX_ENTRIES_SHOWN = 4

Tell = Callable[[str], None]


class _Gates(GateReporter):
    """Gates that also report when a command writes to one of the pipes."""

    def __init__(self, side: "ModelSide") -> None:
        super().__init__(side)
        self._side = side

    def reach(self, name: str) -> None:
        """Mark the gate as reached; report it if it is a pipe that commands write to."""
        super().reach(name)
        if self._side.pipes.get(name):
            self._side.pipe_written(name)


class ModelSide:
    """Scripted model of the conversation; `tell` prints a line about a call or a gate.

    If a call offers one of the `tools` of MCP servers, the trace notes it.
    """

    def __init__(
        self,
        models: ModelServer,
        recorder: Recorder,
        profile: Profile,
        tell: Tell,
        tools: Iterable[McpToolCall] = (),
    ) -> None:
        self.url = models.url
        self.gates = _Gates(self)
        self.pipes: dict[str, bool] = {}
        """Pipe of the workspace -> whether commands write to it."""
        self.description = ""
        self._models = models
        self._recorder = recorder
        self._profile = profile
        self._tell = tell
        self._tools = tuple(tools)
        self._encoder = ResponsesEncoder()
        self._numbers = itertools.count(1)
        self._before = 0
        self._entries = 0
        self.say(*DEFAULT_DELTAS)

    @property
    def streams(self) -> int:
        """Return the number of answers under way."""
        return self._model.open_streams

    def say(self, *deltas: str) -> None:
        """Answer every call with this message from now on."""
        step = _message_step(*deltas)
        self._play({"": [step] * _ENDLESS_CALLS}, f'every call: "{"".join(deltas)}"')

    def run(self, command: str) -> None:
        """Request a command at the next call; answer later calls with a message."""
        asks = ModelStep(reply=[Run(run=RunBody(command=command))])
        script = [asks, *([_message_step("Done.")] * _ENDLESS_CALLS)]
        self._play({"": script}, f'the next call: run "{command}"; then "Done."')

    def script(self, scripts: Mapping[str, Script], name: str) -> None:
        """Play a script from now on."""
        steps = sum(map(len, scripts.values()))
        self._play(scripts, f"{name}, {steps} step(s)")

    def state(self) -> list[str]:
        """Return lines about the address, script, calls, offered tools and gates."""
        model = self._model
        lines = [
            f"the model is at {self.url}",
            f"it says to {self.description}",
            f"calls: {self.calls}",
        ]
        if model.calls:
            offered = self._encoder.offered_tools(model.calls[-1].body)
            lines.append(f"tools offered: {', '.join(map(str, offered)) or 'none'}")
        lines += [f"waits at the gate {gate}" for gate in self.gates.waiting]
        if not self.description.startswith(("every call", "the next call")):
            lines.append(f"steps not used yet: {model.unplayed_count}")
        return lines

    @property
    def calls(self) -> int:
        """Return the number of calls so far."""
        return self._before + len(self._model.calls)

    def on_gate_reached(self, gate: str) -> None:
        """Show that an answer waits at a gate, or commands that read from a pipe."""
        if gate in self.pipes:
            self._tell(f"  pipe   commands that read from {gate} wait; :gate {gate} lets them go")
            return
        self._tell(f"  model  waits at the gate {gate}; :gate {gate} opens it")

    def on_gate_opened(self, gate: str) -> None:
        """Show that a gate was opened at which an answer waited."""
        who = "pipe " if gate in self.pipes else "model"
        self._tell(f"  {who}  the gate {gate} is open")

    def pipe_written(self, pipe: str) -> None:
        """Show that a command wrote to a pipe."""
        self._tell(f"  pipe   a command wrote to {pipe}")

    def _play(self, scripts: Mapping[str, Script], description: str) -> None:
        if self.description:
            self._before += len(self._model.calls)
        profile = self._profile
        before = self._before

        def mark(body: MarkBody) -> None:
            self._note_mark(model, body, before)

        model = ScriptedModel(
            scripts,
            self._encoder,
            gates=self.gates,
            mark=mark,
            tools=[ToolRow(**tool.row()) for tool in profile.tools],
            outcomes={str(name): texts for name, texts in profile.outcomes.items()},
            loose=profile.capabilities == "probe",
            numbers=self._numbers,
        )
        model.watch_tools(self._tools)
        self._model, self.description = model, description
        self._models.set_model(model)

    def _note_mark(self, model: ScriptedModel, body: MarkBody, before: int) -> None:
        """Show a call, and note it in the trace under a consecutive number."""
        match body:
            case ModelCall(call=number):
                call = model.calls[number - 1]
                self._recorder.mark(replace(body, call=before + number))
                entries = arr(call.body.get("input"))
                new = entries[self._entries :] if len(entries) > self._entries else entries
                self._entries = len(entries)
                plan = (
                    step_summary(call.step)
                    if call.step is not None
                    else "the script has no step left"
                )
                self._tell(f"  model  call {before + number}: answers {plan}")
                for entry in new[-_MAX_ENTRIES_SHOWN:]:
                    self._tell(f"         + {entry_line(entry)}")
                for problem in call.problems:
                    self._tell(f"         unexpected: {problem}")
            case ModelEnd(call=number):
                self._recorder.mark(replace(body, call=before + number))
                for unfit in model.missing_tools[-1:]:
                    self._tell(f"         unexpected: {describe_missing_tool(unfit)}")
                model.missing_tools.clear()
            case _:
                self._recorder.mark(body)


def _message_step(*deltas: str) -> ModelStep:
    return ModelStep(reply=[Message(message=MessageBody(deltas=list(deltas)))])
