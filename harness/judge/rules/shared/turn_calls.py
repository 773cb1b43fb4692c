"""Model calls by turn, for rules that compare calls with turns.

The order between model calls and messages is known only if one caused the other. So a call is
assigned to a turn only while no other turn runs and the trace has one thread, or because it
contains the input of the turn, which no other turn has.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from harness.judge.base import Monitor, Outcome, Outcomes, on, on_answer, on_mark, on_sent
from harness.judge.rules.shared.state_tracking import COMPLETED
from harness.judge.rules.shared.thread_histories import ThreadHistories
from harness.judge.rules.shared.view_queries import is_failure, turn_in
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.marks import MarkBody, ModelCall, ModelEnd
from harness.trace.trace import Mark

# Requests that also call the model, may rewrite a thread's history, or end the client's
# subscription. Nothing is judged after one of them.
MAKES_UNCERTAIN = methods_with("may-disturb-model-calls")


@dataclass(slots=True)
class TurnCalls:
    """A turn/start with its params and the model calls of its turn; `turn_id` is the view's key.

    `ends` has the end of each call, which may be recorded after the turn's end. `unclear` means
    that a call of another turn may be among `calls`, or one of its own missing.
    """

    request: Frame
    params: dict[str, Any]
    turn_id: str = ""
    unclear: bool = False
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    ends: list[ModelEnd] = field(default_factory=list[ModelEnd])

    @property
    def subject(self) -> str:
        """Return its name in findings."""
        return f"turn {self.turn_id}"


def is_completed(end: Frame) -> bool:
    """Return whether a turn/completed says that the agent finished the turn."""
    return turn_in(end).get("status") == COMPLETED


class Undisturbed(Monitor):
    """Base of rules on model calls; `uncertain` once a request may have disturbed them."""

    def begin(self) -> None:
        """Start without uncertainty."""
        self.uncertain = False

    @on_sent(*MAKES_UNCERTAIN)
    def _on_makes_uncertain_sent(self, frame: Frame) -> Outcomes:
        self.uncertain = True
        return None


class Calls(Undisturbed, ABC):
    """Base of rules on the model calls of each turn, which they judge in `on_turn_end`.

    It is called once, when the turn has completed. A rule that also needs the ends of the calls, or
    messages that may come later, keeps the value until the trace has ended. With `by_input` it is
    also called for turns among several threads or clients, after a turn that was cut off, or after
    a request that may disturb model calls, with the calls that contain the turn's input, without
    their ends.
    """

    by_input: ClassVar[bool] = False

    def begin(self) -> None:
        """Start without turns."""
        super().begin()
        self._histories: ThreadHistories | None = None
        self._open: list[TurnCalls] = []
        self._of_call: dict[int, TurnCalls] = {}
        self._threads: set[str] = set()
        self._unclear = False
        self.forget()

    def forget(self) -> None:
        """Forget the calls of earlier turns, which are now uncertain; does nothing by default."""

    @abstractmethod
    def on_turn_end(self, turn_calls: TurnCalls, end: Frame) -> Iterable[Outcome]:
        """Judge a turn with at least one call, all of which are known."""

    @on_sent("turn/start")
    def _on_turn_start_sent(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        self._threads.add(text(params.get("threadId")))
        unclear = bool(self._open) or self._unclear or frame.deliberate
        for other in self._open:
            other.unclear = True
        self._open.append(TurnCalls(frame, params, unclear=unclear))
        self._unclear = False
        return None

    @on_answer("turn/start")
    def _on_turn_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        for turn_calls in [pending for pending in self._open if pending.request is request]:
            turn_calls.turn_id = self.conversation.key_of(frame)
            if is_failure(frame):
                self._open.remove(turn_calls)
                self.forget()
        return None

    @on_mark(ModelCall)
    def _on_model_call(self, mark: Mark[ModelCall]) -> Outcomes:
        call = mark.body
        if len(self._open) != 1 or call.model is None:
            return None
        if call.is_scripted:
            self._open[0].calls.append(call)
            self._of_call[call.call] = self._open[0]
        else:
            # The harness answered it, since the script was over.
            self._open[0].unclear = True
        return None

    @on_mark(ModelEnd)
    def _on_model_end(self, mark: Mark[ModelEnd]) -> Outcomes:
        turn_calls = self._of_call.pop(mark.body.call, None)
        if turn_calls is not None:
            turn_calls.ends.append(mark.body)
        return None

    def on_missed_mark(self, mark: Mark[MarkBody]) -> None:
        """Mark the open turns as unclear: with several clients, a call may be of any turn."""
        if isinstance(mark.body, ModelEnd):
            turn_calls = self._of_call.pop(mark.body.call, None)
            if turn_calls is not None:
                turn_calls.ends.append(mark.body)
        elif isinstance(mark.body, ModelCall):
            for turn_calls in self._open:
                turn_calls.unclear = True

    @on("turn/completed")
    def _on_turn_completed(self, frame: Frame) -> Outcomes:
        turn_id = self.conversation.key_of(frame)
        turn_calls = next(
            (pending for pending in self._open if pending.turn_id in ("", turn_id)), None
        )
        if turn_calls is None:
            return
        self._open.remove(turn_calls)
        turn_calls.turn_id = turn_id
        # A model call of an interrupted turn may come late, while the next turn runs.
        self._unclear = not is_completed(frame)
        if turn_calls.unclear or self.uncertain or len(self._threads) > 1:
            calls = self._calls_with_input(frame) if self.by_input else []
            if calls:
                yield from self.on_turn_end(replace(turn_calls, calls=calls, ends=[]), frame)
            else:
                self.forget()
        elif turn_calls.calls:
            yield from self.on_turn_end(turn_calls, frame)
        else:
            self.forget()

    def _calls_with_input(self, end: Frame) -> list[ModelCall]:
        """Return the calls that contain the input of an ended turn, [] if another turn has it."""
        if self._histories is None:
            self._histories = self.conversation.reader(ThreadHistories, self.trace)
        self._histories.read_until(end)
        turn = self._histories.turn_of_end(end)
        if turn is None or self._histories.has_too_many_texts or not turn.inputs[0]:
            return []
        known = all(call.is_scripted and call.model is not None for call in turn.calls)
        return turn.calls if known and self._histories.is_unique(turn.inputs[0]) else []
