"""The scenario of a trace as the text of a file that loads.

What the client of a trace said and no client should is marked as said on purpose.
"""

import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.client.target.profile import ExecProgram
from harness.errors import UsageError
from harness.protocol.values import arr, dig, obj, text
from harness.scenario.from_trace.client_side import ClientSide
from harness.scenario.from_trace.exec_side import ExecSide
from harness.scenario.from_trace.exec_story import ExecStory
from harness.scenario.from_trace.given import Given
from harness.scenario.from_trace.model_side import ModelSide
from harness.scenario.from_trace.settings import common_settings
from harness.scenario.from_trace.story import Story
from harness.scenario.from_trace.told_items import Workshop
from harness.scenario.lexicon import Lexicon
from harness.scenario.loader import load_text
from harness.scenario.written import as_text
from harness.scenario.yaml12 import ScenarioError, parse
from harness.trace.foreign import TARGET
from harness.trace.frame import Kind
from harness.trace.marks import ModelCall
from harness.trace.surfaces import EXEC
from harness.trace.trace import Trace

_USUAL: Final = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
_WIDTH: Final = 96
# A step that the loader refuses is marked as wrong on purpose; so many are looked at.
_MAX_STEPS: Final = 200


@dataclass(frozen=True, slots=True)
class MadeScenario:
    """A scenario made of a trace: its text, what the trace did not tell, and what plays it."""

    text: str
    notes: tuple[str, ...]
    played_by: str = "--target NAME"


def scenario_of(
    trace: Trace,
    *,
    title: str,
    covers: Sequence[str],
    lexicon: Lexicon,
    origin: str,
    program: ExecProgram | None = None,
) -> MadeScenario:
    """A scenario that does what the client of a trace did, with a model that says what it said.

    `covers` are the ids of rules, `origin` says in the file where it comes from; `program` has the
    words of the program whose runs the trace is of, None where it is a session. Raises
    `UsageError` where a trace holds no client's message, or none that a scenario can say.
    """
    notes: dict[str, None] = {}
    given = Given(trace)
    story = Story(trace) if program is None else ExecStory(trace, program)
    # What is inferred of a model whose script stands in the head is for what files became of it.
    inferred: dict[str, None] = {} if given.exact else notes
    shop = Workshop(story, lambda one: inferred.update({one: None}))
    shop.files |= given.files
    recorded = trace.header.target == TARGET
    # Before the items are looked at: whether a command asks for more rights rests on it.
    policy = common_settings(story, recorded=recorded).get("approvalPolicy")
    shop.on_request = policy == "on-request"
    model = ModelSide(story, shop)
    shop.note = lambda one: notes.update({one: None})
    if isinstance(story, ExecStory):
        client = ExecSide(story, shop, model, given, recorded=recorded)
    else:
        client = ClientSide(story, shop, model, given, recorded=recorded)
    if not client.client and not client.setup:
        nobody = "no program ran" if program else "no client said anything in it but its greeting"
        raise UsageError(f"{origin}: {nobody}")
    value: dict[str, Any] = {"title": title[:200]}
    if covers:
        value["covers"] = list(covers)
    settings = {k: v for k, v in client.settings.items() if v != _USUAL.get(k)}
    scripts = {
        client.threads[thread]: [call.step() for call in calls]
        for thread, calls in model.calls.items()
        if calls and thread in client.threads
    }
    value |= {} if program is None else {"surfaces": [EXEC]}
    value |= {"settings": settings} if settings else {}
    value |= given.members if given.exact else {**_inferred(shop, scripts), **given.members}
    steps = (*client.setup, *client.client)
    notes.update(dict.fromkeys(given.notes))
    if _LISTS & {obj(obj(step).get("request")).get("method") for step in steps}:
        value["server"] = "fresh"
    value |= {"setup": client.setup} if client.setup else {}
    value["client"] = client.client or [{"request": {"method": "thread/list", "params": {}}}]
    steps_of_model = _length(value.get("model"))
    calls = _scripted_calls(trace) if given.exact else steps_of_model
    value |= _expected(story, shop, client, calls=calls, script=steps_of_model)
    return _loading(value, notes, lexicon, origin)


def _inferred(shop: Workshop, scripts: dict[str, Any]) -> dict[str, Any]:
    """Return the capabilities, files and model steps that the trace implies."""
    value: dict[str, Any] = {"needs": list(shop.needs)} if shop.needs else {}
    value |= {"mcp": shop.servers} if shop.servers else {}
    value |= {"workspace": {"files": shop.files}} if shop.files else {}
    if scripts:
        [(_, only), *others] = scripts.items()
        value["model"] = scripts if others else only
    return value


def _length(model: Any) -> int:
    """Return the number of the steps of the model's side, of one script or one per thread."""
    return sum(len(arr(one)) for one in (obj(model).values() or [model]))


def _scripted_calls(trace: Trace) -> int:
    return sum(mark.body.scripted for mark in trace.marks_of(ModelCall))


def _expected(
    story: Story, shop: Workshop, client: ClientSide | ExecSide, *, calls: int, script: int
) -> dict[str, Any]:
    """Return what to expect of every correct server: items, ends of turns, model calls, files.

    `calls` were made in the trace, of the `script` steps that the model's side has.
    """
    found: list[tuple[int, Any]] = []
    turns: dict[str, Any] = {}
    for key, turn in story.turns.items():
        alias = client.turns.get(key)
        if alias is None or turn.ends is None or not turn.status:
            continue
        turns[alias] = turn.status
        if turn.status != "completed":
            continue
        for made in turn.made:
            if made.ends is None:
                continue
            status = made.value.get("status")
            if made.type == "agentMessage" and text(made.value.get("text")):
                said = {"text": text(made.value.get("text"))}
                found.append((made.begins, {"agentMessage": said}))
            elif status == "declined":
                found.append((made.begins, {made.type: {"status": status}}))
    expected: dict[str, Any] = {}
    paused = _steers_in_a_pause(story)
    if found and not paused and not _beside_each_other(story):
        expected["items"] = [item for _, item in sorted(found, key=lambda one: one[0])]
    if turns:
        expected["turns"] = turns
    if calls < script or paused:
        # What is left of the script need not be asked for.
        least = calls - paused if calls - paused > _retries(story) else calls
        expected["model_calls"] = [*range(least, max(calls, script) + 1)]
    if shop.made_files:
        expected["workspace"] = dict(shop.made_files)
    return {"expect": expected} if expected else {}


def _retries(story: Story) -> int:
    return sum(len(turn.retries) for turn in story.turns.values())


def _steers_in_a_pause(story: Story) -> int:
    """Count the steers sent before a retry began: it may hear them, or a call after it."""
    count = 0
    for frame in story.frames:
        if frame.kind is not Kind.REQUEST or frame.method != "turn/steer":
            continue
        turn = story.running(text(dig(frame.params, "threadId")), frame.seq)
        failed = (
            max((one for one in turn.retries if one < frame.seq), default=None) if turn else None
        )
        if turn is not None and failed is not None:
            count += not any(failed < made.begins < frame.seq for made in turn.made)
    return count


def _beside_each_other(story: Story) -> bool:
    """Return whether two turns were in progress at once.

    Then nobody knows which item comes first.
    """
    turns = list(story.turns.values())
    return any(one is not other and one.runs_at(other.begins) for one in turns for other in turns)


def _loading(
    value: dict[str, Any], notes: dict[str, None], lexicon: Lexicon, origin: str
) -> MadeScenario:
    """The text, once the loader takes it."""
    for _ in range(_MAX_STEPS):
        written = _written(value, notes, origin)
        try:
            load_text(written, name="scenario", lexicon=lexicon)
        except ScenarioError as error:
            if not _mended(value, written, error, notes):
                raise UsageError(
                    f"{origin}: what its client said cannot be written as a scenario: "
                    f"{error.message}"
                ) from error
        else:
            return MadeScenario(written, tuple(notes))
    raise UsageError(f"{origin}: more than {_MAX_STEPS} of its messages are wrong by the protocol")


def _mended(
    value: dict[str, Any], written: str, error: ScenarioError, notes: dict[str, None]
) -> bool:
    """Return whether what the loader refuses could be marked as what one server has, or as on
    purpose.
    """
    document = parse(written.encode(), "scenario")
    for side in ("setup", "client"):
        steps = arr(value.get(side))
        for number, step in enumerate(steps):
            first = document.place((side, number))[0]
            last = document.place((side, number + 1))[0] if number + 1 < len(steps) else None
            if not first <= error.place[0] < (last or (1 << 30)):
                continue
            if "expect" in value and error.place[0] >= document.place(("expect",), key=True)[0]:
                continue
            return _marked(value, obj(step), error, notes)
    return False


def _marked(value: Any, step: Any, error: ScenarioError, notes: dict[str, None]) -> bool:
    for kind in ("request", "notify", "answer"):
        body: Any = step.get(kind)
        if body is None or body.get("deliberate"):
            continue
        name = text(body.get("method")) or text(body.get("to"))
        unknown = error.message.startswith("unknown") and f"'{name}'" in error.message
        if unknown and name not in arr(value.get("extensions")):
            value.setdefault("extensions", []).append(name)
            if kind == "request" and body.get("wait") is not False:
                body["expect"] = "any"
            notes[f"{name} is not of the protocol; any answer to it is right"] = None
            return True
        body["deliberate"] = True
        notes[f"{name} was sent as the protocol does not have it: {error.message}"] = None
        return True
    for kind, method in (("start_turn", "turn/start"), ("start_thread", "thread/start")):
        body = step.get(kind)
        params: Any = obj(body).get("params")
        bad = next((one for one in obj(params) if f"{one}" in error.message), None)
        if params and (bad or len(params) == 1):
            gone = bad or next(iter(params))
            del params[gone]
            notes[f"{gone} of {method} was left out: {error.message}"] = None
            return True
    return False


def _written(value: dict[str, Any], notes: Collection[str], origin: str) -> str:
    head = [f"Made by harness scenario from-trace of {origin}."]
    if notes:
        head.append("What the trace does not tell, or a scenario cannot say:")
        for note in notes:
            head += textwrap.wrap(_plain(note), _WIDTH, initial_indent="- ", subsequent_indent="  ")
    ordered = {key: value[key] for key in _ORDER if key in value}
    return as_text(ordered, "\n# ".join(head), short=True)


# They show the threads of other scenarios too, where a server is shared.
_LISTS: Final = {"thread/list", "thread/loaded/list"}
_ORDER: Final = (
    "title",
    "surfaces",
    "covers",
    "needs",
    "extensions",
    "settings",
    "config",
    "mcp",
    "workspace",
    "server",
    "client_name",
    "strict_model",
    "faults",
    "model",
    "setup",
    "client",
    "expect",
)


def _plain(note: str) -> str:
    """A note without what would end its line, or a comment could not hold."""
    return "".join(one if one.isprintable() else " " for one in note)
