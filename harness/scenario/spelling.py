"""Words of the protocol in a scenario: methods, members, values, item types, placeholders.

Left alone are words that are wrong on purpose (`deliberate`), those that a server has beside the
protocol (`extensions`), and what stands for a later value (`$t.thread.id`).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.scenario.client_steps import (
    STATUSES,
    Answer,
    AnswerStep,
    ClientStep,
    NotifyStep,
    RequestStep,
    StartThreadStep,
    StartTurnStep,
    SteerStep,
    Wait,
    WaitStep,
)
from harness.scenario.faults import Pick, pick_of
from harness.scenario.lexicon import Kind, Lexicon, Side, Wrong
from harness.scenario.model import Outcome, Scenario, accepted, piece_of
from harness.scenario.paths import nested, with_lists
from harness.scenario.references import references, texts
from harness.scenario.surfaces import ITEMS
from harness.scenario.uses import words_used
from harness.scenario.yaml12 import Document, Loc, ScenarioError
from harness.trace.nearest import nearest, unknown
from harness.trace.surfaces import SESSION

_BRACES = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
# Only what is nearly a placeholder is one: other texts have braces of their own.
NEARLY = 0.75
# Fields of steps in which placeholders are replaced.
_FILLED = ("params", "input", "where", "message", "result", "path")
ELSEWHERE: dict[Kind, str] = {
    "request": "a request of the client",
    "notification": "a notification of the client",
    "request of the server": "a request of the server",
    "notification of the server": "a notification of the server",
}
# What each side asks, and what it tells.
_OF_SIDE: dict[str, tuple[Kind, Kind]] = {
    "client": ("request", "notification"),
    "server": ("request of the server", "notification of the server"),
}
_ADVICE = "; a value of one server is sent by a step with deliberate: true"
_ALREADY: dict[Kind, str] = {**ELSEWHERE, "item type": "an item type"}


class Spelling:
    """The words of one scenario; `check` raises `ScenarioError`."""

    def __init__(
        self, scenario: Scenario, document: Document, path: Path, lexicon: Lexicon
    ) -> None:
        self._scenario = scenario
        self._document = document
        self._path = path
        self._lexicon = lexicon
        on_exec = ITEMS if SESSION not in scenario.surfaces else ()
        self._own = frozenset([*scenario.extensions, *on_exec])

    def check(self) -> None:
        """Go over the whole file."""
        self._settings()
        for side in ("setup", "client"):
            for index, step in enumerate(getattr(self._scenario, side)):
                self._step((side, index), step)
        self._expected(("expect",), self._scenario.expect)
        for index, outcome in enumerate(self._scenario.expect.any_of):
            self._expected(("expect", "any_of", index), outcome)
        self._placeholders(self._scenario.config, ("config",))
        for name in self._scenario.workspace.files:
            self._placeholders(name, ("workspace", "files", name), key=True)
        self._faults()
        self._extensions()

    def _faults(self) -> None:
        for index, entry in enumerate(self._scenario.faults):
            loc = ("faults", index)
            if entry.fault is not None and entry.fault not in self._lexicon.faults():
                self._fail((*loc, "fault"), unknown("fault", entry.fault, self._lexicon.faults()))
            for key, value in entry.picks():
                self._pick((*loc, key), value)

    def _pick(self, loc: Loc, value: str | Pick) -> None:
        pick, short = pick_of(value), isinstance(value, str)
        if pick.item is not None:
            self._name("item type", pick.item, (*loc, "item"))
        asks, tells = _OF_SIDE[pick.side]
        asked = _OF_SIDE["client" if pick.side == "server" else "server"][0]
        if pick.answer_to is not None:
            self._name(asked, pick.answer_to, (*loc, "answer_to"))
        if pick.method is not None:
            kind = asks if pick.method in self._lexicon.names(asks) else tells
            self._name(kind, pick.method, loc if short else (*loc, "method"))

    def _settings(self) -> None:
        settings = self._scenario.settings
        given = {name: getattr(settings, name) for name in settings.model_fields_set}
        self._value("thread/start", given, ("settings",), step="request")

    def _step(self, loc: Loc, step: ClientStep) -> None:
        key = next(iter(type(step).model_fields))
        body: Any = getattr(step, key)
        loc = (*loc, key)
        match step:
            case StartThreadStep():
                self._value("thread/start", body.params, (*loc, "params"), step="request")
            case StartTurnStep():
                self._value("turn/start", {"input": body.input or []}, loc)
                self._value("turn/start", body.params, (*loc, "params"), step="request")
            case SteerStep():
                self._value("turn/steer", body.params, (*loc, "params"), step="request")
            case RequestStep() if not body.deliberate:
                self._name("request", body.method, (*loc, "method"))
                self._value(body.method, body.params, (*loc, "params"), whole=True)
                self._where([body.method], body.where, (*loc, "where"), side="result")
            case NotifyStep() if not body.deliberate:
                self._name("notification", body.method, (*loc, "method"))
            case AnswerStep():
                self._answer(loc, body)
            case WaitStep():
                self._wait(loc, body)
            case _:
                pass
        for field in _FILLED:
            self._placeholders(getattr(body, field, None), (*loc, field))

    def _answer(self, loc: Loc, body: Answer) -> None:
        self._name("request of the server", body.to, (*loc, "to"))
        self._where([body.to], body.where, (*loc, "where"))
        if body.deliberate:
            return
        if "decision" in body.model_fields_set:
            self._refuse(loc, self._wrongs(body.to, {"decision": body.decision}, side="result"))
        if "result" in body.model_fields_set:
            wrongs = self._wrongs(body.to, body.result, side="result", whole=True)
            self._refuse((*loc, "result"), wrongs)

    def _wait(self, loc: Loc, body: Wait) -> None:
        told = body.notification
        if told is not None:
            for index, name in enumerate([told] if isinstance(told, str) else told):
                at = (*loc, "notification", *([] if isinstance(told, str) else [index]))
                self._name("notification of the server", name, at)
            self._where([told] if isinstance(told, str) else told, body.where, (*loc, "where"))
        if body.request is not None:
            self._name("request of the server", body.request, (*loc, "request"))
            self._where([body.request], body.where, (*loc, "where"))
        method = (body.message or {}).get("method")
        if isinstance(method, str) and not list(references(method)):
            kind: Kind = "request of the server"
            if method not in self._lexicon.names(kind):
                kind = "notification of the server"
            self._name(kind, method, (*loc, "message", "method"))

    def _where(
        self, methods: list[str], where: dict[str, Any], loc: Loc, *, side: Side = "params"
    ) -> None:
        """Dotted paths and their values, in the params of a message of one of some methods."""
        # Any element is like the first one.
        first = {dotted: dotted.replace("*", "0") for dotted in where}
        for dotted, value in where.items():
            steps = tuple(first[dotted].split("."))
            # Beside the item's type, what it is may decide what else it has.
            others = {first[name]: one for name, one in where.items() if name != dotted}
            whole = nested({**others, first[dotted]: value})
            found = [self._within(method, whole, steps, side) for method in methods]
            if found and all(found):
                self._refuse_where(loc, dotted, found[0])

    def _within(self, method: str, whole: dict[str, Any], steps: Loc, side: Side) -> list[Wrong]:
        """Return the mistakes on the way to a member, or in it; a number is an index or a name."""
        indexed, paths = with_lists(whole)
        found: list[Wrong] = []
        for value in (whole, indexed):
            wrongs = self._wrongs(method, value, side=side, sent=False)
            if value is indexed:
                wrongs = [replace(one, path=_old(one.path, paths)) for one in wrongs]
            found = [
                wrong
                for wrong in wrongs
                if wrong.path == steps[: len(wrong.path)] or wrong.path[: len(steps)] == steps
            ]
            if not found:
                break
        return found

    def _refuse_where(self, loc: Loc, dotted: str, wrongs: list[Wrong]) -> None:
        wrong = wrongs[0]
        key = wrong.key and len(wrong.path) <= len(dotted.split("."))
        inner = () if key else wrong.path[len(dotted.split(".")) :]
        self._fail((*loc, dotted, *inner), wrong.message, key=key)

    def _expected(self, loc: Loc, outcome: Outcome) -> None:
        for index, pattern in enumerate(outcome.items or ()):
            at = (*loc, "items", index)
            if isinstance(pattern, str):
                self._name("item type", pattern, at)
                continue
            for kind, members in pattern.items():
                self._name("item type", kind, (*at, kind), key=True)
                for shown in _alternatives(members):
                    # A piece of a text is a text, as far as the protocol's words go.
                    whole = {key: piece_of(value) or value for key, value in shown.items()}
                    wrongs = self._lexicon.wrongs_of_item({"type": kind, **whole})
                    self._refuse((*at, kind), self._ours(wrongs, shown, sent=False))

    def _extensions(self) -> None:
        """An extension that the protocol has, or that nothing uses, is a mistake too."""
        used = words_used(self._scenario)
        for index, name in enumerate(self._scenario.extensions):
            for kind, words in _ALREADY.items():
                if name in self._lexicon.names(kind):
                    self._fail(
                        ("extensions", index), f"{name!r} is {words} already: leave it out here"
                    )
            if name in STATUSES:
                message = f"{name!r} is a status of a turn already: leave it out here"
                self._fail(("extensions", index), message)
            if name not in used:
                self._fail(("extensions", index), f"nothing in this file uses {name!r}")

    def _name(self, kind: Kind, name: str, loc: Loc, *, key: bool = False) -> None:
        valid = self._lexicon.names(kind)
        if name in valid or name in self._own:
            return
        for other, words in ELSEWHERE.items():
            if other != kind and name in self._lexicon.names(other):
                self._fail(loc, f"{name!r} is {words}; expected a {kind}", key=key)
        near = unknown(kind, name, {*valid, *self._own})
        purpose = "" if "did you mean" in near else "; a name of one server goes into extensions"
        self._fail(loc, near + purpose, key=key)

    def _value(
        self, method: str, value: Any, loc: Loc, *, whole: bool = False, step: str = ""
    ) -> None:
        """`step` is what sends a value of one server, where the step at hand does not."""
        wrongs = self._wrongs(method, value, whole=whole)
        if step:
            by = f"; one server's own is sent by {step}: {{method: {method}, …, deliberate: true}}"
            wrongs = [
                one
                if one.key or not isinstance(one.found, str)
                else replace(one, message=one.message.removesuffix(_ADVICE) + by)
                for one in wrongs
            ]
        self._refuse(loc, wrongs)

    def _wrongs(
        self,
        method: str,
        value: Any,
        *,
        side: Side = "params",
        whole: bool = False,
        sent: bool = True,
    ) -> list[Wrong]:
        wrongs = self._lexicon.wrongs(method, side, value, whole=whole)
        return self._ours(wrongs, value, sent=sent)

    def _ours(self, wrongs: Iterable[Wrong], value: Any, *, sent: bool) -> list[Wrong]:
        """Without what is not known yet, and what the file says its server has besides."""
        unsettled = [place for place, _ in references(value)]
        found: list[Wrong] = []
        for wrong in wrongs:
            own = isinstance(wrong.found, str) and wrong.found in self._own
            if own and (wrong.key or not sent):
                continue
            if not any(wrong.path[: len(place)] == place for place in unsettled):
                message = wrong.message + (_ADVICE if own else "")
                found.append(replace(wrong, message=message))
        return found

    def _refuse(self, loc: Loc, wrongs: list[Wrong]) -> None:
        if wrongs:
            first = min(
                wrongs, key=lambda one: self._document.place((*loc, *one.path), key=one.key)
            )
            self._fail((*loc, *first.path), first.message, key=first.key)

    def _placeholders(self, value: Any, loc: Loc, *, key: bool = False) -> None:
        for place, near, found in misspelt(value, self._lexicon.placeholders):
            message = f"unknown placeholder {found!r}; did you mean {near!r}?"
            self._fail((*loc, *place), message, key=key)

    def _fail(self, loc: Loc, message: str, *, key: bool = False) -> None:
        raise ScenarioError(self._path, self._document.place(loc, key=key), message)


def _alternatives(members: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The members of an item with each value that they may have, without those that may lack."""
    values = {name: accepted(value) for name, value in members.items()}
    for number in range(max(map(len, values.values()), default=1)):
        shown = {name: given[min(number, len(given) - 1)] for name, given in values.items()}
        yield {
            name: one for name, one in shown.items() if one != "absent" or len(values[name]) == 1
        }


def misspelt(value: Any, placeholders: Iterable[str]) -> Iterator[tuple[Loc, str, str]]:
    """Give texts that are nearly a placeholder: place, the one that is meant, the text."""
    valid = list(placeholders)
    for place, text in texts(value):
        for found in _BRACES.finditer(text):
            near = nearest(found[1], valid, cutoff=NEARLY) or _reordered(found[1], valid)
            if near and found[1] not in valid:
                yield place, f"{{{near}}}", found[0]


def _reordered(name: str, valid: Iterable[str]) -> str:
    """`{cdw}`: in so short a word two letters that changed places are most of it."""
    return next((one for one in valid if sorted(one) == sorted(name)), "")


def _old(path: Loc, paths: dict[Loc, Loc]) -> Loc:
    """A path in a value with lists as the file has it; within a value of the file it goes on."""
    known = next(length for length in range(len(path), -1, -1) if path[:length] in paths)
    return (*paths[path[:known]], *path[known:])
