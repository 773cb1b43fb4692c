"""Rules on notifications about the model, by the marks of the scripted model.

The specification gives these notifications no place, so they are judged at the end of a quiescent
trace.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from harness.judge.base import Outcome, Outcomes, Violation, Witness, on, on_sent, rule
from harness.judge.rules.shared.state_tracking import INTERRUPTED
from harness.judge.rules.shared.turn_calls import Calls, TurnCalls, is_completed
from harness.judge.rules.shared.view_queries import turn_in
from harness.judge.rules.shared.violations import absent, member
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import difference, literal
from harness.trace.frame import Frame
from harness.trace.marks import CallEnd, ModelEnd
from harness.trace.order import came_before

# A plan in comparable form: the steps with their statuses.
Plan = list[tuple[str, str]]


class EndOfTraceRule(Calls):
    """Base of rules that judge turns with known calls at the end of the trace."""

    def begin(self) -> None:
        """Start without turns."""
        super().begin()
        self._turns: list[tuple[TurnCalls, Frame]] = []

    def on_turn_end(self, turn_calls: TurnCalls, end: Frame) -> Iterable[Outcome]:
        """Keep the turn until the end of the trace."""
        self._turns.append((turn_calls, end))
        return ()

    def finish(self) -> Outcomes:
        """Judge each turn."""
        for turn_calls, end in self._turns:
            yield from self.judge(turn_calls, end)

    @abstractmethod
    def judge(self, turn_calls: TurnCalls, end: Frame) -> Iterator[Outcome]:
        """Judge a turn, with all messages about it."""


def _same_model(name: str, models: set[str]) -> bool:
    """Return whether a name is that of one of the models, or a longer one, as with a date.

    A provider may precede either name; case is ignored.
    """
    plain = _plain(name)
    return any(
        plain == _plain(model) or (model and plain.startswith(f"{_plain(model)}-"))
        for model in models
    )


def _plain(model: str) -> str:
    return model.rpartition("/")[2].casefold()


@rule("turn.usage-told", title="Token usage that changed in a turn is reported", level=Level.SHOULD)
class UsageTold(EndOfTraceRule):
    """Judges that a completed turn whose model reported tokens brings thread/tokenUsage/updated.

    There must be one for each such turn, at any place after its turn/start was sent; its turn is
    unknown, since the payload is not shown. That the tokens which a model reports are this usage is
    a reading of the specification: SHOULD. Left open: turns that did not complete, models that
    report none, several threads or turns at once.
    """

    def begin(self) -> None:
        super().begin()
        self._updates: list[Frame] = []

    @on("thread/tokenUsage/updated")
    def on_thread_token_usage_updated(self, frame: Frame) -> Outcomes:
        self._updates.append(frame)
        return None

    def judge(self, turn_calls: TurnCalls, end: Frame) -> Iterator[Outcome]:
        if not is_completed(end) or not any(call.usage for call in turn_calls.ends):
            return
        later_updates = [frame for frame in self._updates if came_before(turn_calls.request, frame)]
        frames = (turn_calls.request, end)
        if later_updates:
            self._updates.remove(later_updates[0])
            yield Witness(turn_calls.subject, (*frames, later_updates[0]))
        else:
            used = sum(call.usage for call in turn_calls.ends)
            expected = f"thread/tokenUsage/updated, since the model counted {used} tokens"
            actual = (
                f"none came between turn/start and the end of {turn_calls.subject}, or after it"
            )
            yield absent(turn_calls.subject, frames, expected, actual)


@rule(
    "turn.plan-told",
    title="A plan that the model shares or changes is reported",
    level=Level.MUST,
    needs=("plan-update",),
)
class PlanTold(EndOfTraceRule):
    """Judges that each plan that the model gave in a completed turn is in a turn/plan/updated.

    They must come in the order in which they were given; a plan equal to the one before changes
    nothing. Of several plans in one answer the last is the final one, so those before it are
    SHOULD; so is their order, since a server may carry out the calls of an answer at once. Compared
    by steps and statuses, without the white space around them. Left open: the explanation, further
    notifications, plans of incomplete answers, plans that a server may refuse (a step without
    words, several in progress), turns that were steered or did not complete, several threads or
    turns at once.
    """

    def begin(self) -> None:
        super().begin()
        self._updates: dict[str, list[Frame]] = {}
        self._steered: set[str] = set()

    @on_sent("turn/steer")
    def on_turn_steer_sent(self, frame: Frame) -> Outcomes:
        self._steered.add(text(obj(frame.params).get("expectedTurnId")))
        return None

    @on("turn/plan/updated")
    def on_turn_plan_updated(self, frame: Frame) -> Outcomes:
        self._updates.setdefault(self.conversation.key_of(frame), []).append(frame)
        return None

    def judge(self, turn_calls: TurnCalls, end: Frame) -> Iterator[Outcome]:
        answers = list(_plans_of(turn_calls.ends))
        if not answers or not is_completed(end) or turn_calls.turn_id in self._steered:
            return
        updates, matched = self._updates.get(turn_calls.turn_id, []), list[int]()
        plan_before: Plan | None = None
        for plans in answers:
            first = max(matched, default=-1) + 1
            for plan, is_last in plans:
                if plan == plan_before:
                    continue
                plan_before, last = plan, max(matched, default=-1)
                unmatched = [n for n in range(first, len(updates)) if n not in matched]
                matching = [
                    n for n in unmatched if _parse_plan(obj(updates[n].params).get("plan")) == plan
                ]
                index = min(matching, key=lambda n: (n < last, n), default=None)
                if index is None or index < last:
                    frames = (turn_calls.request, *[updates[n] for n in matched[-1:]], end)
                    violation = self._missing_plan(turn_calls, plan, frames, index)
                    is_missing = index is None and is_last
                    yield violation if is_missing else replace(violation, level=Level.SHOULD)
                    if is_missing:
                        return
                if index is not None:
                    matched.append(index)
        if matched:
            yield Witness(turn_calls.subject, (*[updates[n] for n in sorted(matched)], end))

    def _missing_plan(
        self, turn_calls: TurnCalls, plan: Plan, frames: tuple[Frame, ...], early_index: int | None
    ) -> Violation:
        """Return the violation of a missing plan, against the last one that was sent.

        `early_index` is the update that had it before the plan of an earlier call.
        """
        steps = [{"step": step, "status": status} for step, status in plan]
        expected = (
            f"turn/plan/updated of {turn_calls.subject} with {literal(steps)}, as the model gave"
        )
        updates = self._updates.get(turn_calls.turn_id, ())
        if not updates:
            return Violation(turn_calls.subject, frames, expected, "none came")
        field = member(updates[-1 if early_index is None else early_index], "plan")
        last = [{"step": step, "status": status} for step, status in _parse_plan(field.value)]
        if last == steps:
            actual = f"it came before another of the {len(updates)} that came, not after it"
            return Violation(turn_calls.subject, frames, expected, actual, places=(field.place,))
        plan_difference = difference(steps, last)
        place = field.part(*plan_difference.path).place
        actual_plan = plan_difference.describe(field.name)[1]
        actual = f"none of {len(updates)} has that; the last has {actual_plan}"
        return Violation(turn_calls.subject, frames, expected, actual, places=(place,))


def _parse_plan(value: Any) -> Plan:
    return [
        (text(obj(entry).get("step")).strip(), text(obj(entry).get("status")))
        for entry in arr(value)
    ]


def _plans_of(ends: list[ModelEnd]) -> Iterator[list[tuple[Plan, bool]]]:
    """Yield the plans of each answer that a server certainly accepted, with the last one marked."""
    for call in ends:
        plans = [[(step.step.strip(), step.status) for step in plan] for plan in call.plans]
        if call.is_complete:
            last = len(plans) - 1
            yield [(plan, index == last) for index, plan in enumerate(plans) if _is_certain(plan)]


def _is_certain(plan: Plan) -> bool:
    running = sum(status == "inProgress" for _, status in plan)
    return running <= 1 and all(step for step, _ in plan)


@rule(
    "turn.reroute-told",
    title="An answer by another model is reported",
    level=Level.MUST,
    needs=("model-reroute",),
)
class RerouteTold(EndOfTraceRule):
    """Judges that model/rerouted names the model that answered, if it was not the one requested.

    SHOULD in a turn after one with the same reroute: a server may report only the first. Left open:
    the model that it names as the former, the reason, another form of the requested name (`m`,
    `m-2026-01`, `provider/m`), incomplete answers, turns that did not complete, several threads or
    turns at once.
    """

    def begin(self) -> None:
        super().begin()
        self._reroutes: dict[str, list[Frame]] = {}

    @on("model/rerouted")
    def on_model_rerouted(self, frame: Frame) -> Outcomes:
        self._reroutes.setdefault(self.conversation.key_of(frame), []).append(frame)
        return None

    def judge(self, turn_calls: TurnCalls, end: Frame) -> Iterator[Outcome]:
        models = {call.model or "" for call in turn_calls.calls}
        answering = [call.answers for call in turn_calls.ends if call.is_complete and call.answers]
        reroutes = self._reroutes.get(turn_calls.turn_id, [])
        if not is_completed(end):
            return
        for other in dict.fromkeys(name for name in answering if not _same_model(name, models)):
            matching = [
                reroute for reroute in reroutes if obj(reroute.params).get("toModel") == other
            ]
            if matching:
                yield Witness(turn_calls.subject, (turn_calls.request, matching[0]))
            else:
                frames = (turn_calls.request, *reroutes[:1], end)
                names = [member(reroute, "toModel") for reroute in reroutes]
                actual = "; ".join(map(str, names)) or "none came"
                expected = f"model/rerouted with params.toModel: {literal(other)}, which answered"
                places = tuple(field.place for field in names)
                level = Level.SHOULD if self._was_announced_before(other, turn_calls) else None
                yield Violation(turn_calls.subject, frames, expected, actual, level, places=places)

    def _was_announced_before(self, model: str, turn_calls: TurnCalls) -> bool:
        return any(
            obj(reroute.params).get("toModel") == model and came_before(reroute, turn_calls.request)
            for reroutes in self._reroutes.values()
            for reroute in reroutes
        )


@rule(
    "error.told-mid-turn",
    title="A failure that a turn survives is reported",
    level=Level.SHOULD,
    needs=("model-retry",),
)
class ToldMidTurn(EndOfTraceRule):
    """Judges that a completed turn reported an error if an answer of its model broke off.

    An error within a turn is reported by the error notification, and the specification lists a
    disconnected stream as one; that one which is retried successfully is an error of the turn is
    derived: SHOULD. Left open: turns that failed (turn/completed has their error), calls that were
    refused by a status before any answer (a client library may have retried), turns that were
    steered (the server may have abandoned that answer itself to include the input), several threads
    or turns at once.
    """

    def begin(self) -> None:
        super().begin()
        self._steered: set[str] = set()

    @on_sent("turn/steer")
    def on_turn_steer_sent(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        turn_ids = text(params.get("threadId")), text(params.get("expectedTurnId"))
        turn = self.conversation.turn_at(*turn_ids)
        self._steered.add(turn_ids[1] if turn is None else turn.key)
        return None

    def judge(self, turn_calls: TurnCalls, end: Frame) -> Iterator[Outcome]:
        broken = [call.outcome_text for call in turn_calls.ends if broke_off(call)]
        turn = self.conversation.turns.get(turn_calls.turn_id)
        if not broken or turn is None or not is_completed(end):
            return
        frames = (turn_calls.request, *turn.errors[:1], end)
        if turn.errors:
            yield Witness(turn_calls.subject, frames)
        elif turn_calls.turn_id not in self._steered:
            expected = (
                f"error about {turn_calls.subject}, since an answer of its model: {broken[0]}"
            )
            yield absent(turn_calls.subject, frames, expected, "none came")


def broke_off(call: ModelEnd) -> bool:
    """Return whether an answer was cut, or ended by an error event."""
    return call.outcome in (CallEnd.DISCONNECTED, CallEnd.FAILED)


def _has_failed(call: ModelEnd) -> bool:
    return broke_off(call) or call.outcome is CallEnd.STATUS


@rule("error.retry-follows", title="A retry that is announced is made", level=Level.SHOULD)
class RetryFollows(EndOfTraceRule):
    """Judges that a turn which announced a retry called its model again.

    A violation is an `error` with willRetry true in a turn that ended, not interrupted, after one
    model call, which failed. SHOULD, though willRetry is specified: calls and messages have no
    order here, so the error may have been about something before that call. Left open: the result
    of the retry, several threads or turns at once.
    """

    def judge(self, turn_calls: TurnCalls, end: Frame) -> Iterator[Outcome]:
        turn = self.conversation.turns.get(turn_calls.turn_id)
        retry_errors = (
            [error for error in turn.errors if obj(error.params).get("willRetry") is True]
            if turn
            else []
        )
        if not retry_errors or dig(turn_in(end), "status") == INTERRUPTED:
            return
        frames = (turn_calls.request, retry_errors[0], end)
        if len(turn_calls.calls) > 1:
            yield Witness(turn_calls.subject, frames)
        elif turn_calls.ends and all(map(_has_failed, turn_calls.ends)):
            retry = member(retry_errors[0], "willRetry")
            actual = f"one call, of which came: {turn_calls.ends[0].outcome_text}"
            yield absent(turn_calls.subject, frames, "another call of the model", actual, retry)
