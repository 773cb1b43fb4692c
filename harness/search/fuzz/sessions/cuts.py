"""Edits that make a generated document smaller or plainer; each returns a copy.

Removing a step also removes all steps that refer to its aliases, so that the rest is a valid
scenario. An edit returns None if it does not apply.
"""

import copy
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, cast

from harness.protocol.values import arr, obj, text
from harness.scenario.loader import load_text
from harness.scenario.scenario_text import scenario_text
from harness.scenario.yaml12 import ScenarioError
from harness.search.fuzz import smaller_params
from harness.search.fuzz.sessions.turns import Json
from harness.search.fuzz.smaller_params import Mark

# The nonce by which the texts of a turn identify it (`Plan.next_nonce`).
_NONCE = re.compile(r"\bq\d\d\b")


def step_count(document: Json) -> int:
    """Return the number of steps of the client's side."""
    return len(document["client"])


def _method(step: Json) -> str:
    return text(obj(split_step(step)[1]).get("method"))


def kind_places(document: Json) -> list[list[int]]:
    """Return the indexes of the requests of each method, of each method group, and of all.

    All do not include the last step, which mostly shows the failure.
    """
    steps = document["client"]
    methods = [_method(step) for step in steps]
    groups: list[Collection[str]] = [{method} for method in dict.fromkeys(methods) if method]
    groups += [group for group in _METHOD_GROUPS if len(group.intersection(methods)) > 1]
    places = [
        [index for index, method in enumerate(methods) if method in group] for group in groups
    ]
    alone = [index for index, step in enumerate(steps[:-1]) if "as" not in obj(split_step(step)[1])]
    return [*places, [index for index in alone if methods[index]]]


# Groups of methods that undo each other.
_METHOD_GROUPS = (
    frozenset({"thread/archive", "thread/unarchive"}),
    frozenset({"thread/archive", "thread/unarchive", "thread/resume"}),
    frozenset({"thread/unsubscribe", "thread/resume"}),
)


def without_kind(document: Json, index: int) -> Json:
    """Return a copy without the `index`-th group of requests (`kind_places`)."""
    return without_steps(document, kind_places(document)[index])


def without_earlier(document: Json, index: int) -> Json:
    """Return a copy without the steps before `index`, except threads, forks and connections."""
    built = ("start_thread", "connect", "disconnect")
    early = [(number, split_step(step)) for number, step in enumerate(document["client"][:index])]
    gone = [
        number
        for number, (kind, body) in early
        if kind not in built and not (kind == "request" and "as" in obj(body))
    ]
    return without_steps(document, gone)


def with_one_client(document: Json) -> Json | None:
    """Return a copy in which one client does all steps; None if there is only one client."""
    steps = [
        step for step in document["client"] if split_step(step)[0] not in ("connect", "disconnect")
    ]
    if len(steps) == len(document["client"]):
        return None
    candidate = copy.deepcopy({**document, "client": steps})
    for step in candidate["client"]:
        obj(split_step(step)[1]).pop("on", None)
    return tidy(candidate)


def without_fork(document: Json, index: int) -> Json | None:
    """Return a copy in which the steps on a fork act on its origin; None if the step is no fork."""
    kind, body = split_step(document["client"][index])
    origin = text(obj(obj(body).get("params")).get("threadId"))[1:].split(".")[0]
    if kind != "request" or _method(document["client"][index]) != "thread/fork" or "as" not in body:
        return None
    forked = body["as"]
    steps = [step for number, step in enumerate(document["client"]) if number != index]
    candidate: Json = {
        **document,
        "client": [_about_origin(step, forked, origin) for step in steps],
    }
    scripts = dict(obj(document.get("model")))
    merged_script = [*arr(scripts.get(origin)), *arr(scripts.pop(forked, None))]
    candidate["model"] = {**scripts, origin: merged_script} if merged_script else scripts
    return tidy(copy.deepcopy(candidate))


def _about_origin(value: Any, forked: str, origin: str) -> Any:
    """Return a copy of a step that refers to a fork's origin instead of the fork."""
    if isinstance(value, dict):
        return {
            name: origin
            if name in ("thread", "idle") and inner == forked
            else _about_origin(inner, forked, origin)
            for name, inner in cast(Json, value).items()
        }
    if isinstance(value, list):
        return [_about_origin(inner, forked, origin) for inner in cast("list[Any]", value)]
    return f"${origin}.thread.id" if value == f"${forked}.thread.id" else value


def without_object(step_kind: str, document: Json, index: int) -> Json | None:
    """Return a copy without the thread, connection, fork or turn of a step, and steps about it.

    None if the step is not of `step_kind`, or begins none of these.
    """
    kind, body = split_step(document["client"][index])
    if kind != step_kind or not (kind == "connect" or "as" in obj(body)):
        return None
    return without_steps(document, range(index, index + 1))


def with_plain_turn(document: Json, index: int) -> Json | None:
    """Return a copy in which a turn is one message of the model, without answers and waits.

    None if the step starts no turn.
    """
    kind, body = split_step(document["client"][index])
    nonces: list[str] = _NONCE.findall(text(obj(body).get("text")))
    if kind != "start_turn" or not nonces:
        return None
    candidate = copy.deepcopy(document)
    turn_id = f"${body['as']}.turn.id"
    candidate["client"] = [
        step
        for step in candidate["client"]
        if split_step(step)[0] not in ("answer", "wait")
        or obj(obj(split_step(step)[1]).get("where")).get("turnId") != turn_id
    ]
    for alias, steps in obj(candidate.get("model")).items():
        script = [obj(step) for step in arr(steps)]
        turn_steps = [step for step in script if set(nonces).intersection(_condition_texts(step))]
        if turn_steps:
            turn_steps[-1].pop("fail", None)
            turn_steps[-1]["reply"] = [{"message": f"{min(nonces)} is done."}]
        candidate["model"][alias] = [
            step for step in script if not any(step is x for x in turn_steps[:-1])
        ]
    return tidy(candidate)


def one_after_another(document: Json) -> Iterator[Json]:
    """Yield documents in which overlapping requests are sequential: as sent, and reversed.

    A server may handle either of two overlapping requests first.
    """
    steps: list[Json] = document["client"]
    overlapping = [
        index for index, step in enumerate(steps) if obj(split_step(step)[1]).get("wait") is False
    ]
    if not overlapping:
        return
    for places in (overlapping, overlapping[::-1]):
        order = dict(zip(overlapping, places, strict=True))
        changed = [steps[order.get(index, index)] for index in range(len(steps))]
        yield tidy(
            {
                **document,
                "client": [waiting_step for step in changed for waiting_step in _with_wait(step)],
            }
        )


def _with_wait(step: Json) -> list[Json]:
    """Return a request that waits for its answer; [] for a step that only waited for one."""
    kind, body_value = split_step(step)
    body = obj(body_value)
    if kind == "wait" and "answer" in body:
        return []
    kept_members = {name: value for name, value in body.items() if name not in ("wait", "as")}
    return [{kind: kept_members}] if body.get("wait") is False else [step]


def other_places(document: Json) -> list[int]:
    """Return the indexes of steps that neither open threads or connections nor order others."""
    kinds = [split_step(step)[0] for step in document["client"]]
    return [
        index
        for index, kind in enumerate(kinds)
        if kind not in ("start_thread", "connect", *_ORDERING_STEPS)
    ]


# Steps that order others: they wait for something, or answer it.
_ORDERING_STEPS = ("wait", "answer")


def ordering_places(document: Json) -> list[int]:
    """Return the indexes of the steps that wait for something, or answer it."""
    return [
        index
        for index, step in enumerate(document["client"])
        if split_step(step)[0] in _ORDERING_STEPS
    ]


def piece_count(size: int, document: Json) -> int:
    """Return the number of pieces of `size` steps, counting only `other_places`."""
    return -(-len(other_places(document)) // size)


def without_piece(size: int, document: Json, index: int) -> Json:
    """Return a copy without the `index`-th piece of `size` steps and the steps that need it."""
    return without_steps(document, other_places(document)[index * size : (index + 1) * size])


def _model_step_places(document: Json) -> list[tuple[str, int]]:
    scripts = obj(document.get("model"))
    return [(alias, index) for alias, steps in scripts.items() for index in range(len(arr(steps)))]


def model_step_count(document: Json) -> int:
    """Return the number of steps of the model's side."""
    return len(_model_step_places(document))


def without_model_step(document: Json, index: int) -> Json:
    """Return a copy without the `index`-th step of the model's side."""
    candidate = copy.deepcopy(document)
    alias, place = _model_step_places(document)[index]
    del candidate["model"][alias][place]
    return tidy(candidate)


def without_element(document: Json, index: int) -> Json:
    """Return a copy without the `index`-th of `removable_paths`."""
    candidate = copy.deepcopy(document)
    place = list(removable_paths(document))[index]
    holder: Any = candidate
    for key in place[:-1]:
        holder = holder[key]
    del holder[place[-1]]
    return tidy(candidate)


def with_smaller_params(mark: Mark, document: Json, index: int) -> Json | None:
    """Return a copy with smaller params at the `index`-th place (`smaller_params`), or None."""
    candidate = smaller_params.shrink_params(document, index, mark)
    return None if candidate is None else tidy(candidate)


def condition_places(document: Json) -> list[tuple[str, int]]:
    """Return thread alias and index of each model step with a condition."""
    model = obj(document.get("model"))
    return [place for place in _model_step_places(document) if "when" in model[place[0]][place[1]]]


def without_conditions(document: Json, places: Sequence[tuple[str, int]]) -> Json | None:
    """Return a copy without the conditions of the model steps at these places; None for none."""
    if not places:
        return None
    candidate = copy.deepcopy(document)
    for alias, index in places:
        candidate["model"][alias][index].pop("when", None)
    return candidate


def is_loadable(document: Json) -> bool:
    """Return whether a document is a valid scenario."""
    if not document["client"]:
        return False
    try:
        load_text(scenario_text(document, "tried"))
    except ScenarioError:
        return False
    return True


def without_steps(document: Json, left_out: Collection[int]) -> Json:
    """Return a copy without these steps, and without the steps that refer to their aliases."""
    candidate = copy.deepcopy(document)
    gone: set[str] = set()
    closed: set[str] = set()
    kept_steps: list[Json] = []
    for index, step in enumerate(candidate["client"]):
        kind, body_value = split_step(step)
        body = obj(body_value)
        leave = index in left_out and kind != "open"  # An unopened gate blocks.
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
    return tidy(candidate)


def split_step(step: Json) -> tuple[str, Any]:
    """Return the only key of a step, and its value."""
    return next(iter(step.items()))


def _uses(kind: str, body: Json) -> set[str]:
    """Return the aliases that a step refers to."""
    names = ("thread", "turn", "idle", *(["answer"] if kind == "wait" else []))
    aliases = {text(body.get(name)) for name in names}
    members = [*obj(body.get("params")).values(), *obj(body.get("where")).values()]
    values = [text(value) for value in members]
    return aliases | {value[1:].split(".")[0] for value in values if value.startswith("$")}


def removable_paths(document: Json) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of each part, delta or parameter that can be removed by itself."""
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
        kind, body = split_step(step)
        for name in ("on", "params") if kind == "start_thread" else ("on", "where"):
            if name in obj(body):
                yield ("client", index, kind, name)


def tidy(document: Json) -> Json:
    """Return the document without unused gates, scripts, files and pipes."""
    started = {text(obj(split_step(step)[1]).get("as")) for step in document["client"]}
    turns = {nonce for step in document["client"] for nonce in _NONCE.findall(repr(step))}
    model: Json = {}
    for alias, script in obj(document.get("model")).items():
        steps = [_without_other_turns(step, turns) for step in script if _is_for(step, turns)]
        model |= {alias: steps} if steps and alias in started else {}
    model_text, workspace = repr(model), obj(document.get("workspace"))
    pipes = [pipe for pipe in arr(workspace.get("pipes")) if pipe in model_text]
    files = {
        name: content for name, content in obj(workspace.get("files")).items() if name in model_text
    }
    gates = {*_gates_in(model), *pipes}

    def useless(step: Json) -> bool:
        kind, body = split_step(step)
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
    """Return whether a model step is for one of these turns, or for any turn."""
    texts = _condition_texts(step)
    return not texts or any(nonce in turns for nonce in texts)


def _condition_texts(step: Json) -> list[str]:
    """Return the texts that a call must contain to match a model step."""
    return [text(nonce) for nonce in arr(obj(step.get("when")).get("input_contains"))]


def _without_other_turns(step: Json, turns: set[str]) -> Json:
    """Return a model step whose condition names only these turns."""
    when = obj(step.get("when"))
    if not when:
        return step
    lacks = [nonce for nonce in arr(when.get("input_lacks")) if nonce in turns]
    conditions = {name: condition for name, condition in when.items() if name != "input_lacks"}
    return {**step, "when": conditions | ({"input_lacks": lacks} if lacks else {})}


def _gates_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in cast(Json, value).items():
            if key == "hold":
                yield inner
            yield from _gates_in(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _gates_in(inner)
