"""Rule on content that the model rejected, by the marks of the scripted model."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Outcome, Outcomes, Witness, on, on_mark, on_sent, rule
from harness.judge.rules.shared.turn_calls import Undisturbed
from harness.judge.rules.shared.violations import absent, member
from harness.judge.verdict import Level
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall, ModelEnd
from harness.trace.trace import Mark


@rule(
    "model.rejected-left-out",
    title="An image that the model rejected is not sent again",
    level=Level.INFO,
)
class RejectedLeftOut(Undisturbed):
    """Records whether calls of later turns hold an image that the model rejected in an earlier one.

    Rejected are the images of a call that was answered by status 400, 413, 415 or 422, except those
    that a completely answered call has held. A model that rejects an image rejects it every time,
    so a thread that sends it again is lost; the specification says nothing of it: INFO. Left open:
    calls within the turn that was rejected, turns without a call, images that the server has
    changed, several threads.
    """

    def begin(self) -> None:
        super().begin()
        self._threads: set[str] = set()
        self._images_of: dict[int, frozenset[str]] = {}
        self._accepted: set[str] = set()
        self._rejected: dict[str, Frame] = {}
        self._images: set[str] | None = None
        self._ends: list[ModelEnd] = []
        self._start: Frame | None = None

    @on_sent("turn/start")
    def on_turn_start_sent(self, frame: Frame) -> Outcomes:
        self._threads.add(text(obj(frame.params).get("threadId")))
        self._start, self._images, self._ends = frame, None, []
        return None

    @on_mark(ModelCall)
    def on_model_call(self, mark: Mark[ModelCall]) -> Outcomes:
        if mark.body.is_scripted and mark.body.model is not None:
            images = self._images_of[mark.body.call] = frozenset(mark.body.images)
            self._images = (self._images or set()) | images
        return None

    @on_mark(ModelEnd)
    def on_model_end(self, mark: Mark[ModelEnd]) -> Outcomes:
        self._ends.append(mark.body)
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        start, images = self._start, self._images
        self._start = self._images = None
        if start is None or images is None or self.uncertain or len(self._threads) > 1:
            return
        turn = self.conversation.turn_of(frame)
        subject = "" if turn is None else turn.subject
        yield from self._judge_images(subject, (start, frame), images)
        for end in self._ends:
            if end.is_complete:
                self._accepted |= self._images_of.get(end.call, frozenset())
        for end in self._ends:
            if end.rejects_content:
                for image in self._images_of.get(end.call, frozenset()) - self._accepted:
                    self._rejected.setdefault(image, start)

    def _judge_images(
        self, subject: str, frames: tuple[Frame, Frame], images: set[str]
    ) -> Iterator[Outcome]:
        if not self._rejected:
            return
        sent_again = sorted(images & self._rejected.keys())
        if not sent_again:
            yield Witness(subject, (next(iter(self._rejected.values())), *frames))
            return
        source = self._rejected[sent_again[0]]
        expected = "model calls without the image that was rejected before"
        actual = f"a call with {len(sent_again)} rejected image(s)"
        field = member(source, "input")
        yield absent(subject, (source, *frames), expected, actual, field)
