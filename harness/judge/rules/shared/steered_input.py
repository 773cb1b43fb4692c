"""Inputs of turn/start and turn/steer, and the later messages and model calls that show them.

An input is recognised by the beginning of its first text. It can be in userMessage items, and in
the user's texts of calls to the scripted model.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from harness.judge.base import Outcome, Outcomes, on, on_answer, on_mark, on_sent
from harness.judge.rules.shared.turn_calls import MAKES_UNCERTAIN, Undisturbed
from harness.judge.rules.shared.view_queries import is_failure, item_in, request_subject
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame
from harness.trace.marks import MarkBody, ModelCall
from harness.trace.order import came_before, marked_before
from harness.trace.trace import Mark
from harness.trace.views import Conversation, TurnView

# Characters of a text that identify it, and the fewest that can. The mark of a model call keeps a
# little more.
BEGINNING, MIN_TEXT_CHARACTERS = 100, 3


@dataclass(frozen=True, slots=True)
class Steer:
    """An answered turn/steer; `input_text` is the beginning of its first text, "" without one."""

    request: Frame
    answer: Frame
    thread_id: str
    expected_turn: str
    input_text: str

    @property
    def is_accepted(self) -> bool:
        """Return whether the server accepted the input."""
        return not is_failure(self.answer)

    @property
    def subject(self) -> str:
        """Return its name in findings."""
        return request_subject(self.request)

    @property
    def frames(self) -> tuple[Frame, ...]:
        """Return the request and its answer."""
        return (self.request, self.answer)


def steer_of(conversation: Conversation, answer: Frame) -> Steer | None:
    """Return the turn/steer of an answer, None if it is unknown or was malformed on purpose."""
    request = conversation.request_of(answer)
    if request is None or request.deliberate:
        return None
    params = obj(request.params)
    ids = text(params.get("threadId")), text(params.get("expectedTurnId"))
    return Steer(request, answer, *ids, first_text(params.get("input")))


def first_text(parts: Any) -> str:
    """Return the beginning of the first text of an input or a userMessage's content, "" if none."""
    texts = [text(obj(part).get("text")) for part in arr(parts) if obj(part).get("type") == "text"]
    return texts[0].strip()[:BEGINNING] if texts else ""


class Inputs(Undisturbed, ABC):
    """Base of rules on steers, with the inputs, userMessage items and model calls of a trace.

    `judge_steer` is called at the end of a quiescent trace for every turn/steer whose input differs
    from every other input. A steer is left out if the history may have been rewritten (by a
    compaction, a rollback and the like) while its turn ran, or if a call may be of another client.
    """

    def begin(self) -> None:
        """Start without inputs."""
        super().begin()
        self.has_missed_calls = False
        self._disturbances: list[Frame] = []
        self.steers: list[Steer] = []
        self.calls: list[tuple[str, ...]] = []
        self._call_marks: list[Mark[ModelCall]] = []
        self._starts: list[Frame] = []
        self.shown_texts: dict[tuple[str, str, str], str] = {}
        self._input_texts: list[str] = []

    @abstractmethod
    def judge_steer(self, steer: Steer) -> Iterable[Outcome]:
        """Judge one turn/steer."""

    def is_disturbed(self, steer: Steer) -> bool:
        """Return whether anything else may have added the input, or kept it away."""
        turn = self.conversation.turn_at(steer.thread_id, steer.expected_turn)
        if self.has_missed_calls or turn is None or turn.request is None or not turn.completions:
            return self.uncertain
        begin, end = turn.request, turn.completions[0]
        return any(
            came_before(begin, frame) and came_before(frame, end) for frame in self._disturbances
        )

    def turn_of_steer(self, steer: Steer) -> TurnView | None:
        """Return the turn that the steer names, if its status is completed."""
        turn = self.conversation.turn_at(steer.thread_id, steer.expected_turn)
        return turn if turn is not None and turn.status == "completed" else None

    def reached_model(self, steer: Steer) -> bool:
        """Return whether any model call contained the input."""
        return any(steer.input_text in words for call in self.calls for words in call)

    def reached_model_in(self, steer: Steer, turn: TurnView) -> bool:
        """Return whether a model call before the next turn contained the input.

        Only a turn/start that was sent after this turn had ended counts as the next one.
        """
        ended = turn.completions[0]
        later = next((start for start in self._starts if came_before(ended, start)), None)
        return any(
            steer.input_text in words
            for call, mark in zip(self.calls, self._call_marks, strict=True)
            if later is None or marked_before(mark, later)
            for words in call
        )

    def items_showing(self, steer: Steer) -> list[str]:
        """Return the ids of the userMessages that show the input."""
        return [item for (*_, item), words in self.shown_texts.items() if steer.input_text in words]

    @on_sent("turn/start", "turn/steer")
    def _on_input_sent(self, frame: Frame) -> Outcomes:
        self._input_texts.append(first_text(obj(frame.params).get("input")))
        if frame.method == "turn/start":
            self._starts.append(frame)
        return None

    @on_sent(*MAKES_UNCERTAIN)
    @on_answer(*MAKES_UNCERTAIN)
    def _on_disturbance(self, frame: Frame) -> Outcomes:
        self._disturbances.append(frame)
        return None

    @on_answer("turn/steer")
    def _on_turn_steer_answer(self, frame: Frame) -> Outcomes:
        steer = steer_of(self.conversation, frame)
        if steer is not None:
            self.steers.append(steer)
        return None

    @on("item/started", "item/completed")
    def _on_item(self, frame: Frame) -> Outcomes:
        item = item_in(frame)
        if item.get("type") == "contextCompaction":
            self.uncertain = True
            self._disturbances.append(frame)
        if item.get("type") == "userMessage":
            params = obj(frame.params)
            turn = text(params.get("threadId")), text(params.get("turnId"))
            self.shown_texts[*turn, text(item.get("id"))] = first_text(item.get("content"))
        return None

    @on_mark(ModelCall)
    def _on_model_call(self, mark: Mark[ModelCall]) -> Outcomes:
        # A call after the last step of the script still belongs to its thread.
        call = mark.body
        if call.user_texts is not None and (call.is_scripted or call.thread):
            self.calls.append(call.user_texts)
            self._call_marks.append(mark)
        return None

    def on_missed_mark(self, mark: Mark[MarkBody]) -> None:
        """Judge nothing in this trace: another client may have called the model."""
        self.uncertain = self.has_missed_calls = True

    def finish(self) -> Outcomes:
        """Judge each steer whose input differs from all others, unless it was disturbed."""
        for steer in self.steers:
            matches = sum(steer.input_text in input_text for input_text in self._input_texts)
            is_unique = len(steer.input_text) >= MIN_TEXT_CHARACTERS and matches == 1
            if is_unique and not self.is_disturbed(steer):
                yield from self.judge_steer(steer)
