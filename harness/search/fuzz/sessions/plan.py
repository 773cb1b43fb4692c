"""A session while its steps are drawn, and the document that they become.

It follows the state machines of the book and says which steps make sense next; it judges nothing.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.protocol.values import obj, text
from harness.scenario.client_steps import MAIN
from harness.search.fuzz.sessions.novelty import Meetings
from harness.search.fuzz.sessions.turns import COMMAND, Json, ModelTurn

ALIASES = "tuvw"


@dataclass(slots=True)
class PlannedTurn:
    """A turn that was started with success: what its model side still waits for.

    `met` is whether the client has waited for its next question already: it comes only once.
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
        """Return whether its next question comes before it holds anywhere."""
        return bool(self.asks) and (self.asks_first or not self.gates)

    def asked(self) -> tuple[str, str]:
        """Take out the next question: its method, and the command that it is about."""
        self.asks_first = self.met = False
        return self.asks.pop(0), self.commands.pop(0)

    def asks_no_more_about(self, allowed: set[str]) -> None:
        """Leave out the questions about commands that need no approval any more."""
        pairs = list(zip(self.asks, self.commands, strict=True))
        kept_pairs = [(question, command) for question, command in pairs if command not in allowed]
        self.asks_first = self.asks_first and kept_pairs[:1] == pairs[:1]
        self.asks = [question for question, _ in kept_pairs]
        self.commands = [command for _, command in kept_pairs]


@dataclass(slots=True)
class PlannedThread:
    """A thread as the client sees it; `policy` is its approval policy.

    `running` is its turn that may go on. `doubtful`: something was asked of it whose outcome is
    open, so that nothing may be taken for granted before it is idle again. `plain`: the model's
    side can no longer tell whose call it is, so turns say one thing. `changed`: it may have lost
    the settings that it was started with. `followers` are the connections that surely follow it,
    those that did first before the others. `commands` were asked about in earlier turns, and
    `allowed` are those of them that were accepted for the session.
    """

    alias: str
    policy: str = "never"
    turns: list[PlannedTurn] = field(default_factory=list[PlannedTurn])
    running: PlannedTurn | None = None
    doubtful: bool = False
    archived: bool = False
    plain: bool = False
    changed: bool = False
    ended: int = 0
    followers: list[str] = field(default_factory=list[str])
    commands: list[str] = field(default_factory=list[str])
    allowed: set[str] = field(default_factory=set[str])
    names: list[str] = field(default_factory=list[str])
    script: list[ModelTurn] = field(default_factory=list[ModelTurn])

    @property
    def asks(self) -> bool:
        """Return whether commands and patches are asked about."""
        return self.policy != "never"

    @property
    def reference(self) -> str:
        """Its id, as a step writes it."""
        return f"${self.alias}.thread.id"

    @property
    def loaded(self) -> bool:
        """Return whether somebody surely follows it."""
        return bool(self.followers)

    @property
    def home(self) -> str:
        """The connection that surely follows it, where one does."""
        return self.followers[0] if self.followers else MAIN

    @property
    def moment(self) -> str:
        """Return its state, in a word: what an action does may depend on it."""
        turn = self.running
        if self.archived or not self.loaded:
            return "archived" if self.archived else "left"
        if self.doubtful:
            return "doubtful"
        if turn is None:
            return "idle" if self.turns else "new"
        if turn.asks:
            return f"asked about a {kind_of_ask(turn.asks[0])}" if turn.asks_now else "asked later"
        if not turn.gates:
            return "ending"
        return "in a command" if turn.gates[0].startswith("pipe") else "in a reply"

    @property
    def ready(self) -> bool:
        """Return whether it certainly takes a turn."""
        return self.loaded and not (self.archived or self.doubtful or self.running)

    def followed_on(self, connection: str) -> None:
        """Note that a connection took it up."""
        if connection not in self.followers:
            self.followers.append(connection)

    def left_on(self, connection: str) -> None:
        """Note that a connection follows it no longer."""
        if connection in self.followers:
            self.followers.remove(connection)
            if not self.followers:
                self.put_away()

    def put_away(self) -> None:
        """Note that nobody surely follows it any more: what becomes of its turn is open."""
        self.followers.clear()
        self.doubtful = self.doubtful or self.running is not None
        self.forgets()

    def forgets(self) -> None:
        """Note that it may be unloaded: whether what was accepted still holds is open."""
        self.commands.clear()
        self.allowed.clear()


class Plan:
    """A session that is being planned."""

    def __init__(self) -> None:
        self.client: list[Json] = []
        self.threads: list[PlannedThread] = []
        self.connections: list[str] = [MAIN]
        self.meetings = Meetings()
        self._count = 0
        self._nonces = 0

    def number(self) -> int:
        """A number that was not given yet."""
        self._count += 1
        return self._count

    def nonce(self) -> str:
        """A text that tells a turn from all others."""
        self._nonces += 1
        return f"q{self._nonces:02d}"

    def step(self, kind: str, **body: Any) -> None:
        """Add a step of the client's side; members that are None are left out."""
        on = body.get("on")
        members = {name: value for name, value in body.items() if value is not None}
        if on == MAIN:
            del members["on"]
        self._note(kind, members)
        self.client.append({kind: members})

    def bare(self, kind: str, value: Any) -> None:
        """Add a step that is about no thread."""
        self._note(kind, {})
        self.client.append({kind: value})

    def _note(self, kind: str, body: Json) -> None:
        """Note what a step meets."""
        thread = self._concerned(body)
        moments = [other.moment for other in self.threads if other is not thread and other.running]
        if thread is None:
            self.meetings.note(kind, body, "", "", moments, 0)
            return
        number = len(thread.followers)
        follows = number if (body.get("on") or MAIN) in thread.followers else -number - 1
        self.meetings.note(kind, body, thread.alias, thread.moment, moments, follows)

    def _concerned(self, body: Json) -> PlannedThread | None:
        """The thread that a step is about."""
        references = body.get("thread"), obj(body.get("params")).get("threadId")
        turn = text(obj(body.get("where")).get("turnId"))
        for thread in self.threads:
            if thread.alias == references[0] or thread.reference == references[1]:
                return thread
            if turn and any(f"${known_turn.alias}.turn.id" == turn for known_turn in thread.turns):
                return thread
        return None

    def request(self, method: str, *, expect: str = "any", **body: Any) -> None:
        """Add a request."""
        expectation = None if expect == "result" else expect
        self.step("request", method=method, expect=expectation, **body)

    def thread(self, policy: str) -> PlannedThread:
        """Note a further thread, with its approval policy."""
        thread = PlannedThread(ALIASES[len(self.threads)], policy)
        self.threads.append(thread)
        return thread

    def where(self, thread: PlannedThread, turn: PlannedTurn) -> Json:
        """Return a condition that selects the questions of a turn which nobody answered."""
        condition: Json = {"turnId": f"${turn.alias}.turn.id"}
        return condition | ({"threadId": thread.reference} if len(self.threads) > 1 else {})

    def answer(self, thread: PlannedThread, turn: PlannedTurn, asked: str, **body: Any) -> None:
        """Answer a question of a turn."""
        self.step("answer", to=asked, where=self.where(thread, turn), on=thread.home, **body)

    def meet(self, thread: PlannedThread, turn: PlannedTurn) -> None:
        """Wait for the next question of a turn, unless that was done."""
        if not turn.met:
            condition = self.where(thread, turn)
            self.step("wait", request=turn.asks[0], where=condition, on=thread.home)
        turn.met = True

    def open_gates(self, turn: PlannedTurn, number: int | None = None) -> None:
        """Open the next gates of a turn, or all."""
        for gate in turn.gates[:number]:
            self.client.append({"open": gate})
        del turn.gates[:number]

    def settle(self, thread: PlannedThread) -> None:
        """Let what runs on a thread come to its end, and wait for it."""
        turn = thread.running
        if turn is not None:
            self.open_gates(turn)
            if turn.asks and thread.doubtful:
                # Which of its questions come is open: nobody may wait for them, nor it for answers.
                ids = {"threadId": thread.reference, "turnId": f"${turn.alias}.turn.id"}
                self.request("turn/interrupt", params=ids, on=thread.home)
            for question in turn.asks if not thread.doubtful else ():
                self.answer(thread, turn, question, decision="accept")
            turn.asks.clear()
            turn.commands.clear()
        if thread.doubtful:
            # A turn that was just taken may be told after its answer: this answer comes later.
            self.request("thread/read", params={"threadId": thread.reference}, on=thread.home)
        if thread.doubtful:
            self.step("wait", idle=thread.alias, on=thread.home)
        elif turn is not None:
            # Who did not start it may not have heard of it yet, and would find the thread idle.
            self.step("wait", turn=turn.alias, on=thread.home)
        thread.ended += turn is not None
        thread.running, thread.doubtful = None, False

    def document(self, title: str) -> Json:
        """The scenario."""
        scripts = [turn for thread in self.threads for turn in thread.script]
        files = {name: text for turn in scripts for name, text in turn.files.items()}
        pipes = [pipe for turn in scripts for pipe in turn.pipes]
        document: Json = {"title": title}
        workspace: Json = {"files": files} if files else {}
        workspace |= {"pipes": pipes} if pipes else {}
        document |= {"workspace": workspace} if workspace else {}
        document["model"] = {
            thread.alias: steps for thread in self.threads if (steps := conditioned(thread.script))
        }
        document["client"] = self.client
        # Without a value in two places, which YAML would write as an anchor.
        return json.loads(json.dumps(document))


def conditioned(script: Sequence[ModelTurn]) -> list[Json]:
    """The steps of a thread's turns, each for the calls of its own turn only.

    A turn that is cut short leaves steps that nobody asked for; no later turn may get them.
    """
    steps: list[Json] = []
    for index, turn in enumerate(script):
        when: Json = {"input_contains": [turn.nonce]}
        later = [later_turn.nonce for later_turn in script[index + 1 :]]
        when |= {"input_lacks": later} if later else {}
        steps += [{"when": when, **step} for step in turn.steps]
    return steps


def kind_of_ask(asked: str) -> str:
    """`command` or `file`, for a server request."""
    return "command" if asked == COMMAND else "file"
