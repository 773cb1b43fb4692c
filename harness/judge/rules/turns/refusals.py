"""Rules on turn/interrupt and turn/steer that are rejected while their turn runs."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from dataclasses import dataclass
from typing import Final

from harness.judge.base import Monitor, Outcomes, Witness, on, on_answer, on_mark, rule
from harness.judge.rules.shared.view_queries import is_failure, request_subject
from harness.judge.rules.shared.violations import root_member, unexpected_member
from harness.judge.verdict import Level
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall
from harness.trace.order import came_before
from harness.trace.trace import Mark
from harness.trace.views import TurnView

# The specification shows no limit of an input; this is below any.
_MAX_INPUT_CHARACTERS: Final = 10_000


@dataclass(slots=True)
class _Refusal:
    """A rejected request, and the later proof that its turn was still running.

    `was_announced` means that the turn was certainly the active one when the request was sent.
    """

    request: Frame
    answer: Frame
    was_announced: bool
    called_model: bool = False
    progress: Frame | None = None


class _Granting(Monitor):
    """Base of rules on requests about the active turn; `turn_param` has the name of its id."""

    turn_param = ""

    def begin(self) -> None:
        self._refusals: dict[str, list[_Refusal]] = {}

    def add_answer(self, frame: Frame) -> Outcomes:
        """Return a witness for an accepted request; keep a rejected one until its turn ends."""
        request = self.conversation.request_of(frame)
        turn = None if request is None else self._named_turn(request)
        if request is None or turn is None:
            return None
        if not is_failure(frame):
            return [Witness(request_subject(request), (request, frame))]
        if not turn.completions and _is_plain(request):
            was_announced = self.is_active(turn, request)
            self._refusals.setdefault(turn.key, []).append(_Refusal(request, frame, was_announced))
        return None

    def is_active(self, turn: TurnView, request: Frame) -> bool:
        """Return whether a turn in progress is certainly the turn that the request means."""
        return True

    def _named_turn(self, request: Frame) -> TurnView | None:
        """Return the turn that a request names; None unless it had begun and may still run."""
        params = obj(request.params)
        ids = text(params.get("threadId")), text(params.get(self.turn_param))
        turn = self.conversation.turn_at(*ids)
        if turn is None or turn.reply is None or request.deliberate or params.get("input") == []:
            return None
        has_begun = self.trace.before(turn.reply, request) is True
        here = turn.thread_id == ids[0]
        ended = any(self.trace.before(end, request) is True for end in turn.completions)
        is_interrupted = any(came_before(other, request) for other in turn.interrupts)
        return turn if has_begun and here and not ended and not is_interrupted else None

    @on_mark(ModelCall)
    def on_model_call(self, mark: Mark[ModelCall]) -> Outcomes:
        """Note that a turn which calls the model was running."""
        running = [t for t in self.conversation.turns.values() if t.reply and not t.completions]
        if len(running) == 1 and mark.body.model is not None and mark.body.is_scripted:
            for refused in self._refusals.get(running[0].key, []):
                refused.called_model = True
        return None

    @on("turn/started", "item/started")
    def on_progress(self, frame: Frame) -> Outcomes:
        """Note that a turn with new notifications was running."""
        turn = self.conversation.turn_of(frame)
        for refused in self._refusals.get(turn.key, []) if turn is not None else []:
            refused.progress = refused.progress or frame
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        """Judge the rejected requests of a turn that completed by itself."""
        turn = self.conversation.turn_of(frame)
        for refused in self._refusals.pop(turn.key, []) if turn is not None else []:
            if (
                turn is not None
                and turn.status == "completed"
                and (refused.called_model or refused.progress)
            ):
                news = (refused.progress,) if refused.progress else ()
                frames = (refused.request, refused.answer, *news, frame)
                level = None if refused.called_model and refused.was_announced else Level.SHOULD
                yield unexpected_member(
                    request_subject(refused.request),
                    frames,
                    root_member(refused.answer, "error"),
                    f"a result, since {turn.id} was the active turn and went on after it",
                    level=level,
                )


def _is_plain(request: Frame) -> bool:
    """Return whether the input of a request cannot be the reason for its rejection."""
    added = [obj(part) for part in arr(obj(request.params).get("input"))]
    length = sum(len(text(part.get("text"))) for part in added)
    return all(part.get("type") == "text" for part in added) and length <= _MAX_INPUT_CHARACTERS


@rule(
    "interrupt.granted",
    title="turn/interrupt of the active turn is accepted",
    level=Level.MUST,
)
class InterruptGranted(_Granting):
    """Judges that a turn/interrupt of a turn that certainly runs is not rejected.

    By the table of turns, every turn in progress can be interrupted. It certainly ran if its
    turn/start was answered before the request, it called the model after the rejection and then
    ended by itself; if only turn/started or item/started followed, which may have waited in the
    server, the finding is SHOULD. Left open: further interrupts of the same turn, turns that no
    turn/start of this client began.
    """

    turn_param = "turnId"

    @on_answer("turn/interrupt")
    def on_turn_interrupt_answer(self, frame: Frame) -> Outcomes:
        return self.add_answer(frame)


@rule(
    "steer.granted",
    title="turn/steer that names the active turn is accepted",
    level=Level.MUST,
    needs=("steering",),
)
class SteerGranted(_Granting):
    """Judges that a turn/steer of a turn that certainly runs is not rejected.

    By the table of turns, every turn in progress accepts input. It certainly ran if its turn/start
    was answered before the request, it called the model after the rejection and then ended by
    itself; if only turn/started or item/started followed, which may have waited in the server, or
    if no turn/started had come before the request, the finding is SHOULD. Left open: input that is
    empty, very long, or other than text, which may be the reason for the rejection; turns with an
    interrupt, turns that no turn/start of this client began.
    """

    turn_param = "expectedTurnId"

    def is_active(self, turn: TurnView, request: Frame) -> bool:
        return any(self.trace.before(start, request) is True for start in turn.starts)

    @on_answer("turn/steer")
    def on_turn_steer_answer(self, frame: Frame) -> Outcomes:
        return self.add_answer(frame)
