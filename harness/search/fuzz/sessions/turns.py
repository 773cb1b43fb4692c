"""The model's words in one generated turn, as steps of a scenario's model side.

Each text, command and file has the nonce of its turn and a number, so that what turns up in the
wrong place can be told; a command may be run again in a later turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.search.fuzz.sessions.chooser import Chooser

Json = dict[str, Any]
COMMAND, FILE = "item/commandExecution/requestApproval", "item/fileChange/requestApproval"
# What a model call can hold beside its last message, and what can go wrong with it.
PARTS = ("run", "patch", "plan", "reasoning", "hold", "message", "two", "pipe", "failing")
TOOLS = ("run", "patch", "plan")
# The policy under which a server asks about what it does not trust, and remembers the answer.
UNTRUSTED = "untrusted"
FAULTS = ("status", "overload", "disconnect", "malformed", "error-event")
# Model calls that nobody planned: after a steer, for example.
SPARE = 2


@dataclass(slots=True)
class ModelTurn:
    """The model calls of one turn, without the conditions under which they are played.

    `gates` are those at which it holds, in order, pipes of commands among them; `asks` the server
    requests that come of it where everything is asked about, in order; `commands` has for each of
    these the command that can be run again, "" for none. `asks_first`: its first question comes
    before all gates.
    """

    nonce: str
    steps: list[Json] = field(default_factory=list[Json])
    gates: list[str] = field(default_factory=list[str])
    pipes: list[str] = field(default_factory=list[str])
    asks: list[str] = field(default_factory=list[str])
    commands: list[str] = field(default_factory=list[str])
    files: dict[str, str] = field(default_factory=dict[str, str])
    faulty: bool = False
    asks_first: bool = False


class TurnWriter:
    """Writes the model's side of turns; `parts` and `faults` are those of this session."""

    def __init__(self, chooser: Chooser, parts: set[str], faults: set[str]) -> None:
        self._chooser = chooser
        self._parts = parts
        self._faults = faults
        self._count = 0
        self._before: Sequence[str] = ()
        self._writes = False

    def plain(self, nonce: str) -> ModelTurn:
        """A turn that says one thing."""
        turn = ModelTurn(nonce)
        turn.steps.append({"reply": [self._message(turn, hold=False)]})
        return self._spared(turn)

    def turn(self, nonce: str, *, policy: str = "never", before: Sequence[str] = ()) -> ModelTurn:
        """Any turn; under a policy that asks, one that mostly has something to ask about.

        `before` are commands that it may run once more, word for word.
        """
        turn, choose = ModelTurn(nonce), self._chooser
        self._before, self._writes = before, policy == UNTRUSTED
        asks = policy != "never"
        tools = [tool for tool in TOOLS if tool in self._parts]
        rounds = [(0, 1), (1, 4), (2, 3)] if asks else [(0, 3), (1, 4), (2, 2)]
        for _ in range(choose.weighted(rounds) if tools else 0):
            self._call(turn, tools)
        self._fault(turn)
        reply = [self._reasoning(turn)] if self._has("reasoning", 30) else []
        turn.steps.append({"reply": [*reply, self._message(turn, hold=self._has("hold", 45))]})
        return self._spared(turn)

    def wanted(
        self, nonce: str, part: str, *, policy: str = "never", before: Sequence[str] = ()
    ) -> ModelTurn:
        """A turn that begins with this part: `run`, `patch`, `pipe`, or `hold` in a message.

        `approved` is a command after whose approval the model holds.
        """
        turn, choose = ModelTurn(nonce), self._chooser
        self._before, self._writes = before, policy == UNTRUSTED
        if part == "pipe":
            turn.steps.append({"reply": [{"run": self._piped(turn, self._text(turn))}]})
            turn.asks.append(COMMAND)
            turn.commands.append("")
        elif part != "hold":
            first = "run" if part == "approved" else part
            kinds = [first, *choose.some([tool for tool in TOOLS if tool in self._parts], 15)]
            turn.steps.append({"reply": [self._tool(turn, kind) for kind in kinds]})
        turn.asks_first = part != "hold"
        hold = part in ("hold", "approved") or choose.chance(60)
        turn.steps.append({"reply": [self._message(turn, hold=hold)]})
        return self._spared(turn)

    def again(self, nonce: str, command: str) -> ModelTurn:
        """A turn that runs a command of an earlier one, word for word."""
        turn = ModelTurn(nonce, asks=[COMMAND], commands=[command])
        turn.steps += [{"reply": [{"run": command}]}, {"reply": [self._message(turn, hold=False)]}]
        return self._spared(turn)

    def _spared(self, turn: ModelTurn) -> ModelTurn:
        for _ in range(SPARE):
            turn.steps.append({"reply": [{"message": self._text(turn)}]})
        return turn

    def _call(self, turn: ModelTurn, tools: list[str]) -> None:
        """A model call that asks for tools."""
        self._fault(turn)
        choose = self._chooser
        reply: list[Json] = [self._reasoning(turn)] if self._has("reasoning", 25) else []
        if self._has("message", 30):
            reply.append(self._message(turn, hold=self._has("hold", 20)))
        number = 2 if self._has("two", 40) else 1
        reply += [self._tool(turn, choose.one(tools)) for _ in range(number)]
        if self._has("hold", 15):
            reply.append({"hold": self._gate(turn)})
        turn.steps.append({"reply": reply})

    def _tool(self, turn: ModelTurn, kind: str) -> Json:
        name = self._text(turn)
        match kind:
            case "patch":
                turn.asks.append(FILE)
                turn.commands.append("")
                if self._chooser.chance(35):
                    turn.files[f"{name}.txt"] = f"old {name}\n"
                    lines = {"old": f"old {name}\n", "new": f"new {name}\n"}
                    return {"patch": {"update": {f"{name}.txt": lines}}}
                return {"patch": {"add": {f"{name}.txt": f"text {name}\n"}}}
            case "plan":
                steps = [{"step": name, "status": "inProgress"}]
                return {"update_plan": {"steps": steps}}
            case _:
                turn.asks.append(COMMAND)
                repeats = self._before and self._chooser.chance(65)
                command = self._chooser.one(self._before) if repeats else self._command(turn, name)
                turn.commands.append("" if "pipe-" in command else command)
                return {"run": command}

    def _command(self, turn: ModelTurn, name: str) -> str:
        """A command that prints the name, and does not have it in its words as it is printed.

        One that only reads may be trusted: where the untrusted are asked about, all write.
        """
        printed = _printed(name)
        if self._has("pipe", 15):
            return self._piped(turn, name)
        writes = f"echo {printed} > made-{name}.txt; echo {printed}"
        if self._has("failing", 15):
            return f"{writes if self._writes else f'echo {printed}'}; exit 3"
        return writes if self._writes else self._chooser.one([f"echo {printed}", writes])

    def _piped(self, turn: ModelTurn, name: str) -> str:
        """A command that waits for its pipe to be opened."""
        pipe = f"pipe-{name}"
        turn.pipes.append(pipe)
        turn.gates.append(pipe)
        return f"read line < {pipe}; echo {_printed(name)}"

    def _fault(self, turn: ModelTurn) -> None:
        """A call that goes wrong, before the one that is right."""
        if not self._faults or not self._chooser.chance(25):
            return
        turn.faulty = True
        match self._chooser.one(sorted(self._faults)):
            case "status":
                turn.steps.append({"fail": {"status": 500}})
            case "overload":
                turn.steps.append({"fail": {"status": 503}})
            case "error-event":
                turn.steps.append({"fail": {"code": "server_error", "message": "for once"}})
            case "malformed":
                bad = {"bytes": "data: {broken\n\n"}
                turn.steps.append({"reply": [{"malformed": bad}, {"disconnect": True}]})
            case _:
                message: list[Json] = [{"message": {"deltas": [self._text(turn)]}}]
                message = message if self._chooser.chance(50) else []
                turn.steps.append({"reply": [*message, {"disconnect": True}]})

    def _message(self, turn: ModelTurn, *, hold: bool) -> Json:
        deltas: list[str | Json] = [f"{self._text(turn)} "]
        deltas += [{"hold": self._gate(turn)}] if hold else []
        deltas += [f"{self._text(turn)}."] if hold or self._chooser.chance(40) else []
        return {"message": {"deltas": deltas}}

    def _reasoning(self, turn: ModelTurn) -> Json:
        return {"reasoning": {"summary": [self._text(turn)]}}

    def _gate(self, turn: ModelTurn) -> str:
        gate = f"gate-{self._text(turn)}"
        turn.gates.append(gate)
        return gate

    def _text(self, turn: ModelTurn) -> str:
        self._count += 1
        return f"{turn.nonce}n{self._count:03d}"

    def _has(self, part: str, percent: int) -> bool:
        return part in self._parts and self._chooser.chance(percent)


def _printed(name: str) -> str:
    """A word of a shell that prints the name, and is not the name."""
    return f"{name[:3]}'{name[3:]}'"
