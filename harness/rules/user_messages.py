"""The rule on user input as the server shows it back.

Here: userMessage items against what was sent with turn/start and turn/steer.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Any

from harness.rules.base import Monitor, Outcomes, Violation, Witness, on, on_answer, rule
from harness.rules.subjects import item_in, shown
from harness.rules.verdict import Level
from harness.trace.frame import Frame
from harness.trace.values import arr, dig, obj, text
from harness.trace.views import ItemView, TurnView


@rule("user-message.echo", title="A userMessage shows the input that was sent", level=Level.SHOULD)
class Echo(Monitor):
    """Judges that a userMessage holds the texts of an input that was sent to its turn.

    The input of the turn/start, or of any turn/steer on its thread. Only elements of type text are
    compared, by their text; further members, other elements and further userMessages that the
    server writes for skills are free. Nothing says that input is shown unchanged: SHOULD. A turn
    that this client did not start is not judged.
    """

    def begin(self) -> None:
        self._waiting: dict[str, list[Frame]] = {}
        self._echoed: set[str] = set()

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type != "userMessage" or len(item.completed) > 1:
            return None
        if item.turn.request is None:
            self._waiting.setdefault(item.turn.id, []).append(frame)
            return None
        return self._judge(item, item.turn.request, frame)

    @on_answer("turn/start")
    def reply(self, frame: Frame) -> Outcomes:
        turn_id = text(dig(frame.result, "turn", "id"))
        for waiting in self._waiting.pop(turn_id, []):
            item = self.conversation.item_of(waiting)
            if item is not None and item.turn.request is not None:
                yield from self._judge(item, item.turn.request, waiting) or ()

    def _judge(self, item: ItemView, request: Frame, frame: Frame) -> Outcomes:
        shown_texts = _texts(item_in(frame).get("content"))
        sent = [_texts(obj(request.params).get("input")), *self._steered(item.turn)]
        if shown_texts in sent:
            self._echoed.add(item.turn.id)
            return [Witness(item.subject, (request, frame))]
        if item.turn.id in self._echoed:
            return None
        expected = f"the texts that were sent: {shown(sent[0])}"
        return [Violation(item.subject, (request, frame), expected, shown(shown_texts))]

    def _steered(self, turn: TurnView) -> list[list[str]]:
        return [
            _texts(obj(request.params).get("input"))
            for request in self.conversation.requests.values()
            if request.method == "turn/steer"
            and text(obj(request.params).get("threadId")) == turn.thread_id
        ]


def _texts(elements: Any) -> list[str]:
    parts = [obj(part) for part in arr(elements)]
    return [text(part.get("text")) for part in parts if part.get("type") == "text"]
