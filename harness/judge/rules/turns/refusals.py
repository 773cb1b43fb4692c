"""Rules on turn/interrupt and turn/steer that are refused while their turn runs."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from dataclasses import dataclass
from typing import Final

from harness.judge.base import Monitor, Outcomes, Witness, on, on_answer, on_mark, rule
from harness.judge.rules.shared.view_queries import failed, request_subject
from harness.judge.rules.shared.violations import instead, whole
from harness.judge.verdict import Level
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall
from harness.trace.order import came_before
from harness.trace.trace import Mark
from harness.trace.views import TurnView

# No limit is shown; a text of this many characters is below any.
_MAX_INPUT_CHARACTERS: Final = 10_000


@dataclass(slots=True)
class _Refused:
    """A refused request, and what then proved that its turn was still running.

    `begun` says whether the turn was announced before, where that makes it the active one.
    """

    request: Frame
    answer: Frame
    begun: bool
    called: bool = False
    news: Frame | None = None


class _Granting(Monitor):
    """The common part of both rules; `named` is the param that names the turn."""

    named = ""

    def begin(self) -> None:
        self._refused: dict[str, list[_Refused]] = {}

    def answered(self, frame: Frame) -> Outcomes:
        """Take an answer to the request in."""
        request = self.conversation.request_of(frame)
        turn = None if request is None else self._running(request)
        if request is None or turn is None:
            return None
        if not failed(frame):
            return [Witness(request_subject(request), (request, frame))]
        if not turn.completed and _is_plain(request):
            begun = self.is_active(turn, request)
            self._refused.setdefault(turn.key, []).append(_Refused(request, frame, begun))
        return None

    def is_active(self, turn: TurnView, request: Frame) -> bool:
        """Return whether a turn in progress is certainly what the request means by its turn."""
        return True

    def _running(self, request: Frame) -> TurnView | None:
        """The turn that is named, if it had begun, and for all that is known had not ended."""
        params = obj(request.params)
        ids = text(params.get("threadId")), text(params.get(self.named))
        turn = self.conversation.turn_at(*ids)
        if turn is None or turn.reply is None or request.deliberate or params.get("input") == []:
            return None
        begun = self.trace.before(turn.reply, request) is True
        here = turn.thread_id == ids[0]
        ended = any(self.trace.before(end, request) is True for end in turn.completed)
        asked = any(came_before(other, request) for other in turn.interrupts)
        return turn if begun and here and not ended and not asked else None

    @on_mark(ModelCall)
    def on_model_call(self, mark: Mark[ModelCall]) -> Outcomes:
        """A turn that calls the model after the refusal, or had done so, was running."""
        running = [t for t in self.conversation.turns.values() if t.reply and not t.completed]
        if len(running) == 1 and mark.body.model is not None and mark.body.scripted:
            for refused in self._refused.get(running[0].key, []):
                refused.called = True
        return None

    @on("turn/started", "item/started")
    def began(self, frame: Frame) -> Outcomes:
        """So was one of which something new is told after the refusal."""
        turn = self.conversation.turn_of(frame)
        for refused in self._refused.get(turn.key, []) if turn is not None else []:
            refused.news = refused.news or frame
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        """Only a turn that came to its own end tells something."""
        turn = self.conversation.turn_of(frame)
        for refused in self._refused.pop(turn.key, []) if turn is not None else []:
            if turn is not None and turn.status == "completed" and (refused.called or refused.news):
                news = (refused.news,) if refused.news else ()
                frames = (refused.request, refused.answer, *news, frame)
                level = None if refused.called and refused.begun else Level.SHOULD
                yield instead(
                    request_subject(refused.request),
                    frames,
                    whole(refused.answer, "error"),
                    f"a result, since {turn.id} was the active turn and went on after it",
                    level=level,
                )


def _is_plain(request: Frame) -> bool:
    """Return whether nothing that a request adds to its turn can be what it is refused for."""
    added = [obj(part) for part in arr(obj(request.params).get("input"))]
    length = sum(len(text(part.get("text"))) for part in added)
    return all(part.get("type") == "text" for part in added) and length <= _MAX_INPUT_CHARACTERS


@rule(
    "interrupt.granted",
    title="turn/interrupt of the active turn is granted",
    level=Level.MUST,
)
class InterruptGranted(_Granting):
    """Judges a refused turn/interrupt whose turn had been answered before and went on after it.

    The table of turns lets every turn in progress be interrupted. That it was in progress is
    certain where it called the model after the refusal and then came to its own end; where only
    turn/started or item/started followed, which may have waited in the server, the finding is
    SHOULD. Left open: further interrupts of the same turn, turns that no turn/start of ours began.
    """

    named = "turnId"

    @on_answer("turn/interrupt")
    def on_turn_interrupt_answer(self, frame: Frame) -> Outcomes:
        return self.answered(frame)


@rule(
    "steer.granted",
    title="turn/steer that names the active turn is granted",
    level=Level.MUST,
    needs=("steering",),
)
class SteerGranted(_Granting):
    """Judges a refused turn/steer whose turn had been answered before and went on after it.

    The table of turns lets input be added to every turn in progress. That it was in progress is
    certain where it called the model after the refusal and then came to its own end; where only
    turn/started or item/started followed, which may have waited in the server, or where no
    turn/started had come before the request, the finding is SHOULD. Left open: input that is empty,
    very long, or other than text, which may be what is refused; turns that were to be interrupted,
    turns that no turn/start of ours began.
    """

    named = "expectedTurnId"

    def is_active(self, turn: TurnView, request: Frame) -> bool:
        return any(self.trace.before(begun, request) is True for begun in turn.started)

    @on_answer("turn/steer")
    def on_turn_steer_answer(self, frame: Frame) -> Outcomes:
        return self.answered(frame)
