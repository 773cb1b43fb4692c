"""A conversation while operations are added to it, one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.scenario.client_steps import MAIN_CONNECTION
from harness.search.fuzz.sessions.plan import Plan, PlannedThread, PlannedTurn
from harness.search.fuzz.sessions.turns import UNTRUSTED, Json
from harness.search.sequences.turn_script import TurnScript

SECOND_CONNECTION = "b"
# The policy under which everything needs approval.
ALWAYS_ASK = "on-request"


@dataclass(slots=True)
class ThreadNotes:
    """Notes on the earlier operations of a thread.

    `folder` is where it was started, and `place` the folder of its turns now. `approved_command`
    was last accepted for the session. `kept` are the values of each kept state (`kept_state.py`),
    the oldest first.
    """

    folder: str = "{cwd}"
    place: str = "{cwd}"
    approved_command: str = ""
    kept: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _versions: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def file_version(self) -> int:
        """The number of changes of its file in this place, 0 while there is none."""
        return self._versions.get(self.place, 0)

    @file_version.setter
    def file_version(self, version: int) -> None:
        """Note the number of changes in this place."""
        self._versions[self.place] = version


@dataclass(slots=True)
class Draft:
    """The steps of one conversation. Each operation finds its thread idle, and leaves it so.

    `looks`: each operation is followed by a look at its thread. `policy` is the approval policy of
    its threads, under which commands and patches need approval. `needs_fresh_server`: no other
    conversation has used its process.
    """

    looks: bool = True
    policy: str = UNTRUSTED
    needs_fresh_server: bool = False
    plan: Plan = field(default_factory=Plan)
    files: dict[str, str | Json] = field(default_factory=dict[str, str | Json])
    _notes: dict[str, ThreadNotes] = field(default_factory=dict[str, ThreadNotes])

    def notes(self, thread: PlannedThread) -> ThreadNotes:
        """Return the notes on a thread."""
        return self._notes.setdefault(thread.alias, ThreadNotes())

    @property
    def step_count(self) -> int:
        """Return the number of steps so far."""
        return len(self.plan.client)

    def start_thread(self, **params: Any) -> PlannedThread:
        """Start a thread whose commands and patches need approval."""
        thread = self.plan.add_thread(self.policy)
        notes = self.notes(thread)
        notes.folder = notes.place = params.get("cwd", "{cwd}")
        thread.add_follower(MAIN_CONNECTION)
        # A sandbox costs a process for each command, and rules leave open what it may ask for.
        settings = {"approvalPolicy": self.policy, "sandbox": "danger-full-access"}
        body = {"as": thread.alias, "params": {**settings, **params}}
        self.plan.add_step("start_thread", **body)
        return thread

    def fork(self, thread: PlannedThread) -> PlannedThread:
        """Fork a thread; return the fork."""
        forked = self.plan.add_thread(thread.policy)
        forked.ended_turns, forked.lost_settings = thread.ended_turns, True
        forked.add_follower(MAIN_CONNECTION)
        self.plan.add_request(
            "thread/fork",
            expect="result",
            params={"threadId": thread.reference},
            **{"as": forked.alias},
        )
        notes, origin = self.notes(forked), self.notes(thread)
        notes.approved_command = origin.approved_command
        notes.folder, notes.place = origin.folder, origin.place
        # Rules last, whoever needs them; whether approvals of the session do is left open.
        notes.kept["rules"] = list(origin.kept.get("rules", ()))
        return forked

    def add_file(self, path: str, text: str) -> None:
        """Add a file to the workspace; `path` begins with `{cwd}/`."""
        self.files[path.removeprefix("{cwd}/")] = text

    def script(self) -> TurnScript:
        """Return the empty script of a new turn."""
        return TurnScript(self.plan.next_nonce())

    def start_turn(
        self, thread: PlannedThread, script: TurnScript, *, on: str = MAIN_CONNECTION, **params: Any
    ) -> PlannedTurn:
        """Start a turn with this script; `params` are further ones of `turn/start`."""
        planned_script = script.finish()
        nonce = planned_script.nonce
        alias = f"{nonce}{thread.alias}"
        if thread.lost_settings:
            params = {"approvalPolicy": thread.policy, **params}
        further_input = params.pop("further_input", [])
        body: Json = {"as": alias, "params": params or None}
        if further_input:
            body["input"] = [{"type": "text", "text": f"do {nonce}"}, *further_input]
        else:
            body["text"] = f"do {nonce}"
        self.plan.add_step("start_turn", thread=thread.alias, on=on, **body)
        turn = PlannedTurn(
            alias,
            planned_script,
            list(planned_script.gates),
            list(planned_script.asks),
            list(planned_script.commands),
        )
        turn.asks_first = planned_script.asks_first
        if params.get("approvalPolicy") == "never":
            turn.drop_questions()
        thread.script.append(planned_script)
        thread.turns.append(turn)
        thread.running_turn = turn
        return turn

    def end_turn(self, thread: PlannedThread) -> None:
        """Let the running turn go to its end, accepting what it asks, and wait for that."""
        self.plan.settle(thread)

    def run_turn(self, thread: PlannedThread, script: TurnScript, **params: Any) -> None:
        """Start a turn and wait for its end."""
        self.start_turn(thread, script, **params)
        self.end_turn(thread)

    def await_question(self, thread: PlannedThread, turn: PlannedTurn) -> None:
        """Wait until the turn asks about its next operation."""
        self.plan.wait_for_question(thread, turn)

    def answer(self, thread: PlannedThread, turn: PlannedTurn, decision: str) -> None:
        """Answer the next question of a turn."""
        question, _ = turn.take_question()
        self.plan.add_answer(thread, turn, question, decision=decision)

    def await_gate(self, gate: str) -> None:
        """Wait until the model or a command holds at a gate."""
        self.plan.add_step("wait", gate=gate)

    def await_output(self, turn: PlannedTurn) -> None:
        """Wait until a command of the turn prints; a server need not stream that."""
        self.plan.add_step(
            "wait",
            notification="item/commandExecution/outputDelta",
            where={"turnId": f"${turn.alias}.turn.id"},
            or_silence=True,
        )

    def request(self, method: str, *, expect: str = "any", **body: Any) -> None:
        """Send a request that the server may reject."""
        self.plan.add_request(method, expect=expect, **body)

    def thread_request(self, method: str, thread: PlannedThread, **params: Any) -> None:
        """Send a request about a thread, which the server may reject."""
        self.request(method, params={"threadId": thread.reference, **params})

    def resume(self, thread: PlannedThread) -> None:
        """Resume a thread on the first connection."""
        self.thread_request("thread/resume", thread)
        thread.add_follower(MAIN_CONNECTION)
        thread.lost_settings = True

    def drop_settings(self, thread: PlannedThread) -> None:
        """Record that the server may have forgotten the settings of a thread."""
        thread.lost_settings = True

    def look(self, thread: PlannedThread) -> None:
        """Read a thread with its turns, and list the threads on disk in its folder."""
        self.thread_request("thread/read", thread, includeTurns=True)
        self.request("thread/list", params={"cwd": self.notes(thread).folder})

    def look_at_all(self, thread: PlannedThread) -> None:
        """Look, and list the threads in memory; judging that costs as much as ten reads."""
        self.look(thread)
        self.request("thread/loaded/list", params={})

    def look_at_unloaded(self, threads: Sequence[PlannedThread]) -> None:
        """Read threads that are not loaded, and list those in memory, which they must not be in."""
        for thread in threads:
            self.thread_request("thread/read", thread, includeTurns=True)
        self.request("thread/loaded/list", params={})

    def document(self, title: str) -> Json:
        """Return the scenario document."""
        document = self.plan.document(title)
        if self.files:
            workspace = document.setdefault("workspace", {})
            workspace["files"] = {**self.files, **workspace.get("files", {})}
        if self.needs_fresh_server:
            document["server"] = "fresh"
        return document
