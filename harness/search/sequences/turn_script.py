"""The model's side of one turn of a sequence, written call by call.

Texts hold the turn's nonce and a number, as in `sessions/turns.py`, so that a misplaced one is
recognized.
"""

from harness.search.fuzz.sessions.turns import COMMAND, FILE, Json, ModelTurn

# Replies for model calls that the turn does not plan, such as one after a steer or a compaction.
SPARE_CALLS = 3
SLOW_SECONDS = 1.05


class TurnScript:
    """The model calls of a turn in the order in which they are made."""

    def __init__(self, nonce: str) -> None:
        self.turn = ModelTurn(nonce)
        self._count = 0
        self._has_message = False

    def next_text(self) -> str:
        """Return a new text of this turn."""
        self._count += 1
        return f"{self.turn.nonce}n{self._count:03d}"

    def add_command(self, command: str = "", *, exit_status: int = 0) -> str:
        """Add a call that runs a command, a new one without `command`; return the command.

        A new command writes a file, so that the policy `untrusted` asks about it, and prints its
        text without being equal to it.
        """
        if not command:
            text = self.next_text()
            printed = f"{text[:3]}'{text[3:]}'"
            ending = f"; exit {exit_status}" if exit_status else ""
            command = f"echo {printed} > made-{text}.txt; echo {printed}{ending}"
        self._ask(COMMAND, command)
        self.turn.steps.append({"reply": [{"run": command}]})
        return command

    def add_held_command(self, folder: str = "") -> None:
        """Add a call that runs a command which prints, and waits until its pipe is opened.

        `folder` is where it runs, below the workspace; it begins with `/` unless it is empty.
        """
        text = self.next_text()
        pipe, printed = f"pipe-{text}", f"{text[:3]}'{text[3:]}'"
        self._ask(COMMAND, "")
        gate = f"{folder}/{pipe}".removeprefix("/")
        self.turn.pipes.append(gate)
        self.turn.gates.append(gate)
        command = f"echo {printed}; read line < {pipe}; echo {printed}"
        self.turn.steps.append({"reply": [{"run": command}]})

    def add_patch(self, changes: Json) -> None:
        """Add a call that changes files: the value of the scenario part `patch`."""
        self._ask(FILE, "")
        self.turn.steps.append({"reply": [{"patch": changes}]})

    def add_plan(self, *states: str) -> None:
        """Add a call that shares a plan: a step of each status, with the same texts each time."""
        steps = [
            {"step": f"{self.turn.nonce} step {number}", "status": status}
            for number, status in enumerate(states, 1)
        ]
        self.turn.steps.append({"reply": [{"update_plan": {"steps": steps}}]})

    def add_failure(self, failure: Json) -> None:
        """Add a call that fails: the value of the scenario part `fail`."""
        self.turn.faulty = True
        self.turn.steps.append({"fail": failure})

    def add_cut_reply(self) -> None:
        """Add a call whose stream is cut within a message."""
        self.turn.faulty = True
        deltas = [f"{self.next_text()} ", {"disconnect": True}]
        self.turn.steps.append({"reply": [{"message": {"deltas": deltas}}]})

    def add_slow_message(self) -> None:
        """Add a call that replies with a message, after more than a second."""
        deltas: list[str | Json] = [{"delay": {"seconds": SLOW_SECONDS}}, self.next_text()]
        self.turn.steps.append({"reply": [{"message": {"deltas": deltas}}]})
        self._has_message = True

    def add_message(self, text: str = "", *, hold: bool = False, reasoning: bool = False) -> str:
        """Add a call that replies with a message, held after its first delta; return the gate."""
        gate = f"gate-{self.next_text()}" if hold else ""
        deltas: list[str | Json] = [text or f"{self.next_text()} "]
        if hold:
            self.turn.gates.append(gate)
            deltas += [{"hold": gate}, f"{self.next_text()}."]
        thinking = [{"reasoning": {"summary": [self.next_text()]}}] if reasoning else []
        self.turn.steps.append({"reply": [*thinking, {"message": {"deltas": deltas}}]})
        self._has_message = True
        return gate

    def finish(self) -> ModelTurn:
        """Add the last message, unless the script has one, and spare calls; return the turn."""
        if not self._has_message:
            self.add_message()
        for _ in range(SPARE_CALLS):
            self.turn.steps.append({"reply": [{"message": self.next_text()}]})
        return self.turn

    def _ask(self, question: str, command: str) -> None:
        if not self.turn.asks:
            self.turn.asks_first = not self.turn.gates
        self.turn.asks.append(question)
        self.turn.commands.append(command)
