"""The rule on user input as the server shows it back."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from typing import Any

from harness.judge.base import (
    Monitor,
    Outcome,
    Outcomes,
    Violation,
    Witness,
    on,
    on_answer,
    rule,
)
from harness.judge.rules.shared.subscriptions import Exchanges, thread_of_request
from harness.judge.rules.shared.view_queries import began_here, item_in
from harness.judge.rules.shared.violations import Member, differs, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame
from harness.trace.views import ItemView, TurnView

# With more inputs than this in one turn only whole ones are compared.
_MAX_INPUTS = 8


@rule("user-message.echo", title="A userMessage shows the input that was sent", level=Level.SHOULD)
class Echo(Monitor):
    """Judges that a turn has a userMessage with the texts of an input that was sent to it.

    The input of the turn/start, or of any turn/steer on its thread, or several of them at once, and
    that of another client whose turn/start may have begun the turn before. Only elements of type
    text are compared, by their text; they may be one text, with a space or line ends in between,
    and without the white space around it. Further members, other elements and further userMessages
    that the server writes, as for skills, are free. Nothing says that input is shown unchanged:
    SHOULD. A turn that this client did not start is not judged, nor one without a userMessage, nor
    one that the client only began to follow while it ran.
    """

    def begin(self) -> None:
        self._waiting: dict[str, list[Frame]] = {}
        self._echoed: set[str] = set()
        self._found: dict[str, Violation] = {}

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type != "userMessage" or len(item.completed) > 1:
            return None
        if item.turn.request is None:
            self._waiting.setdefault(item.turn.key, []).append(frame)
            return None
        return self._judge(item, item.turn.request, frame)

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        for waiting in self._waiting.pop(self.conversation.key_of(frame), []):
            item = self.conversation.item_of(waiting)
            if item is not None and item.turn.request is not None:
                yield from self._judge(item, item.turn.request, waiting)

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        found = self._found.pop(self.conversation.key_of(frame), None)
        return [found] if found is not None else None

    def finish(self) -> Outcomes:
        return list(self._found.values())

    def _judge(self, item: ItemView, request: Frame, frame: Frame) -> Iterator[Outcome]:
        shown, turn = _texts(item_in(frame).get("content")), item.turn.key
        sent = [_texts(obj(request.params).get("input")), *self._steered(item.turn)]
        if _alike(shown, sent) or _alike(shown, [*sent, *self._of_others(item.turn, frame)]):
            self._echoed.add(turn)
            self._found.pop(turn, None)
            yield Witness(item.subject, (request, frame))
        elif turn in self._echoed or turn in self._found:
            return
        elif began_here(self.conversation, item.turn):
            self._found[turn] = self._unlike(item, request, frame, sent[0], shown)

    def _unlike(
        self, item: ItemView, request: Frame, frame: Frame, sent: list[str], shown: list[str]
    ) -> Violation:
        pairs = zip(sent, shown, strict=False)
        alike = min(len(sent), len(shown))
        first = next((at for at, (one, other) in enumerate(pairs) if one != other), alike)
        asked = _text_at(member(request, "input"), first)
        where, frames = _text_at(member(frame, "item", "content"), first), (request, frame)
        if first < alike:
            return differs(item.subject, frames, where, sent[first], also=(asked,))
        expected = f"{len(sent)} text(s), as were sent, and there are {len(shown)}"
        return wrong(item.subject, frames, where, expected, also=(asked,))

    def _steered(self, turn: TurnView) -> list[list[str]]:
        return [
            _texts(obj(request.params).get("input"))
            for request in self.conversation.requests
            if request.method == "turn/steer"
            and text(obj(request.params).get("threadId")) == turn.thread_id
        ]

    def _of_others(self, turn: TurnView, shown: Frame) -> Iterator[list[str]]:
        """The inputs of other clients' turn/start that may have begun the turn before a message."""
        exchanges = Exchanges(self.trace, shown)
        for request in exchanges.sent("turn/start"):
            if (
                request.connection != shown.connection
                and thread_of_request(request) == turn.thread_id
            ):
                answer = exchanges.answer_of(request)
                if answer is None or text(dig(answer.result, "turn", "id")) == turn.id:
                    yield _texts(obj(request.params).get("input"))


def _alike(shown: list[str], sent: list[list[str]]) -> bool:
    """Return whether this is one of the inputs, some of them after one another, or one text of
    them.
    """
    if shown in sent:
        return True
    if len(sent) > _MAX_INPUTS:
        return False
    runs = [
        [words for given in sent[start:end] for words in given]
        for start in range(len(sent))
        for end in range(start + 1, len(sent) + 1)
    ]
    whole = {between.join(run).strip() for run in runs for between in ("", " ", "\n", "\n\n")}
    return shown in runs or "".join(shown).strip() in whole


def _text_at(elements: Member, number: int) -> Member:
    """Return the member of the text of that number; all elements if there are fewer."""
    parts = [obj(part) for part in arr(elements.value)]
    places = [at for at, part in enumerate(parts) if part.get("type") == "text"]
    return elements.part(places[number], "text") if number < len(places) else elements


def _texts(elements: Any) -> list[str]:
    parts = [obj(part) for part in arr(elements)]
    return [text(part.get("text")) for part in parts if part.get("type") == "text"]
