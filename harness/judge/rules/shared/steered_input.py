"""The inputs of turn/start and turn/steer, and where they show up afterwards.

An input is recognised by the beginning of its first text. It can show up in userMessage items, and
in the user's texts of calls to the scripted model.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from harness.judge.base import Outcome, Outcomes, on, on_answer, on_mark, on_sent
from harness.judge.rules.shared.turn_calls import Undisturbed
from harness.judge.rules.shared.view_queries import failed, item_in, request_subject
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame
from harness.trace.marks import MarkBody, ModelCall
from harness.trace.order import came_before, marked_before
from harness.trace.trace import Mark
from harness.trace.views import Conversation, TurnView

# So many characters of a text identify it; a text with fewer than the second identifies nothing.
# The mark of a model call keeps a little more.
BEGINNING, MIN_TEXT_CHARACTERS = 100, 3


@dataclass(frozen=True, slots=True)
class Steer:
    """A turn/steer that was answered; `said` is the beginning of its first text, "" for none."""

    request: Frame
    answer: Frame
    thread_id: str
    expected: str
    said: str

    @property
    def granted(self) -> bool:
        """Return whether the server accepted the input."""
        return not failed(self.answer)

    @property
    def subject(self) -> str:
        """Return its name in findings."""
        return request_subject(self.request)

    @property
    def frames(self) -> tuple[Frame, ...]:
        """Request and answer."""
        return (self.request, self.answer)


def steer_of(conversation: Conversation, answer: Frame) -> Steer | None:
    """The turn/steer that an answer belongs to; None where it was malformed on purpose."""
    request = conversation.request_of(answer)
    if request is None or request.deliberate:
        return None
    params = obj(request.params)
    where = text(params.get("threadId")), text(params.get("expectedTurnId"))
    return Steer(request, answer, *where, first_text(params.get("input")))


def first_text(parts: Any) -> str:
    """The beginning of the first text of an input or of a userMessage's content."""
    texts = [text(obj(part).get("text")) for part in arr(parts) if obj(part).get("type") == "text"]
    return texts[0].strip()[:BEGINNING] if texts else ""


class Inputs(Undisturbed, ABC):
    """Collects inputs, userMessage items and model calls; a rule judges each steer in `judged`.

    `judged` is called at the end of a quiescent trace for every turn/steer whose input can be told
    from every other input. Nothing is judged where the thread's history may have been rewritten
    (by a compaction, a rollback and the like).
    """

    def begin(self) -> None:
        """No input yet."""
        super().begin()
        self.steers: list[Steer] = []
        self.calls: list[tuple[str, ...]] = []
        self._called_at: list[Mark[ModelCall]] = []
        self._starts: list[Frame] = []
        self.shown: dict[tuple[str, str, str], str] = {}
        self._said: list[str] = []

    @abstractmethod
    def judged(self, steer: Steer) -> Iterable[Outcome]:
        """Judge one turn/steer."""

    def turn_of_steer(self, steer: Steer) -> TurnView | None:
        """The turn that the steer names, if its status is completed."""
        turn = self.conversation.turn_at(steer.thread_id, steer.expected)
        return turn if turn is not None and turn.status == "completed" else None

    def heard(self, steer: Steer) -> bool:
        """Return whether any model call contained the input."""
        return any(steer.said in words for call in self.calls for words in call)

    def heard_by(self, steer: Steer, turn: TurnView) -> bool:
        """Return whether a model call contained the input that came before any later turn was asked
        for.

        Only a turn/start that was sent after this turn had ended counts as later.
        """
        ended = turn.completed[0]
        later = next((start for start in self._starts if came_before(ended, start)), None)
        return any(
            steer.said in words
            for call, mark in zip(self.calls, self._called_at, strict=True)
            if later is None or marked_before(mark, later)
            for words in call
        )

    def shown_items(self, steer: Steer) -> list[str]:
        """The ids of the userMessages that show the input."""
        return [item for (*_, item), words in self.shown.items() if steer.said in words]

    @on_sent("turn/start", "turn/steer")
    def _on_input_sent(self, frame: Frame) -> Outcomes:
        self._said.append(first_text(obj(frame.params).get("input")))
        if frame.method == "turn/start":
            self._starts.append(frame)
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
        if item.get("type") == "userMessage":
            params = obj(frame.params)
            turn = text(params.get("threadId")), text(params.get("turnId"))
            self.shown[*turn, text(item.get("id"))] = first_text(item.get("content"))
        return None

    @on_mark(ModelCall)
    def _on_model_call(self, mark: Mark[ModelCall]) -> Outcomes:
        # A call for which the script has no step left still belongs to its thread.
        call = mark.body
        if call.user_texts is not None and (call.scripted or call.thread):
            self.calls.append(call.user_texts)
            self._called_at.append(mark)
        return None

    def misses(self, mark: Mark[MarkBody]) -> None:
        """Note that the model was asked for something, and not by which client."""
        self.uncertain = True

    def finish(self) -> Outcomes:
        """Judge all that can be."""
        for steer in self.steers:
            alike = sum(steer.said in said for said in self._said)
            if len(steer.said) >= MIN_TEXT_CHARACTERS and alike == 1 and not self.uncertain:
                yield from self.judged(steer)
