"""Rules on turn/steer: its precondition, its answer, and the effect of its input."""
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
from harness.judge.rules.shared.view_queries import has_other_clients, was_completed_before
from harness.judge.rules.shared.violations import Member, absent, member, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import dig, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.order import came_before
from harness.trace.views import TurnView

NEEDS = ("steering",)


@rule(
    "steer.precondition",
    title="turn/steer is rejected unless it names the active turn",
    level=Level.MUST,
    needs=NEEDS,
)
class Precondition(Undisturbed):
    """Judges that a turn/steer which certainly names no active turn of its thread is rejected.

    It is certain if the turn had ended before the request was sent, or if on a thread which began
    in this trace no message had named it yet (it may be a turn of another thread), and no other
    request that could begin it was open. The form of a failure is not shown, so any will do. Left
    open: requests that cross the end of the turn; unknown turns with several connections.
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
        self._beginning = [start for start in self._beginning if start is not request]
        return None

    @on_answer("turn/steer")
    def on_turn_steer_answer(self, frame: Frame) -> Outcomes:
        steer = steer_of(self.conversation, frame)
        reason = self._why_not(steer) if steer is not None else ""
        if steer is None or not reason:
            return None
        if not steer.is_accepted:
            return [Witness(steer.subject, steer.frames)]
        expected = f"an error, since {reason}"
        return [unexpected_member(steer.subject, steer.frames, member(steer.answer), expected)]

    def _why_not(self, steer: Steer) -> str:
        """Return why the turn was certainly not the active one, "" if it may have been."""
        turn = self.conversation.turn_at(steer.thread_id, steer.expected_turn)
        if turn is None or not turn.thread_id:
            unheard_of = self._is_unknown(steer)
            return f"the thread has no turn {steer.expected_turn}" if unheard_of else ""
        return (
            f"{turn.id} had ended" if was_completed_before(self.trace, turn, steer.request) else ""
        )

    def _is_unknown(self, steer: Steer) -> bool:
        thread = self.conversation.threads.get(steer.thread_id)
        if thread is None or thread.reply is None or self._beginning or self.uncertain:
            return False
        return not has_other_clients(self.trace, steer.request)


@rule(
    "steer.names-turn", title="turn/steer answers with the turn's id", level=Level.MUST, needs=NEEDS
)
class NamesTurn(Monitor):
    """Judges that the turnId of a successful answer is the expected one of the request.

    Left open: an answer without a turnId (shapes).
    """

    @on_answer("turn/steer")
    def on_turn_steer_answer(self, frame: Frame) -> Outcomes:
        steer = steer_of(self.conversation, frame)
        answered_id = text(dig(frame.result, "turnId"))
        if steer is None or not steer.is_accepted or not answered_id:
            return None
        if answered_id == steer.expected_turn:
            return [Witness(steer.subject, steer.frames)]
        also = (member(steer.request, "expectedTurnId"),)
        field = member(steer.answer, "turnId")
        return [wrong(steer.subject, steer.frames, field, literal(steer.expected_turn), also=also)]


@rule("steer.starts-no-turn", title="turn/steer starts no turn", level=Level.MUST, needs=NEEDS)
class StartsNoTurn(Undisturbed):
    """Judges, at the end of a quiescent trace, that no turn began after a turn/steer by itself.

    A finding: turn/started, after a turn/steer on the thread, of a turn that no answer to
    turn/start names. A second turn/started of the same turn is for turn.started-once. Left open: a
    turn that compacts the history, which a server may do by itself, and one that was cut off at
    once; traces with several connections, or with other requests that can begin a turn.
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
            if self.uncertain or has_other_clients(self.trace, steer.request):
                return
            new_turn = self._begun_by_itself(steer)
            if new_turn is not None:
                proof = (*steer.frames, new_turn.starts[0])
                field = member(new_turn.starts[0], "turn", "id")
                expected = "no new turn after turn/steer: no turn/start asked for this turn/started"
                yield unexpected_member(steer.subject, proof, field, expected)
            elif steer.is_accepted:
                yield Witness(steer.subject, steer.frames)

    def _begun_by_itself(self, steer: Steer) -> TurnView | None:
        thread = self.conversation.threads.get(steer.thread_id)
        for turn in thread.turns.values() if thread is not None else ():
            new = turn.id != steer.expected_turn and turn.reply is None and turn.starts
            if new and came_before(steer.request, turn.starts[0]) and not _compacts(turn):
                return turn
        return None


@rule(
    "steer.input-kept", title="The input of turn/steer is not lost", level=Level.MUST, needs=NEEDS
)
class InputKept(Inputs):
    """Judges that the input of an accepted turn/steer is somewhere in the trace.

    A finding: the turn completed, and no userMessage and no model call of the trace has its first
    text. Judged if the harness's model was called, so that calls are known. Left open: turns that
    were cut off, input without a text or with that of another input, several connections.
    """

    def judge_steer(self, steer: Steer) -> Iterator[Outcome]:
        turn = self.turn_of_steer(steer)
        if not steer.is_accepted or turn is None or not self.calls:
            return
        frames = (*steer.frames, turn.completions[0])
        if self.reached_model(steer) or self.items_showing(steer):
            yield Witness(steer.subject, frames)
        else:
            expected = f"a userMessage or a model call with {literal(steer.input_text)}"
            actual = f"none of {len(self.shown_texts)} userMessage(s) and {len(self.calls)} call(s)"
            yield absent(steer.subject, frames, expected, actual, _input(steer))


@rule(
    "steer.input-arrives",
    title="The input of turn/steer reaches the model",
    level=Level.SHOULD,
    needs=NEEDS,
)
class InputArrives(Inputs):
    """Judges that the input of an accepted turn/steer is in a model call, if its turn completed.

    The specification does not say what a call contains; that input reaches the model is derived:
    SHOULD. A turn whose model was done makes one more call for it; a call after the end of the turn
    and the request for the next one does not count. Left open: turns that were cut off, input
    without a text or with that of another input, several connections.
    """

    def judge_steer(self, steer: Steer) -> Iterator[Outcome]:
        turn = self.turn_of_steer(steer)
        if not steer.is_accepted or turn is None or not self.calls:
            return
        frames = (*steer.frames, turn.completions[0])
        if self.reached_model_in(steer, turn):
            yield Witness(steer.subject, frames)
        else:
            late = " before the next turn was asked for" if self.reached_model(steer) else ""
            expected = f"a model call with {literal(steer.input_text)}{late}"
            without = f"none of {len(self.calls)} call(s) has it"
            actual = "a call has it only later" if late else without
            yield absent(steer.subject, frames, expected, actual, _input(steer))


@rule(
    "steer.applied-once",
    title="The input of turn/steer is added once",
    level=Level.SHOULD,
    needs=NEEDS,
)
class AppliedOnce(Inputs):
    """Judges that an accepted turn/steer adds its input once, to userMessages and model calls.

    Derived: it is appended once. Left open: input without a text or with that of another input,
    several connections, traces with a compaction, a rollback and the like.
    """

    def is_disturbed(self, steer: Steer) -> bool:
        return self.uncertain

    def judge_steer(self, steer: Steer) -> Iterator[Outcome]:
        items = self.items_showing(steer)
        most = max(
            (sum(steer.input_text in words for words in call) for call in self.calls), default=0
        )
        if not steer.is_accepted or not (items or most):
            return
        if len(items) <= 1 and most <= 1:
            yield Witness(steer.subject, steer.frames)
        else:
            actual = f"{len(items)} userMessage(s), and {most} time(s) in one model call"
            expected = f"{literal(steer.input_text)} once"
            yield absent(steer.subject, steer.frames, expected, actual, _input(steer))


@rule(
    "steer.refused-unheard",
    title="The input of a rejected turn/steer reaches no turn",
    level=Level.MUST,
    needs=NEEDS,
)
class RefusedUnheard(Inputs):
    """Judges that the input of a rejected turn/steer is in no userMessage and in no model call.

    Judged if the harness's model was called, or a userMessage was shown. Left open: input without a
    text or with that of another input, several connections.
    """

    def is_disturbed(self, steer: Steer) -> bool:
        return self.has_missed_calls

    def judge_steer(self, steer: Steer) -> Iterator[Outcome]:
        if steer.is_accepted or not (self.calls or self.shown_texts):
            return
        items = self.items_showing(steer)
        if not items and not self.reached_model(steer):
            yield Witness(steer.subject, steer.frames)
        else:
            places = [f"the userMessage {items[0]}"] if items else []
            places += ["a model call"] if self.reached_model(steer) else []
            expected = f"{literal(steer.input_text)} nowhere, after the refusal"
            actual = f"it is in {' and '.join(places)}"
            yield absent(steer.subject, steer.frames, expected, actual, _input(steer))


def _compacts(turn: TurnView) -> bool:
    """Return whether a turn that the server began did nothing but compact the history."""
    if not turn.items:
        return turn.status in (FAILED, INTERRUPTED)
    return all(item.type == "contextCompaction" for item in turn.items.values())


def _input(steer: Steer) -> Member:
    """Return the member of a turn/steer that has its input."""
    return member(steer.request, "input", 0, "text")
