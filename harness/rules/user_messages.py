"""The rule on user input as the server shows it back.

Here: userMessage items against what was sent with turn/start and turn/steer.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Any

from harness.rules.base import Monitor, Outcomes, Witness, on, on_answer, rule
from harness.rules.subjects import item_in
from harness.rules.telling import Member, differs, member, wrong
from harness.rules.verdict import Level
from harness.trace.frame import Frame
from harness.trace.values import arr, obj, text
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
            self._waiting.setdefault(item.turn.key, []).append(frame)
            return None
        return self._judge(item, item.turn.request, frame)

    @on_answer("turn/start")
    def reply(self, frame: Frame) -> Outcomes:
        for waiting in self._waiting.pop(self.conversation.key_of(frame), []):
            item = self.conversation.item_of(waiting)
            if item is not None and item.turn.request is not None:
                yield from self._judge(item, item.turn.request, waiting) or ()

    def _judge(self, item: ItemView, request: Frame, frame: Frame) -> Outcomes:
        shown_texts = _texts(item_in(frame).get("content"))
        sent = [_texts(obj(request.params).get("input")), *self._steered(item.turn)]
        if shown_texts in sent:
            self._echoed.add(item.turn.key)
            return [Witness(item.subject, (request, frame))]
        if item.turn.key in self._echoed:
            return None
        pairs = zip(sent[0], shown_texts, strict=False)
        alike = min(len(sent[0]), len(shown_texts))
        first = next((at for at, (one, other) in enumerate(pairs) if one != other), alike)
        asked = _text_at(member(request, "input"), first)
        where, frames = _text_at(member(frame, "item", "content"), first), (request, frame)
        if first < alike:
            return [differs(item.subject, frames, where, sent[0][first], also=(asked,))]
        expected = f"{len(sent[0])} text(s), as were sent, and there are {len(shown_texts)}"
        return [wrong(item.subject, frames, where, expected, also=(asked,))]

    def _steered(self, turn: TurnView) -> list[list[str]]:
        return [
            _texts(obj(request.params).get("input"))
            for request in self.conversation.requests.values()
            if request.method == "turn/steer"
            and text(obj(request.params).get("threadId")) == turn.thread_id
        ]


def _text_at(elements: Member, number: int) -> Member:
    """Where the text of that number stands; all the elements where there are not so many."""
    parts = [obj(part) for part in arr(elements.value)]
    places = [at for at, part in enumerate(parts) if part.get("type") == "text"]
    return elements.part(places[number], "text") if number < len(places) else elements


def _texts(elements: Any) -> list[str]:
    parts = [obj(part) for part in arr(elements)]
    return [text(part.get("text")) for part in parts if part.get("type") == "text"]
