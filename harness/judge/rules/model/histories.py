"""Rules on the history in model calls: the thread's own turns, no dropped ones, no others'."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from harness.judge.base import Monitor, Outcome, Outcomes, Violation, Witness, on, rule
from harness.judge.rules.shared.thread_histories import (
    History,
    SaidTurn,
    ThreadHistories,
    is_in_call,
)
from harness.judge.rules.shared.violations import Member, absent, member
from harness.judge.verdict import Level
from harness.protocol.values import arr, obj
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall
from harness.trace.order import came_before


class _HistoryInCalls(Monitor, ABC):
    """Base of rules on the earlier turns that the model calls of a turn contain.

    Judged when the turn has ended. Left open: turns and earlier texts that are short or occur
    twice, calls whose marks do not name earlier texts, and threads about whose history a request
    leaves doubts.
    """

    def begin(self) -> None:
        self._histories = self.conversation.reader(ThreadHistories, self.trace)

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        if not any(isinstance(mark.body, ModelCall) for mark in self.trace.marks):
            return
        self._histories.read_until(frame)
        turn = self._histories.turn_of_end(frame)
        if turn is None or not turn.calls or self._histories.has_too_many_texts:
            return
        history = self._histories.history(turn.thread_id)
        if not history.is_lost and all(call.recalled is not None for call in turn.calls):
            yield from self.judge_turn(turn, history, frame)

    @abstractmethod
    def judge_turn(self, turn: SaidTurn, history: History, end: Frame) -> Iterator[Outcome]:
        """Judge the calls of a turn that has ended."""

    def subject(self, end: Frame) -> str:
        """Return the name of an ended turn in findings."""
        return f"turn {self.conversation.key_of(end)}"

    def unique_texts(self, texts: Iterable[str]) -> list[str]:
        """Return the texts by which their turn can be recognised."""
        return [words for words in texts if self._histories.is_unique(words)]

    def other_turns(self, history: History) -> list[SaidTurn]:
        """Return the turns that the thread never had."""
        return list(self._histories.other_turns(history))

    def report_unwanted(
        self, turn: SaidTurn, end: Frame, other: SaidTurn, words: str, why: str
    ) -> Outcome:
        """Return the violation of a call that contains a text of another turn."""
        frames = (other.request, turn.request, end)
        return absent(
            self.subject(end),
            frames,
            f"no model call with {literal(words)}, said in a turn {why}",
            f"a model call of the turn contains it, {len(turn.calls)} call(s) were made",
            _input_member(other),
        )


def _input_member(turn: SaidTurn) -> Member:
    parts = [obj(part) for part in arr(obj(turn.request.params).get("input"))]
    texts = [index for index, part in enumerate(parts) if part.get("type") == "text"]
    return member(turn.request, "input", *(texts[:1] and (texts[0], "text")))


def _text_in_calls(words: list[str], turn: SaidTurn) -> str:
    """Return the first of the texts that a call of a turn contains, "" if none does."""
    found = (text for text in words for call in turn.calls if is_in_call(text, call))
    return next(found, "")


@rule(
    "rollback.unheard",
    title="Turns that were dropped are not sent to the model",
    level=Level.MUST,
    needs=("history",),
)
class DroppedUnheard(_HistoryInCalls):
    """Judges that the model calls of a turn have no text of a turn that a rollback dropped before.

    The texts are the inputs of the dropped turn and the model's answers in it. A fork has not what
    its thread had dropped before. A turn that began after a compaction is not in its summary. Left
    open: turns that were cut off, rollbacks that may count other turns (a compaction, a turn that
    was cut off) and those before a server was killed.
    """

    def judge_turn(self, turn: SaidTurn, history: History, end: Frame) -> Iterator[Outcome]:
        dropped = [
            other
            for other, answer in history.dropped.items()
            if other.is_completed and came_before(answer, turn.request)
        ]
        texts = {other: self.unique_texts((*other.inputs, *other.answers)) for other in dropped}
        for other in dropped:
            if words := _text_in_calls(texts[other], turn):
                yield self.report_unwanted(turn, end, other, words, "that a rollback dropped")
                return
        judged = [other for other in dropped if texts[other] and other.calls]
        if judged:
            answer = history.dropped[judged[-1]]
            yield Witness(self.subject(end), (judged[-1].request, answer, turn.request, end))


@rule(
    "model.history-sent", title="The model is sent the thread's earlier turns", level=Level.SHOULD
)
class HistorySent(_HistoryInCalls):
    """Judges that a model call of a turn has the inputs and answers of the completed turns before.

    In the same process, after a resume or a restart, and in a fork, whose history is copied. An
    input counts only if a call of its own turn had it in this form. The specification does not
    specify the content of a call: SHOULD. Left open: turns that were cut off; turns before a
    compaction, or before a server was killed; turns that a rollback may have dropped.
    """

    def judge_turn(self, turn: SaidTurn, history: History, end: Frame) -> Iterator[Outcome]:
        if turn.compacts:
            return
        earlier = [
            other
            for other in history.kept
            if other.is_completed and other.calls and other.end is not None
            if came_before(other.end, turn.request)
        ]
        judged = False
        for other in earlier:
            for words in self.unique_texts((other.inputs[0], *other.answers)):
                apart_from = () if words in other.answers else other.answers
                if not any(is_in_call(words, call, apart_from) for call in turn.calls):
                    yield self._report_missing(turn, end, other, words)
                    return
                judged = True
        if judged:
            yield Witness(self.subject(end), (earlier[-1].request, turn.request, end))

    def _report_missing(self, turn: SaidTurn, end: Frame, other: SaidTurn, words: str) -> Violation:
        frames = tuple(f for f in (other.request, other.end, turn.request, end) if f is not None)
        said = "input" if words == other.inputs[0] else "answer of the model"
        return absent(
            self.subject(end),
            frames,
            f"a model call with {literal(words)}, the {said} of an earlier turn of the thread",
            f"none of {len(turn.calls)} call(s) contains it",
            _input_member(other),
        )


@rule(
    "model.other-threads-unheard",
    title="The model is not sent the turns of another thread",
    level=Level.SHOULD,
)
class OtherThreadsUnheard(_HistoryInCalls):
    """Judges that the model calls of a turn have no text of a turn that only another thread had.

    A fork has the turns of its thread up to the fork, no later ones, and its own turns are not
    those of its thread. The specification does not specify the content of a call: SHOULD. Left
    open: threads that were not started or forked in the trace.
    """

    def judge_turn(self, turn: SaidTurn, history: History, end: Frame) -> Iterator[Outcome]:
        if not history.was_begun_here:
            return
        others = [
            other
            for other in self.other_turns(history)
            if other.calls and came_before(other.request, turn.request)
        ]
        texts = {other: self.unique_texts((*other.inputs, *other.answers)) for other in others}
        for other in others:
            if words := _text_in_calls(texts[other], turn):
                yield self.report_unwanted(turn, end, other, words, f"of thread {other.thread_id}")
                return
        judged = [other for other in others if texts[other]]
        if judged:
            yield Witness(self.subject(end), (judged[-1].request, turn.request, end))
