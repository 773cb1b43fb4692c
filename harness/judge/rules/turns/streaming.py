"""Rule that a turn is reported while it runs, not only at its end."""
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
from harness.judge.rules.shared.view_queries import began_here, is_failure
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
    """A turn/start of this client, and the evidence that its turn is at work.

    `called_model` is set once the model is called with the turn's input. `round_trip` is a request
    sent after that, and its answer; `went_on` is set if the model continued after the answer.
    """

    request: Frame
    input_text: str
    called_model: bool = False
    round_trip: tuple[Frame, Frame] | None = None
    went_on: bool = False


@rule("turn.streamed", title="Notifications come during the turn", level=Level.MUST)
class Streamed(Monitor):
    """Judges that a turn is reported while it runs, not all at once at its end.

    An approval request for an item shows that the turn runs: by then its turn/started must have
    come. SHOULD if the model shows it: the model was called with the turn's input, a later request
    was answered, the model's answer or its command continued after that, and only then the first
    message of the turn came, be it turn/started or an item; the specification gives no limit. A
    witness is a turn that was announced by then, or a notification of the turn before a request
    that was answered before the turn's end. Left open: turns whose beginning this client did not
    see, server requests that the specification does not have, deltas, which may be joined or
    omitted, and the delay of a notification outside these cases, since no time is given.
    """

    def begin(self) -> None:
        self._first_messages: dict[str, Frame] = {}
        self._round_trips: dict[str, tuple[Frame, ...]] = {}
        self._works: list[_Work] = []
        self._is_uncertain = False

    @on(*APPROVALS)
    def on_approval(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or not began_here(self.conversation, turn) or turn.completions:
            return None
        if turn.starts:
            return [Witness(turn.subject, (turn.starts[0], frame))]
        expected = f"turn/started of {turn.subject} before a question in it"
        places, actual = (member(frame, "turnId").place,), f"{frame.method} first"
        return [Violation(turn.subject, (frame,), expected, actual, places=places)]

    @on("turn/started")
    def on_turn_started(self, frame: Frame) -> Outcomes:
        self._first_messages.setdefault(self.conversation.key_of(frame), frame)
        return None

    @on_kind(Kind.RESPONSE, Kind.ERROR)
    def on_response(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None:
            return None
        for turn, first in self._first_messages.items():
            if came_before(first, request):
                self._round_trips.setdefault(turn, (first, request, frame))
        for work in self._works:
            if work.called_model and work.round_trip is not None and work.round_trip[0] is request:
                work.round_trip = (request, frame)
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None:
            return None
        self._first_messages.pop(turn.key, None)
        between = self._round_trips.pop(turn.key, None)
        if between is None or not began_here(self.conversation, turn):
            return None
        return [Witness(turn.subject, (*between, frame))]

    @on_sent(*MAKES_UNCERTAIN)
    def on_makes_uncertain_sent(self, frame: Frame) -> Outcomes:
        """Note that the model may be called for something else from now on."""
        self._is_uncertain = True
        return None

    @on_sent("turn/start")
    def on_turn_start_sent(self, frame: Frame) -> Outcomes:
        input_text = first_text(obj(frame.params).get("input"))
        self._works.append(_Work(frame, input_text))
        return None

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if is_failure(frame):
            self._works = [work for work in self._works if work.request is not request]
        return None

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        for work in self._works:
            if work.called_model and work.round_trip is None and frame.kind is Kind.REQUEST:
                work.round_trip = (frame, frame)
        return None

    @on_mark(ModelCall)
    def on_model_call(self, mark: Mark[ModelCall]) -> Outcomes:
        self._note_progress()
        texts = mark.body.user_texts or ()
        for work in self._works:
            alone = (
                len(self._works) == 1
                and not self._is_uncertain
                and len(work.input_text) >= MIN_TEXT_CHARACTERS
            )
            if alone and any(work.input_text in words for words in texts):
                work.called_model = True
        return None

    @on_mark(ModelEnd, GateOpened)
    def on_model_progress(self, mark: Mark[ModelEnd | GateOpened]) -> Outcomes:
        self._note_progress()
        return None

    def _note_progress(self) -> None:
        for work in self._works:
            work.went_on = work.went_on or (
                work.round_trip is not None and work.round_trip[1] is not work.round_trip[0]
            )

    @on("turn/started", "turn/completed", "error", *ITEM_EVENTS)
    def on_turn_message(self, frame: Frame) -> Outcomes:
        """Judge the first message of a turn."""
        turn = self.conversation.turn_of(frame)
        if turn is None:
            return None
        for work in self._works:
            thread_id = text(obj(work.request.params).get("threadId"))
            if turn.request not in (work.request, None) or turn.thread_id != thread_id:
                continue
            self._works.remove(work)
            if work.round_trip is None or not work.went_on or self._is_uncertain:
                return None
            request, answer = work.round_trip
            frames = (work.request, request, answer, frame)
            expected = (
                f"a word of {turn.subject} before the answer to {request.method}: "
                "its model was at work before that was asked and after it was answered"
            )
            actual = f"{frame.method} as the first, when that work was over"
            places = (member(frame, "threadId").place,)
            return [Violation(turn.subject, frames, expected, actual, Level.SHOULD, places=places)]
        return None
