"""Rule on userMessage items: they show the input that was sent."""
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
from harness.judge.rules.shared.violations import Member, different, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame
from harness.trace.views import ItemView, TurnView

# With more inputs than this in one turn, only single inputs are compared.
_MAX_INPUTS = 8


@rule("user-message.echo", title="A userMessage shows the input that was sent", level=Level.SHOULD)
class Echo(Monitor):
    """Judges that a turn has a userMessage with the texts of an input that was sent to it.

    That is the input of the turn/start, of any turn/steer on its thread, several of these at once,
    or that of another client whose turn/start may have begun the turn before. Only elements of type
    text are compared, by their text; they may be one text, joined by a space or line ends, and
    without surrounding white space. Further members, other elements and further userMessages that
    the server writes, as for skills, are allowed. The specification does not say that input is
    shown unchanged: SHOULD. Left open: a turn that this client did not start, that has no
    userMessage, or that the client began to follow later.
    """

    def begin(self) -> None:
        self._waiting_items: dict[str, list[Frame]] = {}
        self._echoed: set[str] = set()
        self._violations: dict[str, Violation] = {}

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type != "userMessage" or len(item.completions) > 1:
            return None
        if item.turn.request is None:
            self._waiting_items.setdefault(item.turn.key, []).append(frame)
            return None
        return self._judge(item, item.turn.request, frame)

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        for waiting in self._waiting_items.pop(self.conversation.key_of(frame), []):
            item = self.conversation.item_of(waiting)
            if item is not None and item.turn.request is not None:
                yield from self._judge(item, item.turn.request, waiting)

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        violation = self._violations.pop(self.conversation.key_of(frame), None)
        return [violation] if violation is not None else None

    def finish(self) -> Outcomes:
        return list(self._violations.values())

    def _judge(self, item: ItemView, request: Frame, frame: Frame) -> Iterator[Outcome]:
        shown_texts, turn = _texts(item_in(frame).get("content")), item.turn.key
        sent = [_texts(obj(request.params).get("input")), *self._steer_inputs(item.turn)]
        if _matches(shown_texts, sent) or _matches(
            shown_texts, [*sent, *self._inputs_of_others(item.turn, frame)]
        ):
            self._echoed.add(turn)
            self._violations.pop(turn, None)
            yield Witness(item.subject, (request, frame))
        elif turn in self._echoed or turn in self._violations:
            return
        elif began_here(self.conversation, item.turn):
            self._violations[turn] = self._echo_violation(
                item, request, frame, sent[0], shown_texts
            )

    def _echo_violation(
        self,
        item: ItemView,
        request: Frame,
        frame: Frame,
        input_texts: list[str],
        shown_texts: list[str],
    ) -> Violation:
        pairs = zip(input_texts, shown_texts, strict=False)
        shortest = min(len(input_texts), len(shown_texts))
        first = next(
            (index for index, (sent_text, other) in enumerate(pairs) if sent_text != other),
            shortest,
        )
        input_field = _text_at(member(request, "input"), first)
        field, frames = _text_at(member(frame, "item", "content"), first), (request, frame)
        if first < shortest:
            return different(item.subject, frames, field, input_texts[first], also=(input_field,))
        expected = f"{len(input_texts)} text(s), as were sent, and there are {len(shown_texts)}"
        return wrong(item.subject, frames, field, expected, also=(input_field,))

    def _steer_inputs(self, turn: TurnView) -> list[list[str]]:
        return [
            _texts(obj(request.params).get("input"))
            for request in self.conversation.requests
            if request.method == "turn/steer"
            and text(obj(request.params).get("threadId")) == turn.thread_id
        ]

    def _inputs_of_others(self, turn: TurnView, frame: Frame) -> Iterator[list[str]]:
        """Yield the inputs of other clients' turn/start that may have begun the turn."""
        exchanges = Exchanges(self.trace, frame)
        for request in exchanges.requests("turn/start"):
            if (
                request.connection != frame.connection
                and thread_of_request(request) == turn.thread_id
            ):
                answer = exchanges.answer_of(request)
                if answer is None or text(dig(answer.result, "turn", "id")) == turn.id:
                    yield _texts(obj(request.params).get("input"))


def _matches(texts: list[str], inputs: list[list[str]]) -> bool:
    """Return whether the texts are one input, a run of inputs, or the joined text of a run."""
    if texts in inputs:
        return True
    if len(inputs) > _MAX_INPUTS:
        return False
    runs = [
        [words for texts_of_input in inputs[start:end] for words in texts_of_input]
        for start in range(len(inputs))
        for end in range(start + 1, len(inputs) + 1)
    ]
    joined = {between.join(run).strip() for run in runs for between in ("", " ", "\n", "\n\n")}
    return texts in runs or "".join(texts).strip() in joined


def _text_at(elements: Member, number: int) -> Member:
    """Return the member of the text of that number; all elements if there are fewer."""
    parts = [obj(part) for part in arr(elements.value)]
    places = [index for index, part in enumerate(parts) if part.get("type") == "text"]
    return elements.part(places[number], "text") if number < len(places) else elements


def _texts(elements: Any) -> list[str]:
    parts = [obj(part) for part in arr(elements)]
    return [text(part.get("text")) for part in parts if part.get("type") == "text"]
