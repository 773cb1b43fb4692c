"""The model's side of one generated turn, as steps of a scenario.

Each text, command and file has the nonce of its turn and a number, so that misplaced ones are
recognized; a command may be repeated in a later turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.scenario.filler import foreign_name
from harness.search.fuzz.sessions.chooser import Chooser

Json = dict[str, Any]
COMMAND, FILE = "item/commandExecution/requestApproval", "item/fileChange/requestApproval"
# Parts of model calls besides the last message.
PARTS = ("run", "patch", "plan", "reasoning", "hold", "message", "two", "pipe", "failing")
TOOLS = ("run", "patch", "plan")
# The policy under which untrusted commands need approval, which can be given for the session.
UNTRUSTED = "untrusted"
FAULTS = ("status", "overload", "disconnect", "malformed", "error-event")
# Steps for unplanned model calls, for example after a steer.
SPARE_CALLS = 2
FOREIGN_EVERY = 3
"""One of so many texts has a name in another script, which servers may damage."""


@dataclass(slots=True)
class ModelTurn:
    """The model calls of one turn, without the conditions under which they are played.

    `gates` are those at which it holds, in order, including pipes of commands; `asks` the server
    requests that it causes if everything needs approval, in order; `commands` has for each of these
    the command that can be repeated, "" for none. `asks_first`: a server request comes before all
    gates.
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
    """Generator of the model's side of turns, with the parts and faults of this session."""

    def __init__(self, chooser: Chooser, parts: set[str], faults: set[str]) -> None:
        self._chooser = chooser
        self._parts = parts
        self._faults = faults
        self._count = 0
        self._before: Sequence[str] = ()
        self._writes = False

    def plain_turn(self, nonce: str) -> ModelTurn:
        """Return a turn of one message."""
        turn = ModelTurn(nonce)
        turn.steps.append({"reply": [self._message(turn, hold=False)]})
        return self._add_spare_calls(turn)

    def any_turn(
        self, nonce: str, *, policy: str = "never", before: Sequence[str] = ()
    ) -> ModelTurn:
        """Return any turn; under a policy with approvals, mostly one that needs some.

        `before` are commands that it may repeat, word for word.
        """
        turn, choose = ModelTurn(nonce), self._chooser
        self._before, self._writes = before, policy == UNTRUSTED
        asks = policy != "never"
        tools = [tool for tool in TOOLS if tool in self._parts]
        rounds = [(0, 1), (1, 4), (2, 3)] if asks else [(0, 3), (1, 4), (2, 2)]
        for _ in range(choose.pick_weighted(rounds) if tools else 0):
            self._call(turn, tools)
        self._fault(turn)
        reply = [self._reasoning(turn)] if self._has("reasoning", 30) else []
        turn.steps.append({"reply": [*reply, self._message(turn, hold=self._has("hold", 45))]})
        return self._add_spare_calls(turn)

    def turn_with(
        self, nonce: str, part: str, *, policy: str = "never", before: Sequence[str] = ()
    ) -> ModelTurn:
        """Return a turn that begins with this part: `run`, `patch`, `pipe`, `hold` or `approved`.

        `approved` is a command after whose approval the model holds.
        """
        turn, choose = ModelTurn(nonce), self._chooser
        self._before, self._writes = before, policy == UNTRUSTED
        if part == "pipe":
            turn.steps.append({"reply": [{"run": self._piped_command(turn, self._text(turn))}]})
            turn.asks.append(COMMAND)
            turn.commands.append("")
        elif part != "hold":
            first = "run" if part == "approved" else part
            kinds = [first, *choose.pick_some([tool for tool in TOOLS if tool in self._parts], 15)]
            turn.steps.append({"reply": [self._tool(turn, kind) for kind in kinds]})
        turn.asks_first = part != "hold"
        hold = part in ("hold", "approved") or choose.chance(60)
        turn.steps.append({"reply": [self._message(turn, hold=hold)]})
        return self._add_spare_calls(turn)

    def repeat_turn(self, nonce: str, command: str) -> ModelTurn:
        """Return a turn that repeats a command of an earlier one, word for word."""
        turn = ModelTurn(nonce, asks=[COMMAND], commands=[command])
        turn.steps += [{"reply": [{"run": command}]}, {"reply": [self._message(turn, hold=False)]}]
        return self._add_spare_calls(turn)

    def _add_spare_calls(self, turn: ModelTurn) -> ModelTurn:
        for _ in range(SPARE_CALLS):
            turn.steps.append({"reply": [{"message": self._text(turn)}]})
        return turn

    def _call(self, turn: ModelTurn, tools: list[str]) -> None:
        """Add a model call with tool calls."""
        self._fault(turn)
        choose = self._chooser
        reply: list[Json] = [self._reasoning(turn)] if self._has("reasoning", 25) else []
        if self._has("message", 30):
            reply.append(self._message(turn, hold=self._has("hold", 20)))
        number = 2 if self._has("two", 40) else 1
        reply += [self._tool(turn, choose.pick(tools)) for _ in range(number)]
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
                    new_line = with_foreign_name(f"new {name}", self._count)
                    lines = {"old": f"old {name}\n", "new": f"{new_line}\n"}
                    return {"patch": {"update": {f"{name}.txt": lines}}}
                return {"patch": {"add": {f"{name}.txt": f"text {name}\n"}}}
            case "plan":
                steps = [{"step": name, "status": "inProgress"}]
                return {"update_plan": {"steps": steps}}
            case _:
                turn.asks.append(COMMAND)
                repeats = self._before and self._chooser.chance(65)
                command = self._chooser.pick(self._before) if repeats else self._command(turn, name)
                turn.commands.append("" if "pipe-" in command else command)
                return {"run": command}

    def _command(self, turn: ModelTurn, name: str) -> str:
        """Return a command that prints the name, but does not contain it in the printed form.

        Read-only commands may be trusted: under the policy `untrusted` all write.
        """
        printed = _quoted_word(name)
        if self._has("pipe", 15):
            return self._piped_command(turn, name)
        writes = f"echo {printed} > made-{name}.txt; echo {printed}"
        if self._has("failing", 15):
            return f"{writes if self._writes else f'echo {printed}'}; exit 3"
        return writes if self._writes else self._chooser.pick([f"echo {printed}", writes])

    def _piped_command(self, turn: ModelTurn, name: str) -> str:
        """Return a command that waits at a new pipe of the turn."""
        pipe = f"pipe-{name}"
        turn.pipes.append(pipe)
        turn.gates.append(pipe)
        return f"read line < {pipe}; echo {_quoted_word(name)}"

    def _fault(self, turn: ModelTurn) -> None:
        """Add a failing call before the right one, in some cases."""
        if not self._faults or not self._chooser.chance(25):
            return
        turn.faulty = True
        match self._chooser.pick(sorted(self._faults)):
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
        deltas: list[str | Json] = [f"{with_foreign_name(self._text(turn), self._count)} "]
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


def with_foreign_name(text: str, number: int) -> str:
    """Return the text, every third time followed by a name in another script."""
    return text if number % FOREIGN_EVERY else f"{text} {foreign_name(number // FOREIGN_EVERY)}"


def _quoted_word(name: str) -> str:
    """Return a shell word that prints the name, but is not equal to it."""
    return f"{name[:3]}'{name[3:]}'"
