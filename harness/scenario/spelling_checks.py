"""Checks of protocol names and values in a scenario: methods, members, item types, placeholders.

Not checked are values that are wrong on purpose (`deliberate`), a server's own names
(`extensions`), and references to later values (`$t.thread.id`).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
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
from harness.scenario.faults import Pick, as_pick
from harness.scenario.lexicon import Kind, Lexicon, Mistake, Side
from harness.scenario.model import Outcome, Scenario, accepted_values, contained_text
from harness.scenario.name_checks import REFERENCE_FIELDS
from harness.scenario.paths import nest_paths, numbers_as_lists
from harness.scenario.reference_checks import ReferenceChecker
from harness.scenario.references import references, texts
from harness.scenario.surfaces import EXEC_ONLY_ITEMS
from harness.scenario.words_used import words_used
from harness.scenario.yaml12 import Loc, Mistakes
from harness.trace.nearest import nearest, unknown_name
from harness.trace.surfaces import SESSION

_BRACES = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
# Only near misses of placeholders are mistakes: other texts may have braces.
MIN_SIMILARITY = 0.75
# Fields of steps in which placeholders are replaced.
_PLACEHOLDER_FIELDS = ("params", "input", "where", "message", "result", "path")
KIND_WORDS: dict[Kind, str] = {
    "request": "a request of the client",
    "notification": "a notification of the client",
    "request of the server": "a request of the server",
    "notification of the server": "a notification of the server",
}
# The requests and the notifications of each side.
_KINDS_OF_SIDE: dict[str, tuple[Kind, Kind]] = {
    "client": ("request", "notification"),
    "server": ("request of the server", "notification of the server"),
}
_ADVICE = "; a value of one server is sent by a step with deliberate: true"
_PROTOCOL_WORDS: dict[Kind, str] = {**KIND_WORDS, "item type": "an item type"}


class SpellingChecker:
    """Checker of the protocol names in one scenario; `check` adds to `mistakes`."""

    def __init__(self, scenario: Scenario, lexicon: Lexicon, mistakes: Mistakes) -> None:
        self._scenario = scenario
        self._mistakes = mistakes
        self._lexicon = lexicon
        exec_items = EXEC_ONLY_ITEMS if SESSION not in scenario.surfaces else ()
        self._own = frozenset([*scenario.extensions, *exec_items])
        self._references = ReferenceChecker(lexicon, self._mistakes_at)

    def check(self) -> None:
        """Check the whole file."""
        self._check_settings()
        for side in ("setup", "client"):
            for index, step in enumerate(getattr(self._scenario, side)):
                self._check_step((side, index), step)
        self._check_outcome(("expect",), self._scenario.expect)
        for index, outcome in enumerate(self._scenario.expect.any_of):
            self._check_outcome(("expect", "any_of", index), outcome)
        self._check_placeholders(self._scenario.config, ("config",))
        for name in self._scenario.workspace.files:
            self._check_placeholders(name, ("workspace", "files", name), key=True)
        self._check_faults()
        self._check_answered_methods()
        self._check_extensions()

    def _check_faults(self) -> None:
        for index, entry in enumerate(self._scenario.faults):
            loc = ("faults", index)
            if entry.fault is not None and entry.fault not in self._lexicon.faults():
                self._mistakes.add(
                    (*loc, "fault"), unknown_name("fault", entry.fault, self._lexicon.faults())
                )
            for key, value in entry.picks():
                self._check_pick((*loc, key), value)

    def _check_answered_methods(self) -> None:
        """Check that no answer is given to what the server sends; other methods are free."""
        for method in self._scenario.answers:
            for kind in ("request of the server", "notification of the server"):
                if method in self._lexicon.names(kind):
                    message = (
                        f"{method} is sent by the server: answers are for the client's requests"
                    )
                    self._mistakes.add(("answers", method), message, key=True)

    def _check_pick(self, loc: Loc, value: str | Pick) -> None:
        pick, short = as_pick(value), isinstance(value, str)
        if pick.item is not None:
            self._check_name("item type", pick.item, (*loc, "item"))
        request_kind, notification_kind = _KINDS_OF_SIDE[pick.side]
        answered_kind = _KINDS_OF_SIDE["client" if pick.side == "server" else "server"][0]
        if pick.answer_to is not None:
            self._check_name(answered_kind, pick.answer_to, (*loc, "answer_to"))
        if pick.method is not None:
            kind = (
                request_kind
                if pick.method in self._lexicon.names(request_kind)
                else notification_kind
            )
            self._check_name(kind, pick.method, loc if short else (*loc, "method"))

    def _check_settings(self) -> None:
        settings = self._scenario.settings
        params = {name: getattr(settings, name) for name in settings.model_fields_set}
        self._check_value("thread/start", params, ("settings",), step="request")

    def _check_step(self, loc: Loc, step: ClientStep) -> None:
        key = next(iter(type(step).model_fields))
        body: Any = getattr(step, key)
        loc = (*loc, key)
        match step:
            case StartThreadStep():
                self._check_value("thread/start", body.params, (*loc, "params"), step="request")
            case StartTurnStep():
                self._check_value("turn/start", {"input": body.input or []}, loc)
                self._check_value("turn/start", body.params, (*loc, "params"), step="request")
            case SteerStep():
                self._check_value("turn/steer", body.params, (*loc, "params"), step="request")
            case RequestStep() if not body.deliberate:
                self._check_name("request", body.method, (*loc, "method"))
                if body.method in self._lexicon.names("request"):
                    self._check_value(body.method, body.params, (*loc, "params"), complete=True)
                    self._check_where([body.method], body.where, (*loc, "where"), side="result")
            case NotifyStep() if not body.deliberate:
                self._check_name("notification", body.method, (*loc, "method"))
            case AnswerStep():
                self._check_answer(loc, body)
            case WaitStep():
                self._check_wait(loc, body)
            case _:
                pass
        for field in _PLACEHOLDER_FIELDS:
            self._check_placeholders(getattr(body, field, None), (*loc, field))
        for field in REFERENCE_FIELDS:
            value = getattr(body, field, None)
            for place, message in self._references.mistakes_in(value, self._own):
                self._mistakes.add((*loc, field, *place), message)
        self._references.add(step, body)

    def _check_answer(self, loc: Loc, body: Answer) -> None:
        self._check_name("request of the server", body.to, (*loc, "to"))
        self._check_where([body.to], body.where, (*loc, "where"))
        if body.deliberate:
            return
        if "decision" in body.model_fields_set:
            self._add_all(
                loc, self._mistakes_in(body.to, {"decision": body.decision}, side="result")
            )
        if "result" in body.model_fields_set:
            mistakes = self._mistakes_in(body.to, body.result, side="result", complete=True)
            self._add_all((*loc, "result"), mistakes)

    def _check_wait(self, loc: Loc, body: Wait) -> None:
        notifications = body.notification
        if notifications is not None:
            for index, name in enumerate(
                [notifications] if isinstance(notifications, str) else notifications
            ):
                place = (*loc, "notification", *([] if isinstance(notifications, str) else [index]))
                self._check_name("notification of the server", name, place)
            self._check_where(
                [notifications] if isinstance(notifications, str) else notifications,
                body.where,
                (*loc, "where"),
            )
        if body.request is not None:
            self._check_name("request of the server", body.request, (*loc, "request"))
            self._check_where([body.request], body.where, (*loc, "where"))
        method = (body.message or {}).get("method")
        if isinstance(method, str) and not list(references(method)):
            kind: Kind = "request of the server"
            if method not in self._lexicon.names(kind):
                kind = "notification of the server"
            self._check_name(kind, method, (*loc, "message", "method"))
            self._check_params_of_message(method, body.message or {}, (*loc, "message"))

    def _check_params_of_message(self, method: str, conditions: dict[str, Any], loc: Loc) -> None:
        """Check the paths `params.…` of an awaited message like those of `where`."""
        paths = {
            dotted.removeprefix("params."): value
            for dotted, value in conditions.items()
            if dotted.startswith("params.")
        }
        self._check_where([method], paths, loc, prefix="params.")

    def _check_where(
        self,
        methods: list[str],
        conditions: dict[str, Any],
        loc: Loc,
        *,
        side: Side = "params",
        prefix: str = "",
    ) -> None:
        """Check dotted paths and their values against messages of these methods."""
        # `*` is checked as the first element.
        first = {dotted: dotted.replace("*", "0") for dotted in conditions}
        for dotted, value in conditions.items():
            steps = tuple(first[dotted].split("."))
            # The values of other members, such as the item's type, may decide which members exist.
            other_values = {
                first[name]: other_value
                for name, other_value in conditions.items()
                if name != dotted
            }
            value_with_others = nest_paths({**other_values, first[dotted]: value})
            mistakes = [
                self._mistakes_at(method, value_with_others, steps, side) for method in methods
            ]
            if mistakes and all(mistakes):
                self._add_where_mistake(loc, dotted, mistakes[0], prefix)

    def _mistakes_at(
        self, method: str, named_value: dict[str, Any], steps: Loc, side: Side
    ) -> list[Mistake]:
        """Return the mistakes on or below a path; none if its numbers fit as keys or as indexes."""
        indexed, paths = numbers_as_lists(named_value)
        mistakes: list[Mistake] = []
        for value in (named_value, indexed):
            candidates = self._mistakes_in(method, value, side=side, is_sent=False)
            if value is indexed:
                candidates = [
                    replace(mistake, path=_path_in_file(mistake.path, paths))
                    for mistake in candidates
                ]
            mistakes = [
                mistake
                for mistake in candidates
                if mistake.path == steps[: len(mistake.path)] or mistake.path[: len(steps)] == steps
            ]
            if not mistakes:
                break
        return mistakes

    def _add_where_mistake(
        self, loc: Loc, dotted: str, mistakes: list[Mistake], prefix: str
    ) -> None:
        mistake = mistakes[0]
        key = mistake.key and len(mistake.path) <= len(dotted.split("."))
        inner = () if key else mistake.path[len(dotted.split(".")) :]
        self._mistakes.add((*loc, prefix + dotted, *inner), mistake.message, key=key)

    def _check_outcome(self, loc: Loc, outcome: Outcome) -> None:
        for index, pattern in enumerate(outcome.items or ()):
            place = (*loc, "items", index)
            if isinstance(pattern, str):
                self._check_name("item type", pattern, place)
                continue
            for kind, members in pattern.items():
                self._check_name("item type", kind, (*place, kind), key=True)
                for members_shown in _with_each_value(members):
                    # `{contains: TEXT}` is checked like TEXT.
                    plain_members = {
                        key: contained_text(value) or value for key, value in members_shown.items()
                    }
                    mistakes = self._lexicon.mistakes_in_item({"type": kind, **plain_members})
                    self._add_all(
                        (*place, kind),
                        self._relevant_mistakes(mistakes, members_shown, is_sent=False),
                    )

    def _check_extensions(self) -> None:
        """Check that each extension is used, and is not a name of the protocol."""
        # After other mistakes an extension may only seem unused, since its use is misspelt.
        used = None if self._mistakes.error else words_used(self._scenario)
        for index, name in enumerate(self._scenario.extensions):
            known = [
                words
                for kind, words in _PROTOCOL_WORDS.items()
                if name in self._lexicon.names(kind)
            ]
            known += ["a status of a turn"] if name in STATUSES else []
            if known:
                message = f"{name!r} is {known[0]} already: leave it out here"
                self._mistakes.add(("extensions", index), message)
            elif used is not None and name not in used:
                self._mistakes.add(("extensions", index), f"nothing in this file uses {name!r}")

    def _check_name(self, kind: Kind, name: str, loc: Loc, *, key: bool = False) -> None:
        valid = self._lexicon.names(kind)
        if name in valid or name in self._own:
            return
        for other, words in KIND_WORDS.items():
            if other != kind and name in self._lexicon.names(other):
                self._mistakes.add(loc, f"{name!r} is {words}; expected a {kind}", key=key)
                return
        near = unknown_name(kind, name, {*valid, *self._own})
        purpose = "" if "did you mean" in near else "; a name of one server goes into extensions"
        self._mistakes.add(loc, near + purpose, key=key)

    def _check_value(
        self, method: str, value: Any, loc: Loc, *, complete: bool = False, step: str = ""
    ) -> None:
        """Check a value; `step` is the step to recommend for a server's own value, "" for none."""
        mistakes = self._mistakes_in(method, value, complete=complete)
        if step:
            advice = (
                f"; one server's own is sent by {step}: {{method: {method}, …, deliberate: true}}"
            )
            mistakes = [
                mistake
                if mistake.key or not isinstance(mistake.value, str)
                else replace(mistake, message=mistake.message.removesuffix(_ADVICE) + advice)
                for mistake in mistakes
            ]
        self._add_all(loc, mistakes)

    def _mistakes_in(
        self,
        method: str,
        value: Any,
        *,
        side: Side = "params",
        complete: bool = False,
        is_sent: bool = True,
    ) -> list[Mistake]:
        mistakes = self._lexicon.mistakes_in(method, side, value, complete=complete)
        return self._relevant_mistakes(mistakes, value, is_sent=is_sent)

    def _relevant_mistakes(
        self, mistakes: Iterable[Mistake], value: Any, *, is_sent: bool
    ) -> list[Mistake]:
        """Return the mistakes that matter, with advice on those about sent extensions.

        Mistakes about references, and about extensions that are not sent as values, are dropped.
        """
        reference_places = [place for place, _ in references(value)]
        remaining: list[Mistake] = []
        for mistake in mistakes:
            own = isinstance(mistake.value, str) and mistake.value in self._own
            if own and (mistake.key or not is_sent):
                continue
            if not any(mistake.path[: len(place)] == place for place in reference_places):
                message = mistake.message + (_ADVICE if own else "")
                remaining.append(replace(mistake, message=message))
        return remaining

    def _add_all(self, loc: Loc, mistakes: list[Mistake]) -> None:
        for mistake in mistakes:
            self._mistakes.add((*loc, *mistake.path), mistake.message, key=mistake.key)

    def _check_placeholders(self, value: Any, loc: Loc, *, key: bool = False) -> None:
        for place, near, text in misspelt_placeholders(value, self._lexicon.placeholders):
            message = f"unknown placeholder {text!r}; did you mean {near!r}?"
            self._mistakes.add((*loc, *place), message, key=key)


def _with_each_value(members: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield an item's members with each accepted value in turn, `absent` ones left out."""
    values = {name: accepted_values(value) for name, value in members.items()}
    for number in range(max(map(len, values.values()), default=1)):
        members_shown = {
            name: choices[min(number, len(choices) - 1)] for name, choices in values.items()
        }
        yield {
            name: value
            for name, value in members_shown.items()
            if value != "absent" or len(values[name]) == 1
        }


def misspelt_placeholders(
    value: Any, placeholders: Iterable[str]
) -> Iterator[tuple[Loc, str, str]]:
    """Yield each near miss of a placeholder: its place, the likely placeholder, the text."""
    valid = list(placeholders)
    for place, text in texts(value):
        for match in _BRACES.finditer(text):
            near = nearest(match[1], valid, cutoff=MIN_SIMILARITY) or _anagram_of(match[1], valid)
            if near and match[1] not in valid:
                yield place, f"{{{near}}}", match[0]


def _anagram_of(name: str, valid: Iterable[str]) -> str:
    """Return the placeholder with the same letters, `cwd` for `cdw`, else ""."""
    return next((placeholder for placeholder in valid if sorted(placeholder) == sorted(name)), "")


def _path_in_file(path: Loc, paths: dict[Loc, Loc]) -> Loc:
    """Return the path in the file for a path in the value with lists."""
    known_length = next(length for length in range(len(path), -1, -1) if path[:length] in paths)
    return (*paths[path[:known_length]], *path[known_length:])
