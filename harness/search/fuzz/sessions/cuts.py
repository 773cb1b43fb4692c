"""Edits that make a generated document smaller, or plainer.

A step goes with all that speak of what it began, so that the loader takes what is left.
"""

import copy
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, cast

from harness.protocol.values import arr, obj, text
from harness.scenario.loader import load_text
from harness.scenario.written import as_text
from harness.scenario.yaml12 import ScenarioError
from harness.search.fuzz import smaller_params
from harness.search.fuzz.sessions.turns import Json
from harness.search.fuzz.smaller_params import Mark

# What tells a turn from others in its text, as `plan` writes it.
_NONCE = re.compile(r"\bq\d\d\b")


def steps_of(document: Json) -> int:
    """Return the number of steps of the client's side."""
    return len(document["client"])


def _method(step: Json) -> str:
    return text(obj(only(step)[1]).get("method"))


def kinds(document: Json) -> list[list[int]]:
    """The places of the requests of each method, of several that belong together, and of all.

    What shows that something is wrong mostly is the last step, and is not among all.
    """
    steps = document["client"]
    methods = [_method(step) for step in steps]
    groups: list[Collection[str]] = [{method} for method in dict.fromkeys(methods) if method]
    groups += [group for group in _TOGETHER if len(group.intersection(methods)) > 1]
    places = [
        [index for index, method in enumerate(methods) if method in group] for group in groups
    ]
    alone = [index for index, step in enumerate(steps[:-1]) if "as" not in obj(only(step)[1])]
    return [*places, [index for index in alone if methods[index]]]


# What undoes one of them is another one.
_TOGETHER = (
    frozenset({"thread/archive", "thread/unarchive"}),
    frozenset({"thread/archive", "thread/unarchive", "thread/resume"}),
    frozenset({"thread/unsubscribe", "thread/resume"}),
)


def without_kind(document: Json, at: int) -> Json:
    """Without the requests of one of the groups (`kinds`)."""
    return without_steps(document, kinds(document)[at])


def since(document: Json, at: int) -> Json:
    """Without what was done before a step, but for threads, forks and connections."""
    built = ("start_thread", "connect", "disconnect")
    early = [(number, only(step)) for number, step in enumerate(document["client"][:at])]
    gone = [
        number
        for number, (kind, body) in early
        if kind not in built and not (kind == "request" and "as" in obj(body))
    ]
    return without_steps(document, gone)


def with_one_client(document: Json) -> Json | None:
    """With one client that does what all of them did."""
    steps = [step for step in document["client"] if only(step)[0] not in ("connect", "disconnect")]
    if len(steps) == len(document["client"]):
        return None
    candidate = copy.deepcopy({**document, "client": steps})
    for step in candidate["client"]:
        obj(only(step)[1]).pop("on", None)
    return tidied(candidate)


def without_fork(document: Json, at: int) -> Json | None:
    """Without a fork: what was done to it is done to the thread that it was made of."""
    kind, body = only(document["client"][at])
    origin = text(obj(obj(body).get("params")).get("threadId"))[1:].split(".")[0]
    if kind != "request" or _method(document["client"][at]) != "thread/fork" or "as" not in body:
        return None
    forked = body["as"]
    steps = [step for number, step in enumerate(document["client"]) if number != at]
    candidate: Json = {**document, "client": [_about(step, forked, origin) for step in steps]}
    scripts = dict(obj(document.get("model")))
    merged_script = [*arr(scripts.get(origin)), *arr(scripts.pop(forked, None))]
    candidate["model"] = {**scripts, origin: merged_script} if merged_script else scripts
    return tidied(copy.deepcopy(candidate))


def _about(value: Any, made: str, origin: str) -> Any:
    """A step that speaks of the origin of a fork instead of the fork."""
    if isinstance(value, dict):
        return {
            name: origin
            if name in ("thread", "idle") and inner == made
            else _about(inner, made, origin)
            for name, inner in cast(Json, value).items()
        }
    if isinstance(value, list):
        return [_about(inner, made, origin) for inner in cast("list[Any]", value)]
    return f"${origin}.thread.id" if value == f"${made}.thread.id" else value


def without_whole(whole: str, document: Json, at: int) -> Json | None:
    """Without a thread, a connection, a fork or a turn, each with all that is about it."""
    kind, body = only(document["client"][at])
    if kind != whole or not (kind == "connect" or "as" in obj(body)):
        return None
    return without_steps(document, range(at, at + 1))


def with_plain_turn(document: Json, at: int) -> Json | None:
    """With a turn in which the model says one thing, and nobody answers or waits for more."""
    kind, body = only(document["client"][at])
    nonces: list[str] = _NONCE.findall(text(obj(body).get("text")))
    if kind != "start_turn" or not nonces:
        return None
    candidate = copy.deepcopy(document)
    turn_id = f"${body['as']}.turn.id"
    candidate["client"] = [
        step
        for step in candidate["client"]
        if only(step)[0] not in ("answer", "wait")
        or obj(obj(only(step)[1]).get("where")).get("turnId") != turn_id
    ]
    for alias, steps in obj(candidate.get("model")).items():
        script = [obj(step) for step in arr(steps)]
        turn_steps = [step for step in script if set(nonces).intersection(_wanted(step))]
        if turn_steps:
            turn_steps[-1].pop("fail", None)
            turn_steps[-1]["reply"] = [{"message": f"{min(nonces)} is done."}]
        candidate["model"][alias] = [
            step for step in script if not any(step is x for x in turn_steps[:-1])
        ]
    return tidied(candidate)


def one_after_another(document: Json) -> Iterator[Json]:
    """The documents in which requests that overlap wait for their answers: as sent, and reversed.

    Of two requests under way at once a server may carry out either first.
    """
    steps: list[Json] = document["client"]
    overlapping = [
        index for index, step in enumerate(steps) if obj(only(step)[1]).get("wait") is False
    ]
    if not overlapping:
        return
    for places in (overlapping, overlapping[::-1]):
        order = dict(zip(overlapping, places, strict=True))
        changed = [steps[order.get(index, index)] for index in range(len(steps))]
        yield tidied(
            {
                **document,
                "client": [waiting_step for step in changed for waiting_step in _awaited(step)],
            }
        )


def _awaited(step: Json) -> list[Json]:
    """A request that waits for its answer; nothing for a step that waited for that alone."""
    kind, body_value = only(step)
    body = obj(body_value)
    if kind == "wait" and "answer" in body:
        return []
    kept_members = {name: value for name, value in body.items() if name not in ("wait", "as")}
    return [{kind: kept_members}] if body.get("wait") is False else [step]


def others(document: Json) -> list[int]:
    """The places of the steps on which most others do not depend, nor the order of any."""
    kinds = [only(step)[0] for step in document["client"]]
    return [
        index
        for index, kind in enumerate(kinds)
        if kind not in ("start_thread", "connect", *_ORDER)
    ]


# What is waited for and answered, once what it is about is begun, says when the rest is done.
_ORDER = ("wait", "answer")


def ordering(document: Json) -> list[int]:
    """The places of the steps that wait for something, or answer it."""
    return [index for index, step in enumerate(document["client"]) if only(step)[0] in _ORDER]


def pieces(size: int, document: Json) -> int:
    """Return the number of pieces of so many steps."""
    return -(-len(others(document)) // size)


def without_piece(size: int, document: Json, at: int) -> Json:
    """Without one of these pieces."""
    return without_steps(document, others(document)[at * size : (at + 1) * size])


def _model_step_places(document: Json) -> list[tuple[str, int]]:
    scripts = obj(document.get("model"))
    return [(alias, index) for alias, steps in scripts.items() for index in range(len(arr(steps)))]


def model_steps(document: Json) -> int:
    """Return the number of steps of the model's side."""
    return len(_model_step_places(document))


def without_model_step(document: Json, at: int) -> Json:
    """Without one of them."""
    candidate = copy.deepcopy(document)
    alias, place = _model_step_places(document)[at]
    del candidate["model"][alias][place]
    return tidied(candidate)


def without_element(document: Json, at: int) -> Json:
    """Without a part of a reply, a delta of a message, or a parameter of a step."""
    candidate = copy.deepcopy(document)
    place = list(elements(document))[at]
    holder: Any = candidate
    for key in place[:-1]:
        holder = holder[key]
    del holder[place[-1]]
    return tidied(candidate)


def with_smaller_params(mark: Mark, document: Json, at: int) -> Json | None:
    """With the params at one of their places made smaller (`smaller_params`)."""
    candidate = smaller_params.smaller(document, at, mark)
    return None if candidate is None else tidied(candidate)


def conditions(document: Json) -> list[tuple[str, int]]:
    """The places of the model steps that are for some calls only."""
    model = obj(document.get("model"))
    return [place for place in _model_step_places(document) if "when" in model[place[0]][place[1]]]


def unconditioned(document: Json, places: Sequence[tuple[str, int]]) -> Json | None:
    """With the model steps at these places for any call."""
    if not places:
        return None
    candidate = copy.deepcopy(document)
    for alias, index in places:
        candidate["model"][alias][index].pop("when", None)
    return candidate


def sound(document: Json) -> bool:
    """Return whether the loader takes a document."""
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
    kept_steps: list[Json] = []
    for index, step in enumerate(candidate["client"]):
        kind, body_value = only(step)
        body = obj(body_value)
        leave = (
            index in left_out and kind != "open"
        )  # An open gate holds nobody up; a shut one does.
        if leave or _uses(kind, body) & gone or text(body.get("on")) in closed:
            gone |= {text(body["as"])} if "as" in body else set()
            closed |= {text(body_value)} if kind == "connect" else set()
            continue
        if kind == "disconnect" and body_value in closed:
            continue
        if kind == "connect":
            closed.discard(text(body_value))
        kept_steps.append(step)
    candidate["client"] = kept_steps
    return tidied(candidate)


def only(step: Json) -> tuple[str, Any]:
    """The one key of a step, and what it holds."""
    return next(iter(step.items()))


def _uses(kind: str, body: Json) -> set[str]:
    """The aliases that a step speaks of."""
    names = ("thread", "turn", "idle", *(["answer"] if kind == "wait" else []))
    aliases = {text(body.get(name)) for name in names}
    members = [*obj(body.get("params")).values(), *obj(body.get("where")).values()]
    values = [text(value) for value in members]
    return aliases | {value[1:].split(".")[0] for value in values if value.startswith("$")}


def elements(document: Json) -> Iterator[tuple[str | int, ...]]:
    """The path of everything that a reply, or a step, can do without."""
    for alias, steps in obj(document.get("model")).items():
        for index, step in enumerate(arr(steps)):
            reply = arr(obj(step).get("reply"))
            for number, part in enumerate(reply):
                path = ("model", alias, index, "reply", number)
                if len(reply) > 1:
                    yield path
                deltas = arr(obj(obj(part).get("message")).get("deltas"))
                for place in range(len(deltas) if len(deltas) > 1 else 0):
                    yield (*path, "message", "deltas", place)
    for index, step in enumerate(document["client"]):
        kind, body = only(step)
        for name in ("on", "params") if kind == "start_thread" else ("on", "where"):
            if name in obj(body):
                yield ("client", index, kind, name)


def tidied(document: Json) -> Json:
    """Without gates at which nobody holds, scripts of no thread, files and pipes without use."""
    started = {text(obj(only(step)[1]).get("as")) for step in document["client"]}
    turns = {nonce for step in document["client"] for nonce in _NONCE.findall(repr(step))}
    model: Json = {}
    for alias, script in obj(document.get("model")).items():
        steps = [_spoken(step, turns) for step in script if _is_for(step, turns)]
        model |= {alias: steps} if steps and alias in started else {}
    model_text, workspace = repr(model), obj(document.get("workspace"))
    pipes = [pipe for pipe in arr(workspace.get("pipes")) if pipe in model_text]
    files = {
        name: content for name, content in obj(workspace.get("files")).items() if name in model_text
    }
    gates = {*_gates(model), *pipes}

    def useless(step: Json) -> bool:
        kind, body = only(step)
        gate = obj(body).get("gate") if kind == "wait" else body if kind == "open" else None
        return gate is not None and gate not in gates

    new_workspace: Json = {"files": files} if files else {}
    new_workspace |= {"pipes": pipes} if pipes else {}
    new_document: Json = {"title": document.get("title", "A session")}
    new_document |= {"workspace": new_workspace} if new_workspace else {}
    new_document |= {"model": model} if model else {}
    new_document["client"] = [step for step in document["client"] if not useless(step)]
    return new_document


def _is_for(step: Json, turns: set[str]) -> bool:
    """Return whether a model step is for a call of one of these turns, or for any."""
    texts = _wanted(step)
    return not texts or any(nonce in turns for nonce in texts)


def _wanted(step: Json) -> list[str]:
    """Return the texts that a call must contain for a model step to be for it."""
    return [text(nonce) for nonce in arr(obj(step.get("when")).get("input_contains"))]


def _spoken(step: Json, turns: set[str]) -> Json:
    """A model step that speaks of no other turns."""
    when = obj(step.get("when"))
    if not when:
        return step
    lacks = [nonce for nonce in arr(when.get("input_lacks")) if nonce in turns]
    conditions = {name: condition for name, condition in when.items() if name != "input_lacks"}
    return {**step, "when": conditions | ({"input_lacks": lacks} if lacks else {})}


def _gates(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in cast(Json, value).items():
            if key == "hold":
                yield inner
            yield from _gates(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _gates(inner)
