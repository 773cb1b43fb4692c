"""Rules on what becomes of the model's answers: shown to the client, or a failed turn."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json
from collections.abc import Iterator

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on, on_sent, rule
from harness.judge.rules.items.deltas import paired
from harness.judge.rules.model.news import News, broke_off
from harness.judge.rules.shared.state_tracking import FAILED
from harness.judge.rules.shared.turn_calls import TurnCalls, came_to_its_end
from harness.judge.rules.shared.view_queries import item_in, turn_in
from harness.judge.rules.shared.violations import absent, differs, member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.answers import unmet
from harness.protocol.values import obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import CallEnd, ModelEnd
from harness.trace.order import by_arrival
from harness.trace.views import ItemView, TurnView

# The phases of a message that is the answer itself, and no remark on the way to it.
_FINAL_PHASES = ("", "final_answer")
# Which member of an item shows what the agent said.
_SHOWING = {"agentMessage": "text", "plan": "text", "exitedReviewMode": "review"}
# Texts of this length or more may have been cut in the mark.
_WHOLE_BELOW = 4000


def _refused(call: ModelEnd) -> bool:
    """Return whether a call came to nothing: refused by a status, ended by an error, or cut."""
    if call.outcome is CallEnd.STATUS:
        return call.status >= 400
    return broke_off(call)


def _squeezed(words: str) -> str:
    """Without white space, which a server may well set as it likes."""
    return "".join(paired(words).split())


def _done_by_agent(turn: TurnView) -> list[ItemView]:
    return [item for item in turn.items.values() if item.type != "userMessage"]


@rule(
    "turn.fails-with-its-model",
    title="A turn whose model failed for good ends failed",
    level=Level.MUST,
)
class FailsWithItsModel(News):
    """Judges that a turn does not end completed when each call of its model came to nothing.

    Each was refused by a status from 400 on, ended by an error, or was cut. Where the turn shows
    anything but the user's input it is SHOULD, since the answer may be from somewhere else; so it
    is where calls before the last asked for tools and none of them answered. Left open: turns that
    were told to go to another model, that were interrupted, calls whose end is not known, several
    threads or turns at once.
    """

    def begin(self) -> None:
        super().begin()
        self._rerouted: set[str] = set()

    @on("model/rerouted")
    def on_model_rerouted(self, frame: Frame) -> Outcomes:
        self._rerouted.add(self.conversation.key_of(frame))
        return None

    def judge(self, asked: TurnCalls, end: Frame) -> Iterator[Outcome]:
        ends = {end.call: end for end in asked.ends}
        calls = [ends.get(call.call) for call in asked.calls]
        known = [call for call in calls if call is not None]
        turn = self.conversation.turns.get(asked.turn_id)
        if turn is None or len(known) < len(calls) or not _refused(known[-1]):
            return
        answered = [call for call in known if not _refused(call)]
        if asked.turn_id in self._rerouted or any(
            call.texts or not call.tools for call in answered
        ):
            return
        frames = (asked.request, end)
        if turn_in(end).get("status") == FAILED:
            yield Witness(asked.subject, frames)
        elif came_to_its_end(end):
            shown = _done_by_agent(turn)
            last = known[-1].told
            why = f"since {len(known) - len(answered)} of {len(known)} call(s) of its model failed"
            yield wrong(
                asked.subject,
                frames,
                member(end, "turn", "status"),
                f'"failed", {why}, the last one: {last}',
                level=Level.SHOULD if shown or answered else None,
            )


@rule("model.answer-shown", title="What the model answers is shown", level=Level.MUST)
class AnswerShown(News):
    """Judges that a completed turn shows the text with which its model answered.

    A client receives the agent's work as items and notifications: a turn whose model answered in
    words and that shows nothing but the user's input is MUST. That the text shown is the model's is
    derived, so SHOULD: none of the answers is in any of the agent's texts, white space aside. An
    answer is a text of a call that asked for no tool. INFO: one of several answers is not shown; a
    message has words that no answer had. Left open: remarks before the answer, turns with an output
    schema, a steered input, an interrupt that came too late or a compaction, each of which may cost
    an answer; answers that halted or had
    bytes that no model sends; calls that the server gave up; several threads or turns at once.
    """

    def begin(self) -> None:
        super().begin()
        self._steered: set[str] = set()
        self._compacted = False

    @on_sent("turn/steer")
    def on_turn_steer_sent(self, frame: Frame) -> Outcomes:
        self._steered.add(text(obj(frame.params).get("expectedTurnId")))
        return None

    @on("item/started", "item/completed")
    def on_item(self, frame: Frame) -> Outcomes:
        # From a compaction on, a call may have been for the summary, which nobody is shown.
        self._compacted = self._compacted or item_in(frame).get("type") == "contextCompaction"
        return None

    def judge(self, asked: TurnCalls, end: Frame) -> Iterator[Outcome]:
        turn = self.conversation.turns.get(asked.turn_id)
        answers = [words for call in asked.ends for words in _answers(call)]
        if turn is None or not answers or not came_to_its_end(end) or self._compacted:
            return
        if "outputSchema" in asked.params or asked.turn_id in self._steered or turn.interrupts:
            return
        shown = [said for item in _done_by_agent(turn) for said in _said_by(item)]
        whole = _squeezed("".join(words for _, _, words in shown))
        missing = [words for words in answers if _squeezed(words) not in whole]
        frames = (asked.request, *(frame for frame, _, _ in shown[:1]), end)
        if len(missing) < len(answers):
            yield Witness(asked.subject, frames)
            if missing:
                expected = f"the answer {literal(missing[0])} in an item, as the model gave it"
                actual = f"{len(missing)} of {len(answers)} answers of the model are in no item"
                status = member(end, "turn", "status")
                yield absent(asked.subject, frames, expected, actual, status, level=Level.INFO)
            yield from self._more(asked, frames, shown)
        elif not shown:
            items = ", ".join(item.type for item in _done_by_agent(turn))
            expected = f"an item with the answer {literal(missing[-1])}, as the model gave it"
            actual = f"nothing but {items}" if items else "nothing but the user's input"
            level = Level.SHOULD if items else None
            status = member(end, "turn", "status")
            yield absent(asked.subject, frames, expected, actual, status, level=level)
        else:
            frame, key, words = shown[-1]
            yield differs(
                asked.subject,
                (asked.request, frame, end),
                member(frame, "item", key),
                missing[-1],
                found=words,
                why="which is what the model answered",
                level=Level.SHOULD,
            )

    def _more(
        self, asked: TurnCalls, frames: tuple[Frame, ...], shown: list[tuple[Frame, str, str]]
    ) -> Iterator[Outcome]:
        """A message with words that are not the model's."""
        texts = [said.text for call in asked.ends for said in call.texts]
        if len(asked.ends) < len(asked.calls) or any(len(one) >= _WHOLE_BELOW for one in texts):
            return
        if not all(call.completed for call in asked.ends):
            return
        heard = _squeezed("".join(texts))
        for frame, key, words in shown:
            if item_in(frame).get("type") == "agentMessage" and _squeezed(words) not in heard:
                where, expected = member(frame, "item", key), "no more than the model said"
                yield wrong(asked.subject, frames, where, expected, level=Level.INFO)
                return


def _answers(call: ModelEnd) -> list[str]:
    """The texts of a call that ended well and left nothing to do."""
    if not call.completed or call.tools:
        return []
    return [one.text for one in call.texts if one.phase in _FINAL_PHASES and one.text.strip()]


def _said_by(item: ItemView) -> Iterator[tuple[Frame, str, str]]:
    """The texts of an item as it was in the end, with the message and the member that hold them."""
    key = _SHOWING.get(item.type)
    if key is not None and (item.completed or item.started):
        frame = (item.completed or item.started)[-1]
        yield frame, key, text(item_in(frame).get(key))


@rule(
    "turn.schema-kept", title="The last message has the form that was asked for", level=Level.INFO
)
class SchemaKept(Monitor):
    """Records whether the last message of a completed turn fits the outputSchema of its turn/start.

    The text says that the schema constrains the final message, not by whom: the model may not keep
    to it, and what a server does then is not said. Left open: schemas that are none, or that refer
    to others; turns without an agentMessage, or whose turn/start is not in the trace.
    """

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or turn.request is None or not came_to_its_end(frame):
            return
        schema = obj(turn.request.params).get("outputSchema")
        said = [
            item.completed[-1]
            for item in turn.items.values()
            if item.type == "agentMessage" and item.completed
        ]
        if not isinstance(schema, dict) or not said or len(turn.completed) > 1:
            return
        last = by_arrival(said)[-1]
        where, asked = member(last, "item", "text"), member(turn.request, "outputSchema")
        try:
            value = json.loads(text(where.value))
        except (ValueError, RecursionError):
            why: str | None = "it is no JSON"
        else:
            why = unmet(obj(schema), value)
        frames = (turn.request, last, frame)
        if why is None:
            yield Witness(turn.subject, frames)
        elif why:
            expected = f"a value that meets the schema of the turn ({why})"
            yield wrong(turn.subject, frames, where, expected, also=(asked,))
