"""Checks of the names in a scenario: defined before use, unique, and gates are held.

Fields are recognized by their names (`thread`, `turn`, `as`, `on`, and those that may hold
references), so a new step is checked without a change here.
"""

from collections.abc import Collection
from typing import Any

from pydantic import BaseModel

from harness.model.script import ModelStep
from harness.scenario.client_steps import (
    MAIN_CONNECTION,
    STATUSES,
    ClientStep,
    ConnectStep,
    DisconnectStep,
    KillStep,
    OpenStep,
    RequestStep,
    RestartStep,
    WaitStep,
    thread_alias_of,
    turn_alias_of,
)
from harness.scenario.explain import unknown_name
from harness.scenario.model import Scenario
from harness.scenario.positions import raced_turn
from harness.scenario.references import references
from harness.scenario.workspace import LinkedFile
from harness.scenario.yaml12 import Loc, Mistakes
from harness.trace.nearest import did_you_mean

# Fields of steps that may hold `$alias.path`.
REFERENCE_FIELDS = ("params", "input", "where", "message", "result", "path", "texts")

_REASON_NONE_EXISTS = {
    "thread": "no start_thread step stands before this one",
    "turn": "no start_turn step stands before this one",
    "gate": "the model's side holds at no gate, and the workspace has no pipes",
    "value": "no step before this one gives a name with as",
    "answer": "no request with as and wait: false stands before this one",
    "model step": "no step of the model's side has a name by as",
    "connection": "it ended, and no restart or connect step came since",
}


# Waits for what is not a message.
_NO_MESSAGE = ("idle", "gate", "model")


class NameChecker:
    """Names defined so far while walking the steps; mistakes are added to `mistakes`."""

    def __init__(self, scenario: Scenario, mistakes: Mistakes) -> None:
        self._scenario = scenario
        self._mistakes = mistakes
        self._threads: set[str] = set()
        self._turns: set[str] = set()
        self._values: set[str] = set()
        self._unanswered_requests: set[str] = set()
        # The kind that each alias was first used for, in words.
        self._kinds: dict[str, str] = {}
        self._connections: set[str] = {MAIN_CONNECTION}
        self._gates = {*scenario.held_gates(), *scenario.workspace.pipes}
        self._has_step = False

    def check(self) -> None:
        """Check the names of both sides and of the expectations."""
        for side in ("setup", "client"):
            for index, step in enumerate(getattr(self._scenario, side)):
                self._check_step((side, index), step)
                self._has_step = True
        clientless = self._scenario.is_clientless
        if isinstance(self._scenario.model, dict) and not clientless:
            for alias in self._scenario.model:
                self._check_known("thread", alias, self._threads, ("model", alias), key=True)
        self._check_comparisons()
        self._check_modes()
        self._check_pipes()
        self._check_races()
        outcomes: list[tuple[Loc, Any]] = [(("expect",), self._scenario.expect)]
        outcomes += [
            (("expect", "any_of", index), outcome)
            for index, outcome in enumerate(self._scenario.expect.any_of)
        ]
        if clientless:
            # No step defines turns here: the expected aliases stand for the turns in order.
            self._turns.update(self._scenario.expected_turns())
        for loc, outcome in outcomes:
            for alias, accepted in outcome.turns.items():
                self._check_known("turn", alias, self._turns, (*loc, "turns", alias), key=True)
                self._check_statuses(accepted, (*loc, "turns", alias))
            for alias in outcome.diffs:
                self._check_known("turn", alias, self._turns, (*loc, "diffs", alias), key=True)

    def _check_comparisons(self) -> None:
        """Check that names of model steps are unique and comparisons refer to other steps."""
        model = self._scenario.model
        sides = model.items() if isinstance(model, dict) else [("", model)]
        steps: list[tuple[Loc, ModelStep]] = [
            (("model", alias, index) if alias else ("model", index), step)
            for alias, script in sides
            for index, step in enumerate(script)
        ]
        names: set[str] = set()
        for loc, step in steps:
            if step.alias is not None:
                self._add_name(step.alias, names, (*loc, "as"))
        for loc, step in steps:
            for key, name in step.expect.comparisons.items() if step.expect else ():
                if name == step.alias:
                    self._mistakes.add(
                        (*loc, "expect", key), f"the step {name!r} is this one itself"
                    )
                self._check_known("model step", name, names, (*loc, "expect", key))

    def _check_modes(self) -> None:
        """Check that each mode belongs to a workspace file that is not a link."""
        files = self._scenario.workspace.files
        for name in self._scenario.workspace.modes:
            if name not in files or isinstance(files[name], LinkedFile):
                known = ", ".join(file for file in files if not isinstance(files[file], LinkedFile))
                loc = ("workspace", "modes", name)
                self._mistakes.add(
                    loc, f"the workspace has no file {name!r}; its files: {known or 'none'}"
                )

    def _check_pipes(self) -> None:
        """Check that each pipe has a name of its own and is used in one direction only."""
        pipes, scenario = self._scenario.workspace.pipes, self._scenario
        held, opened, awaited = map(
            set, (scenario.held_gates(), scenario.opened_gates(), scenario.awaited_gates())
        )
        for index, name in enumerate(pipes):
            loc = ("workspace", "pipes", index)
            if name in pipes[:index] or name in scenario.workspace.files:
                self._mistakes.add(loc, f"the workspace has a {name!r} already")
            if name in held:
                self._mistakes.add(
                    loc, f"{name!r} is a gate of the model's side; give the pipe another name"
                )
            if name in opened & awaited:
                self._mistakes.add(
                    loc,
                    f"the pipe {name!r} is waited for and opened, but goes one way: use one that "
                    "commands write to (wait) and one that they read from (open)",
                )

    def _check_races(self) -> None:
        """Check that a raced scenario has one turn and a known set of positions in it."""
        if not self._scenario.race_actions:
            return
        try:
            raced_turn(self._scenario)
        except ValueError as error:
            self._mistakes.add(("races",), str(error), key=True)

    def _check_step(self, loc: Loc, step: ClientStep) -> None:
        key = next(iter(type(step).model_fields))
        body: Any = getattr(step, key)
        if isinstance(body, BaseModel):
            self._check_used_names((*loc, key), body)
        match step:
            case OpenStep():
                self._check_known("gate", step.open, self._gates, (*loc, key))
            case WaitStep():
                self._check_wait((*loc, key), step)
            case RestartStep():
                self._connections = {MAIN_CONNECTION}
            case KillStep():
                self._check_known("connection", MAIN_CONNECTION, self._connections, loc, key=True)
                self._connections.clear()
            case DisconnectStep():
                self._check_known("connection", step.name, self._connections, (*loc, key))
                self._connections.discard(step.name)
            case ConnectStep():
                self._add_name(step.connect, self._connections, (*loc, key))
            case _:
                pass
        if isinstance(body, BaseModel):
            self._add_name_of_step((*loc, key), step, getattr(body, "alias", None))

    def _check_used_names(self, loc: Loc, body: BaseModel) -> None:
        """Check that the names and references that a step uses are defined."""
        fields: list[tuple[str, str, Collection[str]]] = [
            ("on", "connection", self._connections),
            ("thread", "thread", self._threads),
            ("turn", "turn", self._turns),
            ("idle", "thread", self._threads),
            ("gate", "gate", self._gates),
            ("answer", "answer", self._unanswered_requests),
        ]
        for field, kind, names in fields:
            name = getattr(body, field, None)
            if isinstance(name, str):
                self._check_known(kind, name, names, (*loc, field))
        for field in REFERENCE_FIELDS:
            for place, alias in references(getattr(body, field, None), (*loc, field)):
                self._check_known("value", alias, self._values, place)

    def _add_name_of_step(self, loc: Loc, step: Any, alias: str | None) -> None:
        """Define the alias that a step gives; it may not be taken."""
        if alias is None:
            return
        is_open = isinstance(step, RequestStep) and not step.request.wait
        kind, names = "a value", self._unanswered_requests if is_open else self._values
        if thread_alias_of(step) is not None:
            kind, names = "a thread", self._threads
        elif turn_alias_of(step) is not None:
            kind, names = "a turn", self._turns
        # An alias has one kind: one of a thread cannot name a turn.
        other_kind = self._kinds.get(alias, kind)
        if other_kind != kind:
            message = f"the alias {alias!r} is taken already, by {other_kind}; choose another name"
            self._mistakes.add((*loc, "as"), message)
        elif alias in names | self._values | self._unanswered_requests:
            self._mistakes.add((*loc, "as"), f"the alias {alias!r} is taken already")
        self._kinds.setdefault(alias, kind)
        names.add(alias)
        if is_open:
            self._unanswered_requests.add(alias)  # It has a value once a step waits for its answer.
        else:
            self._values.add(alias)

    def _check_wait(self, loc: Loc, step: WaitStep) -> None:
        wait = step.wait
        if len(wait.awaited_kinds) != 1:
            self._mistakes.add(
                loc,
                "expected exactly one of turn, idle, notification, request, answer, message, "
                "gate and model",
            )
            return
        if wait.status is not None and wait.turn is None:
            self._mistakes.add((*loc, "status"), "status goes with turn", key=True)
        if wait.status is not None:
            self._check_statuses(wait.status, (*loc, "status"))
        if wait.where and wait.notification is None and wait.request is None:
            self._mistakes.add((*loc, "where"), "where goes with notification or request", key=True)
        if wait.or_silence and (wait.notification is None or wait.alias is not None):
            message = "or_silence goes with notification, and without as"
            self._mistakes.add((*loc, "or_silence"), message, key=True)
        if wait.within is not None and (wait.or_silence or wait.awaited_kinds[0] in _NO_MESSAGE):
            message = "within goes with turn, notification, request, answer or message"
            self._mistakes.add((*loc, "within"), f"{message}, and without or_silence", key=True)
        elif wait.within is not None and not self._has_step:
            message = "within is a time from the step before; no step stands before this one"
            self._mistakes.add((*loc, "within"), message, key=True)
        if wait.alias is not None and wait.awaited_kinds[0] in _NO_MESSAGE:
            awaited = "an idle thread" if wait.idle is not None else f"a {wait.awaited_kinds[0]}"
            self._mistakes.add((*loc, "as"), f"{awaited} gives no value to name", key=True)
        if wait.answer is not None:
            self._values.add(wait.answer)

    def _check_statuses(self, statuses: str | list[str], loc: Loc) -> None:
        """Check that statuses are the protocol's, or named as extensions by the file."""
        valid = [*STATUSES, *self._scenario.extensions]
        for index, status in enumerate([statuses] if isinstance(statuses, str) else statuses):
            if status not in valid:
                place = loc if isinstance(statuses, str) else (*loc, index)
                expected = ", ".join(map(repr, STATUSES[:-1])) + f" or {STATUSES[-1]!r}"
                near = (
                    did_you_mean(status, valid) or "; a status of one server goes into extensions"
                )
                self._mistakes.add(place, f"found {status!r}; expected {expected}{near}")

    def _add_name(self, alias: str, names: set[str], loc: Loc) -> None:
        if alias in names:
            self._mistakes.add(loc, f"the alias {alias!r} is taken already")
        names.add(alias)

    def _check_known(
        self, kind: str, name: str, names: Collection[str], loc: Loc, *, key: bool = False
    ) -> None:
        if name in names:
            return
        message = f"unknown {kind} {name!r}; {_REASON_NONE_EXISTS[kind]}" if not names else ""
        if kind == "connection" and name == MAIN_CONNECTION:
            message = f"no connection is left; {_REASON_NONE_EXISTS[kind]}"
        self._mistakes.add(loc, message or unknown_name(kind, name, names), key=key)
