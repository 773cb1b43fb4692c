"""The plan of a session while its steps are drawn, and its document.

It follows the specification's state machines to know which steps make sense next; it judges
nothing.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.protocol.values import obj, text
from harness.scenario.client_steps import MAIN_CONNECTION
from harness.search.fuzz.sessions.novelty import Meetings
from harness.search.fuzz.sessions.turns import COMMAND, Json, ModelTurn

ALIASES = "tuvwxyzklmn"


@dataclass(slots=True)
class PlannedTurn:
    """A turn that was started: its remaining gates and server requests.

    `met` is whether the client already waited for the next request, which comes only once.
    """

    alias: str
    script: ModelTurn
    gates: list[str]
    asks: list[str]
    commands: list[str] = field(default_factory=list[str])
    asks_first: bool = False
    met: bool = False

    @property
    def asks_now(self) -> bool:
        """Return whether the next server request comes before any gate."""
        return bool(self.asks) and (self.asks_first or not self.gates)

    def take_question(self) -> tuple[str, str]:
        """Remove the next server request; return its method and its command."""
        self.asks_first = self.met = False
        return self.asks.pop(0), self.commands.pop(0)

    def drop_questions(self) -> None:
        """Remove all server requests."""
        self.asks.clear()
        self.commands.clear()

    def drop_allowed_questions(self, allowed_commands: set[str]) -> None:
        """Remove the requests about commands that no longer need approval."""
        pairs = list(zip(self.asks, self.commands, strict=True))
        kept_pairs = [
            (question, command) for question, command in pairs if command not in allowed_commands
        ]
        self.asks_first = self.asks_first and kept_pairs[:1] == pairs[:1]
        self.asks = [question for question, _ in kept_pairs]
        self.commands = [command for _, command in kept_pairs]


@dataclass(slots=True)
class PlannedThread:
    """A thread as the client sees it; `policy` is its approval policy.

    `running_turn` may have ended already. `doubtful`: the outcome of a request is unknown, so
    nothing is certain until the thread is idle. `plain`: the model's side can no longer identify
    its calls, so its turns are one message. `lost_settings`: it may have lost the settings that it
    was started with. `followers` are the connections that are certainly subscribed, the earliest
    first. `commands` needed approval in earlier turns, and `allowed_commands` were accepted for the
    session.
    """

    alias: str
    policy: str = "never"
    turns: list[PlannedTurn] = field(default_factory=list[PlannedTurn])
    running_turn: PlannedTurn | None = None
    doubtful: bool = False
    is_archived: bool = False
    plain: bool = False
    lost_settings: bool = False
    ended_turns: int = 0
    followers: list[str] = field(default_factory=list[str])
    commands: list[str] = field(default_factory=list[str])
    allowed_commands: set[str] = field(default_factory=set[str])
    names: list[str] = field(default_factory=list[str])
    script: list[ModelTurn] = field(default_factory=list[ModelTurn])

    @property
    def asks(self) -> bool:
        """Return whether commands and patches need approval."""
        return self.policy != "never"

    @property
    def reference(self) -> str:
        """Return the reference to its id, as a step has it."""
        return f"${self.alias}.thread.id"

    @property
    def is_followed(self) -> bool:
        """Return whether any connection is certainly subscribed."""
        return bool(self.followers)

    @property
    def home(self) -> str:
        """Return a connection that is certainly subscribed, else the first connection."""
        return self.followers[0] if self.followers else MAIN_CONNECTION

    @property
    def moment(self) -> str:
        """Return its state in words, on which the effect of an action may depend."""
        turn = self.running_turn
        if self.is_archived or not self.is_followed:
            return "archived" if self.is_archived else "left"
        if self.doubtful:
            return "doubtful"
        if turn is None:
            return "idle" if self.turns else "new"
        if turn.asks:
            return (
                f"asked about a {question_kind(turn.asks[0])}" if turn.asks_now else "asked later"
            )
        if not turn.gates:
            return "ending"
        return "in a command" if turn.gates[0].startswith("pipe") else "in a reply"

    @property
    def ready(self) -> bool:
        """Return whether it certainly accepts a turn."""
        return self.is_followed and not (self.is_archived or self.doubtful or self.running_turn)

    def add_follower(self, connection: str) -> None:
        """Record that a connection subscribed."""
        if connection not in self.followers:
            self.followers.append(connection)

    def remove_follower(self, connection: str) -> None:
        """Record that a connection unsubscribed."""
        if connection in self.followers:
            self.followers.remove(connection)
            if not self.followers:
                self.drop_followers()

    def drop_followers(self) -> None:
        """Record that no connection is certainly subscribed; the end of its turn may go unseen."""
        self.followers.clear()
        self.doubtful = self.doubtful or self.running_turn is not None
        self.forget_approvals()

    def forget_approvals(self) -> None:
        """Clear the recorded approvals, which may no longer hold if the thread is unloaded."""
        self.commands.clear()
        self.allowed_commands.clear()


class Plan:
    """The steps, threads and connections of a session that is being planned."""

    def __init__(self) -> None:
        self.client: list[Json] = []
        self.threads: list[PlannedThread] = []
        self.connections: list[str] = [MAIN_CONNECTION]
        self.meetings = Meetings()
        self._count = 0
        self._nonces = 0

    def next_number(self) -> int:
        """Return the next number of the session, from 1."""
        self._count += 1
        return self._count

    def next_nonce(self) -> str:
        """Return a new text that identifies a turn."""
        self._nonces += 1
        return f"q{self._nonces:02d}"

    def add_step(self, kind: str, **body: Any) -> None:
        """Add a step of the client; members that are None are left out."""
        on = body.get("on")
        members = {name: value for name, value in body.items() if value is not None}
        if on == MAIN_CONNECTION:
            del members["on"]
        self._note(kind, members)
        self.client.append({kind: members})

    def add_bare_step(self, kind: str, value: Any) -> None:
        """Add a step without a thread."""
        self._note(kind, {})
        self.client.append({kind: value})

    def _note(self, kind: str, body: Json) -> None:
        """Record the meetings of a step."""
        thread = self._thread_of(body)
        moments = [
            other.moment for other in self.threads if other is not thread and other.running_turn
        ]
        if thread is None:
            self.meetings.note(kind, body, "", "", moments, 0)
            return
        number = len(thread.followers)
        follows = number if (body.get("on") or MAIN_CONNECTION) in thread.followers else -number - 1
        self.meetings.note(kind, body, thread.alias, thread.moment, moments, follows)

    def _thread_of(self, body: Json) -> PlannedThread | None:
        """Return the thread of a step, None if it has none."""
        references = body.get("thread"), obj(body.get("params")).get("threadId")
        turn = text(obj(body.get("where")).get("turnId"))
        for thread in self.threads:
            if thread.alias == references[0] or thread.reference == references[1]:
                return thread
            if turn and any(f"${known_turn.alias}.turn.id" == turn for known_turn in thread.turns):
                return thread
        return None

    def add_request(self, method: str, *, expect: str = "any", **body: Any) -> None:
        """Add a request; by default any answer is accepted."""
        expectation = None if expect == "result" else expect
        self.add_step("request", method=method, expect=expectation, **body)

    def add_thread(self, policy: str) -> PlannedThread:
        """Add a thread with this approval policy, and return it."""
        thread = PlannedThread(ALIASES[len(self.threads)], policy)
        self.threads.append(thread)
        return thread

    def question_condition(self, thread: PlannedThread, turn: PlannedTurn) -> Json:
        """Return the `where` that selects the server requests of a turn."""
        condition: Json = {"turnId": f"${turn.alias}.turn.id"}
        return condition | ({"threadId": thread.reference} if len(self.threads) > 1 else {})

    def add_answer(
        self, thread: PlannedThread, turn: PlannedTurn, question: str, **body: Any
    ) -> None:
        """Add an answer to a server request of a turn."""
        self.add_step(
            "answer",
            to=question,
            where=self.question_condition(thread, turn),
            on=thread.home,
            **body,
        )

    def wait_for_question(self, thread: PlannedThread, turn: PlannedTurn) -> None:
        """Add a wait for the next server request of a turn, unless there is one already."""
        if not turn.met:
            condition = self.question_condition(thread, turn)
            self.add_step("wait", request=turn.asks[0], where=condition, on=thread.home)
        turn.met = True

    def open_gates(self, turn: PlannedTurn, number: int | None = None) -> None:
        """Open the next `number` gates of a turn, or all."""
        for gate in turn.gates[:number]:
            self.client.append({"open": gate})
        del turn.gates[:number]

    def settle(self, thread: PlannedThread) -> None:
        """Add steps that let the running turn end, and wait for its end."""
        turn = thread.running_turn
        if turn is not None:
            self.open_gates(turn)
            if turn.asks and thread.doubtful:
                # Its requests are uncertain: do not wait for them, but interrupt the turn.
                ids = {"threadId": thread.reference, "turnId": f"${turn.alias}.turn.id"}
                self.add_request("turn/interrupt", params=ids, on=thread.home)
            for question in turn.asks if not thread.doubtful else ():
                self.add_answer(thread, turn, question, decision="accept")
            turn.drop_questions()
        if thread.doubtful:
            # A turn/started may come after the turn's answer, but before the answer to this.
            self.add_request("thread/read", params={"threadId": thread.reference}, on=thread.home)
        if thread.doubtful:
            self.add_step("wait", idle=thread.alias, on=thread.home)
        elif turn is not None:
            # Another connection may not know the turn yet, and would find the thread idle.
            self.add_step("wait", turn=turn.alias, on=thread.home)
        thread.ended_turns += turn is not None
        thread.running_turn, thread.doubtful = None, False

    def document(self, title: str) -> Json:
        """Return the scenario document."""
        scripts = [turn for thread in self.threads for turn in thread.script]
        files = {name: text for turn in scripts for name, text in turn.files.items()}
        pipes = [pipe for turn in scripts for pipe in turn.pipes]
        document: Json = {"title": title}
        workspace: Json = {"files": files} if files else {}
        workspace |= {"pipes": pipes} if pipes else {}
        document |= {"workspace": workspace} if workspace else {}
        document["model"] = {
            thread.alias: steps
            for thread in self.threads
            if (steps := conditional_steps(thread.script))
        }
        document["client"] = self.client
        # Copied, since YAML would write shared values as anchors.
        return json.loads(json.dumps(document))


def conditional_steps(script: Sequence[ModelTurn]) -> list[Json]:
    """Return the model steps of a thread, each with a condition for its own turn.

    An interrupted turn leaves unused steps, which later turns must not get.
    """
    steps: list[Json] = []
    for index, turn in enumerate(script):
        when: Json = {"input_contains": [turn.nonce]}
        later = [later_turn.nonce for later_turn in script[index + 1 :]]
        when |= {"input_lacks": later} if later else {}
        steps += [{"when": when, **step} for step in turn.steps]
    return steps


def question_kind(method: str) -> str:
    """Return `command` or `file` for the method of an approval request."""
    return "command" if method == COMMAND else "file"
