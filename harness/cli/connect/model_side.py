"""The model's side of a conversation by hand: a short message to every call, or a script."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from harness.client.target.profile import Profile
from harness.model.asks import Run, RunBody
from harness.model.call_words import entry_line, plan_of, unfit_words
from harness.model.conversations import NumberedEncoder
from harness.model.model import ScriptedModel
from harness.model.parts import Message, MessageBody
from harness.model.script import ModelStep, Script
from harness.model.server import ModelServer
from harness.model.service import ToldGates
from harness.model.tools import ToolRow
from harness.protocol.values import arr
from harness.trace.marks import MarkBody, McpAsked, ModelCall, ModelEnd
from harness.trace.recorder import Recorder

SAID = ("Hello ", "from ", "the fake model.")
# Every call gets the same answer, this often: a session by hand has no more.
_OFTEN = 100_000
# So many new entries of a call's input are told.
_ENTRIES = 4

Tell = Callable[[str], None]


class _Gates(ToldGates):
    """Gates that also tell when a command writes to one of the pipes."""

    def __init__(self, side: "ModelSide") -> None:
        super().__init__(side)
        self._side = side

    def reach(self, name: str) -> None:
        """Mark the gate as reached."""
        super().reach(name)
        if self._side.pipes.get(name):
            self._side.reached(name)


class ModelSide:
    """The model. `tell` says what it was asked and what it answers.

    Which of `tools` (of MCP servers) its calls offer is noted in the trace.
    """

    def __init__(
        self,
        models: ModelServer,
        recorder: Recorder,
        profile: Profile,
        tell: Tell,
        tools: Iterable[McpAsked] = (),
    ) -> None:
        self.url = models.url
        self.gates = _Gates(self)
        self.pipes: dict[str, bool] = {}
        """The pipes of the workspace; true for one that commands write to."""
        self.says = ""
        self._models = models
        self._recorder = recorder
        self._profile = profile
        self._tell = tell
        self._tools = tuple(tools)
        self._encoder = NumberedEncoder()
        self._before = 0
        self._entries = 0
        self.say(*SAID)

    @property
    def streams(self) -> int:
        """The number of answers that are under way."""
        return self._model.open_streams

    def say(self, *deltas: str) -> None:
        """From now on answer every call with this message."""
        step = _saying(*deltas)
        self._play({"": [step] * _OFTEN}, f'every call: "{"".join(deltas)}"')

    def run(self, command: str) -> None:
        """Ask for a command at the next call; every call after that gets a message."""
        asks = ModelStep(reply=[Run(run=RunBody(command=command))])
        script = [asks, *([_saying("Done.")] * _OFTEN)]
        self._play({"": script}, f'the next call: run "{command}"; then "Done."')

    def script(self, scripts: Mapping[str, Script], name: str) -> None:
        """From now on play a script."""
        steps = sum(map(len, scripts.values()))
        self._play(scripts, f"{name}, {steps} step(s)")

    def state(self) -> list[str]:
        """Return its script, its progress, the problems of its calls, and the tools offered."""
        model = self._model
        lines = [f"the model is at {self.url}", f"it says to {self.says}", f"calls: {self.calls}"]
        if model.calls:
            offered = self._encoder.offered(model.calls[-1].body)
            lines.append(f"tools offered: {', '.join(map(str, offered)) or 'none'}")
        lines += [f"waits at the gate {gate}" for gate in self.gates.waiting]
        if not self.says.startswith(("every call", "the next call")):
            lines.append(f"steps not used yet: {model.unplayed}")
        return lines

    @property
    def calls(self) -> int:
        """The number of calls so far."""
        return self._before + len(self._model.calls)

    def waits(self, gate: str) -> None:
        """An answer waits at a gate, or whatever command reads from a pipe."""
        if gate in self.pipes:
            self._tell(f"  pipe   commands that read from {gate} wait; :gate {gate} lets them go")
            return
        self._tell(f"  model  waits at the gate {gate}; :gate {gate} opens it")

    def opened(self, gate: str) -> None:
        """A gate was opened at which an answer waited."""
        who = "pipe " if gate in self.pipes else "model"
        self._tell(f"  {who}  the gate {gate} is open")

    def reached(self, pipe: str) -> None:
        """A command wrote to a pipe."""
        self._tell(f"  pipe   a command wrote to {pipe}")

    def _play(self, scripts: Mapping[str, Script], says: str) -> None:
        if self.says:
            self._before += len(self._model.calls)
        profile = self._profile
        before = self._before

        def mark(body: MarkBody) -> None:
            self._marked(model, body, before)

        model = ScriptedModel(
            scripts,
            self._encoder,
            gates=self.gates,
            mark=mark,
            tools=[ToolRow(**tool.model_dump()) for tool in profile.tools],
            outcomes={str(name): texts for name, texts in profile.outcomes.items()},
            loose=profile.capabilities == "probe",
        )
        model.watch_tools(self._tools)
        self._model, self.says = model, says
        self._models.serve(model)

    def _marked(self, model: ScriptedModel, body: MarkBody, before: int) -> None:
        """Tell of a call, and note it in the trace under a number of its own."""
        match body:
            case ModelCall(call=number):
                call = model.calls[number - 1]
                self._recorder.mark(replace(body, call=before + number))
                entries = arr(call.body.get("input"))
                new = entries[self._entries :] if len(entries) > self._entries else entries
                self._entries = len(entries)
                plan = (
                    plan_of(call.step) if call.step is not None else "the script has no step left"
                )
                self._tell(f"  model  call {before + number}: answers {plan}")
                for entry in new[-_ENTRIES:]:
                    self._tell(f"         + {entry_line(entry)}")
                for problem in call.problems:
                    self._tell(f"         unexpected: {problem}")
            case ModelEnd(call=number):
                self._recorder.mark(replace(body, call=before + number))
                for unfit in model.unfit[-1:]:
                    self._tell(f"         unexpected: {unfit_words(unfit)}")
                model.unfit.clear()
            case _:
                self._recorder.mark(body)


def _saying(*deltas: str) -> ModelStep:
    return ModelStep(reply=[Message(message=MessageBody(deltas=list(deltas)))])
