"""Rules on turn/steer: its precondition, its answer, and what becomes of its input."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import (
    Monitor,
    Outcome,
    Outcomes,
    Witness,
    on_answer,
    on_sent,
    rule,
)
from harness.judge.rules.shared.state_tracking import FAILED, INTERRUPTED
from harness.judge.rules.shared.steered_input import Inputs, Steer, steer_of
from harness.judge.rules.shared.turn_calls import Undisturbed
from harness.judge.rules.shared.view_queries import completed_before
from harness.judge.rules.shared.violations import Member, absent, instead, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import dig, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.order import came_before
from harness.trace.views import TurnView

NEEDS = ("steering",)


@rule(
    "steer.precondition",
    title="turn/steer is refused unless it names the active turn",
    level=Level.MUST,
    needs=NEEDS,
)
class Precondition(Undisturbed):
    """Judges turn/steer that certainly names no active turn of its thread: it must be refused.

    Certain is that the turn had ended before the request was sent, or that on a thread which began
    in this trace nothing had yet named it, as when it is a turn of another thread, and no other
    request that could begin it was open. The form of a failure is not shown, so any will do. Left
    open: what crosses the end of the turn; unknown turns where there are several connections.
    """

    def begin(self) -> None:
        super().begin()
        self._beginning: list[Frame] = []

    @on_sent("turn/start")
    def on_turn_start_sent(self, frame: Frame) -> Outcomes:
        self._beginning.append(frame)
        return None

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        self._beginning = [one for one in self._beginning if one is not request]
        return None

    @on_answer("turn/steer")
    def on_turn_steer_answer(self, frame: Frame) -> Outcomes:
        steer = steer_of(self.conversation, frame)
        why = self._why_not(steer) if steer is not None else ""
        if steer is None or not why:
            return None
        if not steer.granted:
            return [Witness(steer.subject, steer.frames)]
        expected = f"an error, since {why}"
        return [instead(steer.subject, steer.frames, member(steer.answer), expected)]

    def _why_not(self, steer: Steer) -> str:
        """Return why the turn was certainly not the active one, "" if it may have been."""
        turn = self.conversation.turn_at(steer.thread_id, steer.expected)
        if turn is None or not turn.thread_id:
            unheard_of = self._unheard_of(steer)
            return f"the thread has no turn {steer.expected}" if unheard_of else ""
        return f"{turn.id} had ended" if completed_before(self.trace, turn, steer.request) else ""

    def _unheard_of(self, steer: Steer) -> bool:
        thread = self.conversation.threads.get(steer.thread_id)
        if thread is None or thread.reply is None or self._beginning or self.uncertain:
            return False
        return all(one.connection == steer.request.connection for one in self.trace.frames)


@rule("steer.names-turn", title="turn/steer answers the turn", level=Level.MUST, needs=NEEDS)
class NamesTurn(Monitor):
    """Judges that the turnId of a successful answer is the one that the request expected.

    Left open: an answer without a turnId (shapes).
    """

    @on_answer("turn/steer")
    def on_turn_steer_answer(self, frame: Frame) -> Outcomes:
        steer = steer_of(self.conversation, frame)
        named = text(dig(frame.result, "turnId"))
        if steer is None or not steer.granted or not named:
            return None
        if named == steer.expected:
            return [Witness(steer.subject, steer.frames)]
        also = (member(steer.request, "expectedTurnId"),)
        where = member(steer.answer, "turnId")
        return [wrong(steer.subject, steer.frames, where, literal(steer.expected), also=also)]


@rule("steer.starts-no-turn", title="turn/steer starts no turn", level=Level.MUST, needs=NEEDS)
class StartsNoTurn(Undisturbed):
    """Judges, at the end of a quiescent trace, that no turn began after a turn/steer by itself.

    A finding: turn/started, after a turn/steer was sent to the thread, of a turn that no answer to
    turn/start names. A second turn/started of the same turn is for turn.started-once. Left open: a
    turn that compacts the history, which a server may do by itself, and one that was cut off before
    it did anything; traces with several connections, or with other requests that can begin a turn.
    """

    def begin(self) -> None:
        super().begin()
        self._steers: list[Steer] = []

    @on_answer("turn/steer")
    def on_turn_steer_answer(self, frame: Frame) -> Outcomes:
        steer = steer_of(self.conversation, frame)
        if steer is not None:
            self._steers.append(steer)
        return None

    def finish(self) -> Outcomes:
        for steer in self._steers:
            frames = self.trace.frames
            if self.uncertain or any(f.connection != steer.request.connection for f in frames):
                return
            begun = self._begun_by_itself(steer)
            if begun is not None:
                proof = (*steer.frames, begun.started[0])
                where = member(begun.started[0], "turn", "id")
                expected = "no new turn after turn/steer: no turn/start asked for this turn/started"
                yield instead(steer.subject, proof, where, expected)
            elif steer.granted:
                yield Witness(steer.subject, steer.frames)

    def _begun_by_itself(self, steer: Steer) -> TurnView | None:
        thread = self.conversation.threads.get(steer.thread_id)
        for turn in thread.turns.values() if thread is not None else ():
            new = turn.id != steer.expected and turn.reply is None and turn.started
            if new and came_before(steer.request, turn.started[0]) and not _compacts(turn):
                return turn
        return None


@rule("steer.input-kept", title="What turn/steer adds is not lost", level=Level.MUST, needs=NEEDS)
class InputKept(Inputs):
    """Judges that the input of a granted turn/steer is seen anywhere: it joined the turn's input.

    A finding: the turn ended completed, and no userMessage and no model call of the trace holds its
    first text. Judged where the harness's model was called, so that calls are known. Left open:
    turns that were cut off, input without a text or with that of another input, several
    connections.
    """

    def judged(self, steer: Steer) -> Iterator[Outcome]:
        turn = self.turn_of_steer(steer)
        if not steer.granted or turn is None or not self.calls:
            return
        frames = (*steer.frames, turn.completed[0])
        if self.heard(steer) or self.shown_items(steer):
            yield Witness(steer.subject, frames)
        else:
            expected = f"a userMessage or a model call with {literal(steer.said)}"
            actual = f"none of {len(self.shown)} userMessage(s) and {len(self.calls)} call(s)"
            yield absent(steer.subject, frames, expected, actual, _input(steer))


@rule(
    "steer.input-arrives",
    title="The model is asked what turn/steer adds",
    level=Level.SHOULD,
    needs=NEEDS,
)
class InputArrives(Inputs):
    """Judges that the input of a granted turn/steer is in a model call, if its turn was completed.

    The text never says what a call holds; that input given to the agent reaches the model is
    derived: SHOULD. A turn whose model was done makes one more call for it; a call that came when
    the turn had ended and the next one was asked for is no longer its own. Left open: turns that
    were cut off, input without a text or with that of another input, several connections.
    """

    def judged(self, steer: Steer) -> Iterator[Outcome]:
        turn = self.turn_of_steer(steer)
        if not steer.granted or turn is None or not self.calls:
            return
        frames = (*steer.frames, turn.completed[0])
        if self.heard_by(steer, turn):
            yield Witness(steer.subject, frames)
        else:
            late = " before the next turn was asked for" if self.heard(steer) else ""
            expected = f"a model call with {literal(steer.said)}{late}"
            without = f"none of {len(self.calls)} call(s) has it"
            actual = "a call has it only later" if late else without
            yield absent(steer.subject, frames, expected, actual, _input(steer))


@rule(
    "steer.applied-once",
    title="What turn/steer adds is added once",
    level=Level.SHOULD,
    needs=NEEDS,
)
class AppliedOnce(Inputs):
    """Judges that the input of a granted turn/steer is one userMessage, and once in a model call.

    Derived: what is appended is appended once. Left open: input without a text or with that of
    another input, several connections.
    """

    def judged(self, steer: Steer) -> Iterator[Outcome]:
        items = self.shown_items(steer)
        most = max((sum(steer.said in words for words in call) for call in self.calls), default=0)
        if not steer.granted or not (items or most):
            return
        if len(items) <= 1 and most <= 1:
            yield Witness(steer.subject, steer.frames)
        else:
            actual = f"{len(items)} userMessage(s), and {most} time(s) in one model call"
            expected = f"{literal(steer.said)} once"
            yield absent(steer.subject, steer.frames, expected, actual, _input(steer))


@rule(
    "steer.refused-unheard",
    title="What a refused turn/steer says reaches no turn",
    level=Level.MUST,
    needs=NEEDS,
)
class RefusedUnheard(Inputs):
    """Judges that the input of a refused turn/steer is in no userMessage and in no model call.

    Judged where the harness's model was called after all, or a userMessage was shown. Left open:
    input without a text or with that of another input, several connections.
    """

    def judged(self, steer: Steer) -> Iterator[Outcome]:
        if steer.granted or not (self.calls or self.shown):
            return
        items = self.shown_items(steer)
        if not items and not self.heard(steer):
            yield Witness(steer.subject, steer.frames)
        else:
            where = [f"the userMessage {items[0]}"] if items else []
            where += ["a model call"] if self.heard(steer) else []
            expected = f"{literal(steer.said)} nowhere, after the refusal"
            actual = f"it is in {' and '.join(where)}"
            yield absent(steer.subject, steer.frames, expected, actual, _input(steer))


def _compacts(turn: TurnView) -> bool:
    """Return whether a turn that the server began does nothing but compact the history, as far as
    seen.
    """
    if not turn.items:
        return turn.status in (FAILED, INTERRUPTED)
    return all(item.type == "contextCompaction" for item in turn.items.values())


def _input(steer: Steer) -> Member:
    """Return the member of a turn/steer that has its input."""
    return member(steer.request, "input", 0, "text")
