"""Rules on what the model was asked in a turn, by the marks of the harness's own model.

Here: input, model, output schema, effort and summary of turn/start against the calls of the turn.
Not here: what the model answered, and calls whose turn is not certain: model calls and messages
have no order but through cause and effect, so a call belongs to a turn only while that turn alone
runs on the only thread of the trace.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.rules.base import (
    Monitor,
    Outcome,
    Outcomes,
    Violation,
    Witness,
    on,
    on_answer,
    on_mark,
    on_sent,
    rule,
)
from harness.rules.subjects import failed, shown, turn_id_of, turn_in
from harness.rules.verdict import Level
from harness.trace.frame import Frame
from harness.trace.trace import Mark
from harness.trace.values import arr, obj, text

# What also calls the model, or may change what a thread remembers: nothing is judged from there on.
MUDDLING = (
    "thread/resume",
    "thread/fork",
    "thread/rollback",
    "thread/compact/start",
    "review/start",
)
# Enough of a text to know it by; a mark holds a little more.
_BEGINNING = 100


@dataclass(slots=True)
class Asked:
    """A turn/start, its params, and the model calls of its turn."""

    request: Frame
    params: dict[str, Any]
    turn_id: str = ""
    unclear: bool = False
    calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def subject(self) -> str:
        """How findings name it."""
        return f"turn {self.turn_id}"


class _Calls(Monitor):
    """Gathers the calls of each turn; a rule says in `ended` what they must be."""

    def begin(self) -> None:
        self._open: list[Asked] = []
        self._threads: set[str] = set()
        self._unclear = False
        self._muddled = False
        self.forget()

    def forget(self) -> None:
        """Nothing that an earlier turn asked for is certain any more."""

    def ended(self, asked: Asked, end: Frame) -> Iterator[Outcome]:
        """Judge a turn whose calls are all known, of which there is at least one."""
        raise NotImplementedError

    @on_sent(*MUDDLING)
    def muddling(self, frame: Frame) -> Outcomes:
        self._muddled = True
        return None

    @on("model/rerouted")
    def rerouted(self, frame: Frame) -> Outcomes:
        self._muddled = True
        return None

    @on_sent("turn/start")
    def sent(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        self._threads.add(text(params.get("threadId")))
        unclear = bool(self._open) or self._unclear or frame.deliberate
        for other in self._open:
            other.unclear = True
        self._open.append(Asked(frame, params, unclear=unclear))
        self._unclear = False
        return None

    @on_answer("turn/start")
    def answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        for asked in [asked for asked in self._open if asked.request is request]:
            asked.turn_id = text(turn_in(frame).get("id"))
            if failed(frame):
                self._open.remove(asked)
                self.forget()
        return None

    @on_mark("model-call")
    def called(self, mark: Mark) -> Outcomes:
        if len(self._open) == 1 and "model" in mark.data and mark.data.get("step", -1) >= 0:
            self._open[0].calls.append(mark.data)
        return None

    @on("turn/completed")
    def completed(self, frame: Frame) -> Outcomes:
        turn_id = turn_id_of(frame)
        asked = next((one for one in self._open if one.turn_id in ("", turn_id)), None)
        if asked is None:
            return
        self._open.remove(asked)
        asked.turn_id = turn_id
        # A call of a turn that was cut off may come late, while the next turn runs.
        self._unclear = turn_in(frame).get("status") != "completed"
        if asked.unclear or self._muddled or len(self._threads) > 1:
            self.forget()
        elif asked.calls:
            yield from self.ended(asked, frame)


@rule("model.input-arrives", title="The model is asked what the user said", level=Level.SHOULD)
class InputArrives(_Calls):
    """Judges that the first text of a turn's input is in one of the turn's model calls.

    Compared by its beginning, within any text of the user. The text never says what a call holds;
    that an input given to the agent reaches the model is derived: SHOULD. Left open: input without
    a text, turns without a call, several threads or turns at once.
    """

    def ended(self, asked: Asked, end: Frame) -> Iterator[Outcome]:
        parts = [obj(part) for part in arr(asked.params.get("input"))]
        said = next((text(part.get("text")) for part in parts if part.get("type") == "text"), "")
        wanted = said.strip()[:_BEGINNING]
        if not wanted:
            return
        heard = [text(words) for call in asked.calls for words in arr(call.get("user_texts"))]
        if any(wanted in words for words in heard):
            yield Witness(asked.subject, (asked.request, end))
        else:
            expected = f"a model call with the user's text {shown(wanted)}"
            actual = f"{len(asked.calls)} call(s), with {shown(heard[-3:])}"
            yield Violation(asked.subject, (asked.request, end), expected, actual)


@rule("model.named", title="The model of turn/start is called, unless rerouted", level=Level.MUST)
class ModelNamed(_Calls):
    """Judges that a turn calls the model that its turn/start, or the last one before, names.

    The override is for this turn and those after it. One call by that name is enough: a server may
    ask other models too. Left open: turns before any override (also that of thread/start), all
    after a reroute, a resume, a refused turn/start; several threads or turns at once.
    """

    def forget(self) -> None:
        self._named: tuple[str, Frame] | None = None

    def ended(self, asked: Asked, end: Frame) -> Iterator[Outcome]:
        name = text(asked.params.get("model"))
        if name:
            self._named = (name, asked.request)
        if self._named is None:
            return
        wanted, source = self._named
        frames = (source, end) if source is asked.request else (source, asked.request, end)
        called = sorted({text(call.get("model")) for call in asked.calls})
        if wanted in called:
            yield Witness(asked.subject, frames)
        else:
            expected = f"a call of the model {wanted}"
            yield Violation(asked.subject, frames, expected, f"calls of {', '.join(called)}")


@rule("model.schema-this-turn", title="An output schema is for its turn only", level=Level.MUST)
class SchemaThisTurn(_Calls):
    """Judges that the calls of a turn without outputSchema want none after a turn that had one.

    That the schema is in the calls of its own turn is SHOULD: the text says that it binds the last
    message, not how. Only where it was there does its absence later prove anything. Left open:
    schemas that no turn/start gave, several threads or turns at once.
    """

    def forget(self) -> None:
        self._given: Frame | None = None

    def ended(self, asked: Asked, end: Frame) -> Iterator[Outcome]:
        has = any(call.get("schema") is True for call in asked.calls)
        frames = (asked.request, end)
        if isinstance(asked.params.get("outputSchema"), dict):
            self._given = asked.request if has else None
            if not has:
                expected = "a model call that wants the schema of this turn"
                yield Violation(asked.subject, frames, expected, "none does", Level.SHOULD)
        elif self._given is not None:
            frames = (self._given, *frames)
            if has:
                expected = "no schema, since this turn has none"
                yield Violation(asked.subject, frames, expected, "a call that wants one")
            else:
                yield Witness(asked.subject, frames)


class _Passed(_Calls):
    """A word of turn/start that is passed on to the model as it is."""

    word = ""

    def ended(self, asked: Asked, end: Frame) -> Iterator[Outcome]:
        wanted = text(asked.params.get(self.word))
        if not wanted:
            return
        frames = (asked.request, end)
        passed = sorted({text(call.get(self.word)) for call in asked.calls} - {""})
        if wanted in passed:
            yield Witness(asked.subject, frames)
        else:
            actual = ", ".join(passed) or "none"
            yield Violation(asked.subject, frames, f"{self.word} {wanted} in a model call", actual)


@rule("model.effort-passed", title="The effort of turn/start reaches the model", level=Level.INFO)
class EffortPassed(_Passed):
    """Records whether the effort of a turn/start is in one of the turn's model calls.

    The text lists the values and does not say what becomes of them: INFO. Left open: later turns,
    turns without a call, several threads or turns at once.
    """

    word = "effort"


@rule("model.summary-passed", title="The summary of turn/start reaches the model", level=Level.INFO)
class SummaryPassed(_Passed):
    """Records whether the summary of a turn/start is in one of the turn's model calls.

    The text lists the values and does not say what becomes of them: INFO. Left open: later turns,
    turns without a call, several threads or turns at once.
    """

    word = "summary"
