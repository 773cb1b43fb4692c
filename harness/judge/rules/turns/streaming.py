"""The rule that a turn is reported while it runs, not only at its end."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from dataclasses import dataclass

from harness.judge.base import (
    Monitor,
    Outcomes,
    Violation,
    Witness,
    on,
    on_answer,
    on_harness_message,
    on_kind,
    on_mark,
    on_sent,
    rule,
)
from harness.judge.rules.shared.approval_queries import APPROVALS
from harness.judge.rules.shared.steered_input import MIN_TEXT_CHARACTERS, first_text
from harness.judge.rules.shared.turn_calls import MAKES_UNCERTAIN
from harness.judge.rules.shared.view_queries import began_here, failed
from harness.judge.rules.shared.violations import member
from harness.judge.rules.turns.order import ITEM_EVENTS
from harness.judge.verdict import Level
from harness.protocol.values import obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import GateOpened, ModelCall, ModelEnd
from harness.trace.order import came_before
from harness.trace.trace import Mark


@dataclass(slots=True, eq=False)
class _Work:
    """A turn/start of ours, and what shows that its turn is at work.

    `called` is whether the model was asked with the turn's input. `trip` is a request that was sent
    after that, and its answer; `later` whether the model's side went on after the answer.
    """

    request: Frame
    said: str
    called: bool = False
    trip: tuple[Frame, Frame] | None = None
    later: bool = False


@rule("turn.streamed", title="Notifications come while the turn goes on", level=Level.MUST)
class Streamed(Monitor):
    """Judges that a turn is told while it goes on, not all at once when its work is over.

    A question about an item of a turn shows that the turn goes on: by then its turn/started must
    have been told, since it is not to be kept until the work is over. SHOULD where the model's side
    shows it: the model was asked with the turn's input, a request that was sent then was answered,
    the model's answer or the command that it asked for went on after that, and only then anything
    was told of the turn, be it turn/started or an item; no word says how soon it must be. A witness
    is a turn that was announced by then, or a notification of the turn that came before a request
    of ours was sent whose answer came before the turn's end. Left open: turns whose beginning this
    client did not see, server requests that the text does not have, deltas, which may be joined or
    left out, and how late a notification may be where nothing is asked, since no time is given.
    """

    def begin(self) -> None:
        self._first: dict[str, Frame] = {}
        self._between: dict[str, tuple[Frame, ...]] = {}
        self._works: list[_Work] = []
        self._muddled = False

    @on(*APPROVALS)
    def on_approval(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or not began_here(self.conversation, turn) or turn.completed:
            return None
        if turn.started:
            return [Witness(turn.subject, (turn.started[0], frame))]
        expected = f"turn/started of {turn.subject} before a question in it"
        places, actual = (member(frame, "turnId").place,), f"{frame.method} first"
        return [Violation(turn.subject, (frame,), expected, actual, places=places)]

    @on("turn/started")
    def on_turn_started(self, frame: Frame) -> Outcomes:
        self._first.setdefault(self.conversation.key_of(frame), frame)
        return None

    @on_kind(Kind.RESPONSE, Kind.ERROR)
    def on_response(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None:
            return None
        for turn, first in self._first.items():
            if came_before(first, request):
                self._between.setdefault(turn, (first, request, frame))
        for work in self._works:
            if work.called and work.trip is not None and work.trip[0] is request:
                work.trip = (request, frame)
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None:
            return None
        self._first.pop(turn.key, None)
        between = self._between.pop(turn.key, None)
        if between is None or not began_here(self.conversation, turn):
            return None
        return [Witness(turn.subject, (*between, frame))]

    @on_sent(*MAKES_UNCERTAIN)
    def on_makes_uncertain_sent(self, frame: Frame) -> Outcomes:
        """From here on the model may be asked for something else."""
        self._muddled = True
        return None

    @on_sent("turn/start")
    def on_turn_start_sent(self, frame: Frame) -> Outcomes:
        said = first_text(obj(frame.params).get("input"))
        self._works.append(_Work(frame, said))
        return None

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if failed(frame):
            self._works = [work for work in self._works if work.request is not request]
        return None

    @on_harness_message
    def harness_message(self, frame: Frame) -> Outcomes:
        for work in self._works:
            if work.called and work.trip is None and frame.kind is Kind.REQUEST:
                work.trip = (frame, frame)
        return None

    @on_mark(ModelCall)
    def on_model_call(self, mark: Mark[ModelCall]) -> Outcomes:
        self._goes_on()
        texts = mark.body.user_texts or ()
        for work in self._works:
            alone = (
                len(self._works) == 1
                and not self._muddled
                and len(work.said) >= MIN_TEXT_CHARACTERS
            )
            if alone and any(work.said in words for words in texts):
                work.called = True
        return None

    @on_mark(ModelEnd, GateOpened)
    def goes_on(self, mark: Mark[ModelEnd | GateOpened]) -> Outcomes:
        self._goes_on()
        return None

    def _goes_on(self) -> None:
        for work in self._works:
            work.later = work.later or (work.trip is not None and work.trip[1] is not work.trip[0])

    @on("turn/started", "turn/completed", "error", *ITEM_EVENTS)
    def told(self, frame: Frame) -> Outcomes:
        """The first word of a turn."""
        turn = self.conversation.turn_of(frame)
        if turn is None:
            return None
        for work in self._works:
            thread_id = text(obj(work.request.params).get("threadId"))
            if turn.request not in (work.request, None) or turn.thread_id != thread_id:
                continue
            self._works.remove(work)
            if work.trip is None or not work.later or self._muddled:
                return None
            request, answer = work.trip
            frames = (work.request, request, answer, frame)
            expected = (
                f"a word of {turn.subject} before the answer to {request.method}: "
                "its model was at work before that was asked and after it was answered"
            )
            actual = f"{frame.method} as the first, when that work was over"
            places = (member(frame, "threadId").place,)
            return [Violation(turn.subject, frames, expected, actual, Level.SHOULD, places=places)]
        return None
