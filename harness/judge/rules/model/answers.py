"""Rules on the effect of the model's answers: shown to the client, or a failed turn."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json
from collections.abc import Iterator

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on, on_sent, rule
from harness.judge.rules.items.deltas import join_surrogates
from harness.judge.rules.model.notifications import EndOfTraceRule, broke_off
from harness.judge.rules.shared.state_tracking import FAILED
from harness.judge.rules.shared.turn_calls import TurnCalls, is_completed
from harness.judge.rules.shared.view_queries import item_in, turn_in
from harness.judge.rules.shared.violations import absent, different, member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.answers import schema_violation
from harness.protocol.values import obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import CallEnd, ModelEnd
from harness.trace.order import by_arrival
from harness.trace.views import ItemView, TurnView

# The phases of a message that is the answer itself, not a remark before it.
_FINAL_PHASES = ("", "final_answer")
# The member of an item that shows the agent's words.
_SHOWING = {"agentMessage": "text", "plan": "text", "exitedReviewMode": "review"}
# Texts of this length or more may have been cut in the mark.
MAX_WHOLE_CHARACTERS = 4000


def _came_to_nothing(call: ModelEnd) -> bool:
    """Return whether a call was refused by a status, ended by an error, or cut."""
    if call.outcome is CallEnd.STATUS:
        return call.status >= 400
    return broke_off(call)


def _without_spaces(words: str) -> str:
    """Return a text without white space, which a server may change."""
    return "".join(join_surrogates(words).split())


def _agent_items(turn: TurnView) -> list[ItemView]:
    return [item for item in turn.items.values() if item.type != "userMessage"]


@rule(
    "turn.fails-with-its-model",
    title="A turn whose model failed for good ends failed",
    level=Level.MUST,
)
class FailsWithItsModel(EndOfTraceRule):
    """Judges that a turn does not end completed if each call of its model failed.

    Each was refused by a status from 400 on, ended by an error, or was cut. SHOULD if the turn
    shows anything but the user's input, since the answer may come from somewhere else, and if
    earlier calls asked for tools and none of them answered. Left open: turns that were rerouted to
    another model or interrupted, calls whose end is unknown, several threads or turns at once.
    """

    def begin(self) -> None:
        super().begin()
        self._rerouted: set[str] = set()

    @on("model/rerouted")
    def on_model_rerouted(self, frame: Frame) -> Outcomes:
        self._rerouted.add(self.conversation.key_of(frame))
        return None

    def judge(self, turn_calls: TurnCalls, end: Frame) -> Iterator[Outcome]:
        ends = {end.call: end for end in turn_calls.ends}
        calls = [ends.get(call.call) for call in turn_calls.calls]
        known_ends = [call for call in calls if call is not None]
        turn = self.conversation.turns.get(turn_calls.turn_id)
        if turn is None or len(known_ends) < len(calls) or not _came_to_nothing(known_ends[-1]):
            return
        answered = [call for call in known_ends if not _came_to_nothing(call)]
        if turn_calls.turn_id in self._rerouted or any(
            call.texts or not call.tools for call in answered
        ):
            return
        frames = (turn_calls.request, end)
        if turn_in(end).get("status") == FAILED:
            yield Witness(turn_calls.subject, frames)
        elif is_completed(end):
            agent_items = _agent_items(turn)
            last = known_ends[-1].outcome_text
            failed = f"{len(known_ends) - len(answered)} of {len(known_ends)}"
            reason = f"since {failed} call(s) of its model failed"
            yield wrong(
                turn_calls.subject,
                frames,
                member(end, "turn", "status"),
                f'"failed", {reason}, the last one: {last}',
                level=Level.SHOULD if agent_items or answered else None,
            )


@rule("model.answer-shown", title="The model's answers are shown", level=Level.MUST)
class AnswerShown(EndOfTraceRule):
    """Judges that a completed turn shows the text with which its model answered.

    A client receives the agent's work as items and notifications: MUST for a turn whose model
    answered in words and that shows nothing but the user's input. That the text shown is the
    model's is derived, so SHOULD: none of the answers is in any of the agent's texts, white space
    aside. An answer is a text of a call that asked for no tool. INFO: one of several answers is not
    shown; a message has words that no answer had. Left open: remarks before the answer, turns with
    an output schema, a steered input, a late interrupt or a compaction, each of which may cost an
    answer; answers that halted or had bytes that no model sends; calls that the server gave up;
    several threads or turns at once.
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
        # After a compaction, a call may have been for the summary, which is not shown.
        self._compacted = self._compacted or item_in(frame).get("type") == "contextCompaction"
        return None

    def judge(self, turn_calls: TurnCalls, end: Frame) -> Iterator[Outcome]:
        turn = self.conversation.turns.get(turn_calls.turn_id)
        answers = [words for call in turn_calls.ends for words in _answer_texts(call)]
        if turn is None or not answers or not is_completed(end) or self._compacted:
            return
        if (
            "outputSchema" in turn_calls.params
            or turn_calls.turn_id in self._steered
            or turn.interrupts
        ):
            return
        shown_texts = [
            shown_text for item in _agent_items(turn) for shown_text in _texts_of_item(item)
        ]
        all_shown = _without_spaces("".join(words for _, _, words in shown_texts))
        missing = [words for words in answers if _without_spaces(words) not in all_shown]
        frames = (turn_calls.request, *(frame for frame, _, _ in shown_texts[:1]), end)
        if len(missing) < len(answers):
            yield Witness(turn_calls.subject, frames)
            if missing:
                expected = f"the answer {literal(missing[0])} in an item, as the model gave it"
                actual = f"{len(missing)} of {len(answers)} answers of the model are in no item"
                status = member(end, "turn", "status")
                yield absent(turn_calls.subject, frames, expected, actual, status, level=Level.INFO)
            yield from self._judge_surplus(turn_calls, frames, shown_texts)
        elif not shown_texts:
            items = ", ".join(item.type for item in _agent_items(turn))
            expected = f"an item with the answer {literal(missing[-1])}, as the model gave it"
            actual = f"nothing but {items}" if items else "nothing but the user's input"
            level = Level.SHOULD if items else None
            status = member(end, "turn", "status")
            yield absent(turn_calls.subject, frames, expected, actual, status, level=level)
        else:
            frame, key, words = shown_texts[-1]
            yield different(
                turn_calls.subject,
                (turn_calls.request, frame, end),
                member(frame, "item", key),
                missing[-1],
                value=words,
                reason="as the model answered",
                level=Level.SHOULD,
            )

    def _judge_surplus(
        self,
        turn_calls: TurnCalls,
        frames: tuple[Frame, ...],
        shown_texts: list[tuple[Frame, str, str]],
    ) -> Iterator[Outcome]:
        """Judge whether a message has words that are not the model's."""
        texts = [model_text.text for call in turn_calls.ends for model_text in call.texts]
        if len(turn_calls.ends) < len(turn_calls.calls) or any(
            len(model_text) >= MAX_WHOLE_CHARACTERS for model_text in texts
        ):
            return
        if not all(call.is_complete for call in turn_calls.ends):
            return
        all_texts = _without_spaces("".join(texts))
        for frame, key, words in shown_texts:
            if (
                item_in(frame).get("type") == "agentMessage"
                and _without_spaces(words) not in all_texts
            ):
                field, expected = member(frame, "item", key), "no more than the model said"
                yield wrong(turn_calls.subject, frames, field, expected, level=Level.INFO)
                return


def _answer_texts(call: ModelEnd) -> list[str]:
    """Return the texts of a call that succeeded and asked for no tool."""
    if not call.is_complete or call.tools:
        return []
    return [
        model_text.text
        for model_text in call.texts
        if model_text.phase in _FINAL_PHASES and model_text.text.strip()
    ]


def _texts_of_item(item: ItemView) -> Iterator[tuple[Frame, str, str]]:
    """Yield the final text of an item, with the message and the member that hold it."""
    key = _SHOWING.get(item.type)
    if key is not None and (item.completions or item.starts):
        frame = (item.completions or item.starts)[-1]
        yield frame, key, text(item_in(frame).get(key))


@rule("turn.schema-kept", title="The last message has the requested form", level=Level.INFO)
class SchemaKept(Monitor):
    """Records whether the last message of a completed turn fits the outputSchema of its turn/start.

    The specification says that the schema constrains the final message, not who ensures it: the
    model may ignore it, and the server's reaction is not specified. Left open: invalid schemas, and
    those that refer to others; turns without an agentMessage, or whose turn/start is not in the
    trace.
    """

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or turn.request is None or not is_completed(frame):
            return
        schema = obj(turn.request.params).get("outputSchema")
        messages = [
            item.completions[-1]
            for item in turn.items.values()
            if item.type == "agentMessage" and item.completions
        ]
        if not isinstance(schema, dict) or not messages or len(turn.completions) > 1:
            return
        last = by_arrival(messages)[-1]
        field, schema_member = member(last, "item", "text"), member(turn.request, "outputSchema")
        try:
            value = json.loads(text(field.value))
        except (ValueError, RecursionError):
            reason: str | None = "it is not JSON"
        else:
            reason = schema_violation(obj(schema), value)
        frames = (turn.request, last, frame)
        if reason is None:
            yield Witness(turn.subject, frames)
        elif reason:
            expected = f"a value that meets the schema of the turn ({reason})"
            yield wrong(turn.subject, frames, field, expected, also=(schema_member,))
