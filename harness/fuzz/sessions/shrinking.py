"""A document that goes wrong, made smaller: fewer steps, a shorter model's side, fewer files.

Here: what is left out, and in which order; whether the rest still goes wrong is asked of a
function. Not here: playing. A step goes together with all that speak of what it started, so that
every document that is tried is one that the loader takes.
"""

import copy
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, cast

from harness.fuzz.sessions.turns import Json
from harness.scenario.loader import load_text
from harness.scenario.written import as_text
from harness.scenario.yaml12 import ScenarioError
from harness.trace.values import arr, obj, text

Fails = Callable[[Json], bool]
Stop = Callable[[], bool]
# What tells a turn from others in its text, as `plan` writes it.
_NONCE = re.compile(r"\bq\d\d\b")


def shrunk(document: Json, fails: Fails, stop: Stop = lambda: False, *, shows: int = 0) -> Json:
    """The smallest document found that `fails`; `stop` ends the search for a smaller one.

    `shows` is the number of the step at which it showed that something is wrong, 0 for unknown.
    """
    return _Shrinker(copy.deepcopy(document), fails, stop).shrink(shows)


class _Shrinker:
    def __init__(self, document: Json, fails: Fails, stop: Stop) -> None:
        self._best = document
        self._fails = fails
        self._stop = stop
        self._tried: set[str] = set()

    def shrink(self, shows: int) -> Json:
        """Pass after pass, until none helps."""
        self._try(_tidied(self._best))
        end = len(self._best["client"])
        if 0 < shows < end:
            self._try(without_steps(self._best, range(shows, end)))
        while not self._stop():
            before = repr(self._best)
            self._without_wholes()
            self._without_kinds()
            self._fewer_steps()
            self._fewer_model_steps()
            self._less_in_replies()
            self._no_conditions()
            if repr(self._best) == before:
                break
        return self._best

    def _try(self, candidate: Json) -> bool:
        key = repr(candidate)
        if key in self._tried or key == repr(self._best) or self._stop():
            return False
        self._tried.add(key)
        if not sound(candidate) or not self._fails(candidate):
            return False
        self._best = candidate
        return True

    def _without_wholes(self) -> None:
        """Leave out whole threads, then connections, then forks, each with all that is about it."""
        for whole in ("start_thread", "connect", "request"):
            at = len(self._best["client"])
            while at > 0 and not self._stop():
                at -= 1
                kind, body = only(self._best["client"][at]) if self._has(at) else ("", "")
                if kind == whole and (kind == "connect" or "as" in obj(body)):
                    self._try(without_steps(self._best, range(at, at + 1)))

    def _has(self, at: int) -> bool:
        return at < len(self._best["client"])

    def _without_kinds(self) -> None:
        """Leave out all requests of one method at once."""
        methods = [text(obj(only(one)[1]).get("method")) for one in self._best["client"]]
        for method in dict.fromkeys(one for one in methods if one):
            steps = self._best["client"]
            places = [
                at for at, one in enumerate(steps) if obj(only(one)[1]).get("method") == method
            ]
            self._try(without_steps(self._best, places))

    def _fewer_steps(self) -> None:
        """Leave out steps, half of them at once at first, and always the later ones before."""
        size = max(1, len(self._others()) // 2)
        while size and not self._stop():
            end = len(self._others())
            while end > 0 and not self._stop():
                places = self._others()
                begin = max(0, end - size)
                self._try(without_steps(self._best, places[begin:end]))
                end = min(begin, len(self._others()))
            size //= 2

    def _others(self) -> list[int]:
        """The places of the steps that begin nothing on which most others depend."""
        kinds = [only(step)[0] for step in self._best["client"]]
        return [at for at, kind in enumerate(kinds) if kind not in ("start_thread", "connect")]

    def _fewer_model_steps(self) -> None:
        for alias in list(self._best.get("model", {})):
            at = len(self._best["model"].get(alias, []))
            while at > 0 and not self._stop():
                at -= 1
                candidate = copy.deepcopy(self._best)
                steps = candidate["model"].get(alias, [])
                if at < len(steps):
                    del steps[at]
                    self._try(_tidied(candidate))

    def _less_in_replies(self) -> None:
        """Leave out parts of replies, deltas of messages, and parameters of steps."""
        for place in list(_elements(self._best)):
            if self._stop():
                return
            candidate = copy.deepcopy(self._best)
            holder: Any = candidate
            try:
                for key in place[:-1]:
                    holder = holder[key]
                del holder[place[-1]]
            except (KeyError, IndexError):
                continue
            self._try(_tidied(candidate))

    def _no_conditions(self) -> None:
        """Model steps that are for any call, all at once or one by one."""
        places = [
            (alias, at)
            for alias, steps in self._best.get("model", {}).items()
            for at, step in enumerate(steps)
            if "when" in step
        ]
        for some in [places, *([one] for one in places)]:
            candidate = copy.deepcopy(self._best)
            for alias, at in some:
                candidate["model"][alias][at].pop("when", None)
            if self._try(candidate) and some is places:
                return


def sound(document: Json) -> bool:
    """Whether the loader takes a document."""
    if not document["client"]:
        return False
    try:
        load_text(as_text(document, "tried"))
    except ScenarioError:
        return False
    return True


def without_steps(document: Json, left_out: Collection[int]) -> Json:
    """The document without these steps, nor any that speaks of what they began."""
    candidate = copy.deepcopy(document)
    gone: set[str] = set()
    closed: set[str] = set()
    kept: list[Json] = []
    for at, step in enumerate(candidate["client"]):
        kind, whole = only(step)
        body = obj(whole)
        leave = at in left_out and kind != "open"  # An open gate holds nobody up; a shut one does.
        if leave or _uses(kind, body) & gone or text(body.get("on")) in closed:
            gone |= {text(body["as"])} if "as" in body else set()
            closed |= {text(whole)} if kind == "connect" else set()
            continue
        if kind == "disconnect" and whole in closed:
            continue
        if kind == "connect":
            closed.discard(text(whole))
        kept.append(step)
    candidate["client"] = kept
    return _tidied(candidate)


def only(step: Json) -> tuple[str, Any]:
    """The one key of a step, and what it holds."""
    return next(iter(step.items()))


def _uses(kind: str, body: Json) -> set[str]:
    """The aliases that a step speaks of."""
    names = ("thread", "turn", "idle", *(["answer"] if kind == "wait" else []))
    found = {text(body.get(name)) for name in names}
    said = [*obj(body.get("params")).values(), *obj(body.get("where")).values()]
    values = [text(value) for value in said]
    return found | {value[1:].split(".")[0] for value in values if value.startswith("$")}


def _elements(document: Json) -> Iterator[tuple[str | int, ...]]:
    """The path of everything that a reply, or a step, can do without; later ones first."""
    for alias, steps in obj(document.get("model")).items():
        for at, step in reversed(list(enumerate(arr(steps)))):
            reply = arr(obj(step).get("reply"))
            for number, part in reversed(list(enumerate(reply))):
                where = ("model", alias, at, "reply", number)
                if len(reply) > 1:
                    yield where
                deltas = arr(obj(obj(part).get("message")).get("deltas"))
                for place in reversed(range(len(deltas) if len(deltas) > 1 else 0)):
                    yield (*where, "message", "deltas", place)
    for at, step in enumerate(document["client"]):
        kind, body = only(step)
        for name in ("on", "params") if kind == "start_thread" else ("on", "where"):
            if name in obj(body):
                yield ("client", at, kind, name)


def _tidied(document: Json) -> Json:
    """Without gates at which nobody holds, scripts of no thread, files and pipes without use."""
    started = {text(obj(only(step)[1]).get("as")) for step in document["client"]}
    turns = {one for step in document["client"] for one in _NONCE.findall(repr(step))}
    model: Json = {}
    for alias, script in obj(document.get("model")).items():
        steps = [_spoken(step, turns) for step in script if _is_for(step, turns)]
        model |= {alias: steps} if steps and alias in started else {}
    said, workspace = repr(model), obj(document.get("workspace"))
    pipes = [one for one in arr(workspace.get("pipes")) if one in said]
    files = {name: one for name, one in obj(workspace.get("files")).items() if name in said}
    gates = {*_gates(model), *pipes}

    def useless(step: Json) -> bool:
        kind, body = only(step)
        gate = obj(body).get("gate") if kind == "wait" else body if kind == "open" else None
        return gate is not None and gate not in gates

    kept: Json = {"files": files} if files else {}
    kept |= {"pipes": pipes} if pipes else {}
    found: Json = {"title": document.get("title", "A session")}
    found |= {"workspace": kept} if kept else {}
    found |= {"model": model} if model else {}
    found["client"] = [step for step in document["client"] if not useless(step)]
    return found


def _is_for(step: Json, turns: set[str]) -> bool:
    """Whether a model step is for a call of one of these turns, or for any."""
    wanted = arr(obj(step.get("when")).get("input_contains"))
    return not wanted or any(one in turns for one in wanted)


def _spoken(step: Json, turns: set[str]) -> Json:
    """A model step that speaks of no other turns."""
    when = obj(step.get("when"))
    if not when:
        return step
    lacks = [one for one in arr(when.get("input_lacks")) if one in turns]
    kept = {name: one for name, one in when.items() if name != "input_lacks"}
    return {**step, "when": kept | ({"input_lacks": lacks} if lacks else {})}


def _gates(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, one in cast(Json, value).items():
            if key == "hold":
                yield one
            yield from _gates(one)
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _gates(one)
