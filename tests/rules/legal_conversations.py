"""Random legal conversations: any moves of a client, and any choices of a server."""

from collections.abc import Callable, Iterator

from hypothesis import strategies as st

from harness.trace.trace import Trace
from tests.rules import legal_turns
from tests.rules.approval_talk import CWD
from tests.rules.legal_server import LegalServer, Question, Thread, Turn
from tests.rules.legal_tape import POLICIES, Tape
from tests.rules.traces import turn_object

DECISIONS = (
    "accept",
    "decline",
    "cancel",
    "acceptForSession",
    "acceptWithExecpolicyAmendment",
    "applyNetworkPolicyAmendment",
)
# Number of moves before all open work is completed.
MOVES = 45


class Conversation(LegalServer):
    """A client's moves, each at any moment at which a client could make it."""

    def play(self) -> Trace:
        """Play a whole conversation and return its trace."""
        self.start_thread()
        for _ in range(MOVES):
            if not self.tape.chance(4):
                self.go_on()
            else:
                self.tape.one(self.moves())()
        while self.work or self.queues:
            for work in list(self.work):
                self._step(work)
            for thread in self.threads.values():
                self.drain(thread)
            for question in self.undecided():
                self.decide(question)
        return self.talk.trace()

    def go_on(self) -> None:
        """Let the server do one step of its work, or send one queued message."""
        ways = len(self.work) + len(self.queues)
        if not ways:
            return
        at = self.tape.below(ways)
        if at >= len(self.work):
            self.flush(list(self.queues)[at - len(self.work)])
            return
        self._step(self.work[at])

    def _step(self, work: Iterator[None]) -> None:
        try:
            next(work)
        except StopIteration:
            self.work.remove(work)

    def moves(self) -> list[Callable[[], None]]:
        """Return the possible next moves of the client."""
        found: list[Callable[[], None]] = [self.list_threads]
        if len(self.threads) < 3:
            found.append(self.start_thread)
        found += [lambda question=one: self.decide(question) for one in self.undecided()]
        for thread in self.threads.values():
            found += [lambda thread=thread, move=move: move(thread) for move in self._for(thread)]
        return found

    def _for(self, thread: Thread) -> list[Callable[[Thread], None]]:
        if thread.archived:
            return [self.read, self.unarchive]
        if not thread.loaded:
            return [self.read, self.resume]
        turn = thread.active
        if turn is None:
            idle = [self.start_turn, self.start_turn, self.read, self.resume, self.fork]
            return [*idle, self.archive, self.roll_back, self.unsubscribe, self.compact]
        both = [self.read, self.resume, self.refused_turn]
        return [*both, self.steer, self.interrupt, self.steer] if turn.known else both

    def undecided(self) -> list[Question]:
        """Return the approval requests that the client has received and not answered."""
        return [one for one in self.questions if one.asked and not one.decision]

    def connection(self, thread: Thread | None = None) -> str:
        """Choose a connection that could send a request about a thread."""
        return self.tape.one(sorted(thread.subscribers) if thread else ["c1", "c2"])

    def later(self, connection: str, request: int, result: dict[str, object]) -> Iterator[None]:
        """Answer a request at a later step."""
        yield
        self.answer(connection, request, result)

    def start_thread(self) -> None:
        """Send thread/start."""
        policy = self.tape.one(POLICIES)
        connection = "c1" if not self.threads else self.connection()
        request = self.request(connection, "thread/start", cwd=CWD, approvalPolicy=policy)
        thread = Thread(f"thr_{len(self.threads) + 1}", policy, {connection})
        self.threads[thread.id] = thread
        self._open(connection, request, thread, self.reply(thread))

    def _open(
        self, connection: str, request: int, thread: Thread, result: dict[str, object]
    ) -> None:
        announced = self.shown(thread, live=True)
        if self.tape.chance():
            self.tell(thread, "thread/started", thread=announced)
            self.answer(connection, request, result)
        else:
            self.answer(connection, request, result)
            self.tell(thread, "thread/started", thread=announced)

    def start_turn(self, thread: Thread) -> None:
        """Send turn/start on a thread without an active turn."""
        words = f"say {self.number()}"
        said = [{"type": "text", "text": words}]
        override = self.tape.one((None, *POLICIES))
        more = {"approvalPolicy": override} if override else {}
        connection = self.connection(thread)
        request = self.request(connection, "turn/start", threadId=thread.id, input=said, **more)
        # Whether an override of the policy lasts is not said: another one leaves it unknown.
        turn = Turn(f"turn_{self.number()}", thread, override or thread.policy)
        thread.policy = thread.policy if override in (None, thread.policy) else ""
        thread.active = turn
        thread.preview = thread.preview or words
        self.work.append(
            self.later(connection, request, {"turn": turn_object(turn.id, **self.habits.extra())})
        )
        self.work.append(legal_turns.live(self, turn, lambda: legal_turns.says(self, turn, words)))

    def refused_turn(self, thread: Thread) -> None:
        """Send turn/start while a turn is active, and reject it."""
        said = [{"type": "text", "text": "too early"}]
        connection = self.connection(thread)
        request = self.request(connection, "turn/start", threadId=thread.id, input=said)
        self.refuse(connection, request, "a turn is active")

    def steer(self, thread: Thread) -> None:
        """Send turn/steer, sometimes with another turn's id."""
        turn = thread.active
        words = f"and {self.number()}"
        right = not self.tape.chance(4)
        expected = turn.id if turn is not None and right else "turn_0"
        said = {"input": [{"type": "text", "text": words}], "expectedTurnId": expected}
        connection = self.connection(thread)
        request = self.request(connection, "turn/steer", threadId=thread.id, **said)
        if turn is None or turn.cut or not right:
            self.refuse(connection, request, "no such turn is active")
        else:
            turn.steered.append(words)
            self.work.append(self.later(connection, request, {"turnId": turn.id}))

    def interrupt(self, thread: Thread) -> None:
        """Send turn/interrupt for the active turn."""
        turn = thread.active
        if turn is None or turn.cut:
            return
        connection = self.connection(thread)
        request = self.request(connection, "turn/interrupt", threadId=thread.id, turnId=turn.id)
        self.answer(connection, request, {})
        turn.cut = True

    def decide(self, question: Question) -> None:
        """Answer an approval request, which has no effect if it is already resolved."""
        files = question.method.startswith("item/fileChange")
        question.decision = self.tape.one(DECISIONS[:2] if files else DECISIONS)
        result = {"decision": question.decision}
        self.talk.on(question.connection).sends({"id": question.id, "result": result})
        if question.decision == "cancel" and not question.over:
            question.turn.cut = True

    def read(self, thread: Thread) -> None:
        """Send thread/read, from any client."""
        include, connection = self.tape.chance(), self.connection()
        more = {"turns": self.history(thread)} if include else {}
        request = self.request(connection, "thread/read", threadId=thread.id, includeTurns=include)
        shown = self.shown(thread, live=self.habits.live, **more)
        self.answer(connection, request, {"thread": shown})

    def resume(self, thread: Thread) -> None:
        """Send thread/resume, which subscribes."""
        connection = self.connection()
        request = self.request(connection, "thread/resume", threadId=thread.id)
        if not thread.loaded:
            thread.loaded, thread.status = True, "idle"
        self.answer(connection, request, self.reply(thread, turns=self.history(thread)))
        thread.subscribers.add(connection)

    def fork(self, thread: Thread) -> None:
        """Send thread/fork; the policy of the new thread is not specified."""
        connection = self.connection()
        request = self.request(connection, "thread/fork", threadId=thread.id)
        new = Thread(f"thr_{len(self.threads) + 1}", "", {connection}, list(thread.turns))
        new.preview = thread.preview
        self.threads[new.id] = new
        self._open(
            connection, request, new, {"thread": self.shown(new, live=True, turns=new.turns)}
        )

    def archive(self, thread: Thread) -> None:
        """Send thread/archive, which unloads the thread."""
        connection = self.connection()
        request = self.request(connection, "thread/archive", threadId=thread.id)
        self._unload(thread)
        thread.archived = True
        self.answer(connection, request, {})
        self.talk.on(connection).tells("thread/archived", threadId=thread.id)

    def unarchive(self, thread: Thread) -> None:
        """Send thread/unarchive; the thread stays unloaded."""
        connection = self.connection()
        request = self.request(connection, "thread/unarchive", threadId=thread.id)
        thread.archived = False
        self.answer(connection, request, {"thread": self.shown(thread, live=True)})
        self.talk.on(connection).tells("thread/unarchived", threadId=thread.id)

    def unsubscribe(self, thread: Thread) -> None:
        """Send thread/unsubscribe, sometimes for the last subscriber."""
        connection = self.connection(thread)
        request = self.request(connection, "thread/unsubscribe", threadId=thread.id)
        if len(thread.subscribers) == 1:
            self._unload(thread)
        else:
            self.drain(thread)
            thread.subscribers.discard(connection)
        self.answer(connection, request, {"status": "unsubscribed"})

    def _unload(self, thread: Thread) -> None:
        thread.loaded = False
        thread.remembered.clear()
        self.move(thread, "notLoaded")
        self.tell(thread, "thread/closed", threadId=thread.id)
        self.drain(thread)
        thread.subscribers.clear()

    def roll_back(self, thread: Thread) -> None:
        """Send thread/rollback of the last turn."""
        connection = self.connection(thread)
        request = self.request(connection, "thread/rollback", threadId=thread.id, numTurns=1)
        del thread.turns[-1:]
        shown = self.shown(thread, live=True, turns=list(thread.turns))
        self.answer(connection, request, {"thread": shown})

    def compact(self, thread: Thread) -> None:
        """Send thread/compact/start, which runs as a turn."""
        connection = self.connection(thread)
        request = self.request(connection, "thread/compact/start", threadId=thread.id)
        turn = Turn(f"turn_{self.number()}", thread, thread.policy)
        thread.active = turn
        self.answer(connection, request, {})
        self.work.append(legal_turns.live(self, turn, lambda: legal_turns.compacts(self, turn)))

    def list_threads(self) -> None:
        """Send thread/list and thread/loaded/list."""
        connection = self.connection()
        request = self.request(connection, "thread/list")
        shown = [self.shown(one, live=False) for one in self.threads.values() if not one.archived]
        self.answer(connection, request, {"data": shown, "nextCursor": None})
        request = self.request(connection, "thread/loaded/list")
        loaded = [one.id for one in self.threads.values() if one.loaded]
        self.answer(connection, request, {"data": loaded, "nextCursor": None})


def conversations() -> st.SearchStrategy[Trace]:
    """Return a strategy for legal conversations; smaller bytes on the tape give plainer ones."""
    return st.binary(min_size=200, max_size=200).map(lambda data: Conversation(Tape(data)).play())
