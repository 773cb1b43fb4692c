"""The text of a scenario file that repeats a trace.

Invalid messages of the trace's client are marked as deliberate.
"""

import re
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
from harness.scenario.from_trace.item_parts import Conversion
from harness.scenario.from_trace.model_side import ModelSide
from harness.scenario.from_trace.overlap import accepted_ends
from harness.scenario.from_trace.settings import common_settings
from harness.scenario.from_trace.setup import TraceHead
from harness.scenario.from_trace.story import Story
from harness.scenario.lexicon import Lexicon
from harness.scenario.loader import load_text
from harness.scenario.scenario_text import scenario_text
from harness.scenario.yaml12 import ScenarioError, parse
from harness.trace.foreign import TARGET
from harness.trace.frame import Kind
from harness.trace.marks import ModelCall
from harness.trace.model_marks import ModelOutput
from harness.trace.surfaces import EXEC
from harness.trace.trace import Trace

_DEFAULT_SETTINGS: Final = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
_MAX_WIDTH: Final = 96
# A step that the loader rejects is marked as deliberate; at most this many are tried.
_MAX_STEPS: Final = 200


@dataclass(frozen=True, slots=True)
class ScenarioFromTrace:
    """A scenario made from a trace: its text, notes on missing data, and the option to play it."""

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
    first_notes: Sequence[str] = (),
    timing: bool = False,
) -> ScenarioFromTrace:
    """Return a scenario that repeats what the client and the model of a trace did.

    `covers` are the ids of rules, `origin` names the trace in the file; `program` has the command
    line of the traced `agent exec`, None for a session; `first_notes` precede the notes. With
    `timing` the model waits before each piece as recorded. Raises `UsageError` if the trace has no
    message of a client, or one that a scenario cannot express, or no timing.
    """
    if timing and not any(mark.body.pieces for mark in trace.marks_of(ModelOutput)):
        reason = "it has no times of a model's answer; record it by harness record --record-model"
        raise UsageError(f"{origin}: --timing recorded: {reason}")
    notes: dict[str, None] = dict.fromkeys(first_notes)
    head = TraceHead(trace)
    story = Story(trace) if program is None else ExecStory(trace, program)
    # If the trace's head has the model's script, only the result files are inferred.
    inferred_notes: dict[str, None] = {} if head.has_steps else notes
    conversion = Conversion(story, lambda note: inferred_notes.update({note: None}))
    conversion.files |= head.files
    is_recording = trace.header.target == TARGET
    # Before the items: whether a command asks for escalation depends on it.
    policy = common_settings(story, is_recording=is_recording).get("approvalPolicy")
    conversion.asks_on_request = policy == "on-request"
    model = ModelSide(story, conversion, timing=timing)
    conversion.add_note = lambda note: notes.update({note: None})
    if isinstance(story, ExecStory):
        client = ExecSide(story, conversion, model, head, is_recording=is_recording)
    else:
        client = ClientSide(story, conversion, model, head, is_recording=is_recording)
    if not client.client and not client.setup:
        cause = "no program ran" if program else "no client said anything in it but its greeting"
        raise UsageError(f"{origin}: {cause}")
    value: dict[str, Any] = {"title": title[:200]}
    if covers:
        value["covers"] = list(covers)
    settings = {k: v for k, v in client.settings.items() if v != _DEFAULT_SETTINGS.get(k)}
    scripts = {
        client.threads[thread]: [call.step() for call in calls]
        for thread, calls in model.calls.items()
        if calls and thread in client.threads
    }
    value |= {} if program is None else {"surfaces": [EXEC]}
    value |= {"settings": settings} if settings else {}
    value |= (
        head.members
        if head.has_steps
        else {**_inferred_members(conversion, scripts), **head.members}
    )
    steps = (*client.setup, *client.client)
    notes.update(dict.fromkeys(head.notes))
    if _LIST_METHODS & {obj(obj(step).get("request")).get("method") for step in steps}:
        value["server"] = "fresh"
    value |= {"setup": client.setup} if client.setup else {}
    value["client"] = client.client or [{"request": {"method": "thread/list", "params": {}}}]
    steps_of_model = _count_model_steps(value.get("model"))
    calls = _scripted_calls(trace) if head.has_steps else steps_of_model
    value |= _expectations(story, conversion, client, calls=calls, script=steps_of_model)
    return _mark_until_it_loads(value, notes, lexicon, origin)


def _inferred_members(conversion: Conversion, scripts: dict[str, Any]) -> dict[str, Any]:
    """Return the capabilities, files and model steps that the trace implies."""
    value: dict[str, Any] = {"needs": list(conversion.needs)} if conversion.needs else {}
    value |= {"mcp": conversion.servers} if conversion.servers else {}
    value |= {"workspace": {"files": conversion.files}} if conversion.files else {}
    if scripts:
        [(_, script), *others] = scripts.items()
        value["model"] = scripts if others else script
    return value


def _count_model_steps(model: Any) -> int:
    """Return the number of model steps in a `model` member: one script, or one per thread."""
    return sum(len(arr(script)) for script in (obj(model).values() or [model]))


def _scripted_calls(trace: Trace) -> int:
    return sum(mark.body.is_scripted for mark in trace.marks_of(ModelCall))


def _expectations(
    story: Story, conversion: Conversion, client: ClientSide | ExecSide, *, calls: int, script: int
) -> dict[str, Any]:
    """Return the `expect` member that any correct server meets, {} if empty.

    `calls` is the number of model calls in the trace, `script` that of the model's steps.
    """
    items: list[tuple[int, Any]] = []
    turns: dict[str, Any] = {}
    for key, turn in story.turns.items():
        alias = client.turns.get(key)
        if alias is None or turn.ends is None or not turn.status:
            continue
        turns[alias] = accepted_ends(story, turn)
        if turn.status != "completed":
            continue
        for product in turn.products:
            if product.ends is None:
                continue
            status = product.value.get("status")
            if product.type == "agentMessage" and text(product.value.get("text")):
                members = {"text": text(product.value.get("text"))}
                items.append((product.begins, {"agentMessage": members}))
            elif status == "declined":
                items.append((product.begins, {product.type: {"status": status}}))
    expected: dict[str, Any] = {}
    paused_steers = _count_steers_before_retry(story)
    is_beside = any(isinstance(ends, list) for ends in turns.values())
    if items and not paused_steers and not is_beside and not _has_overlapping_turns(story):
        expected["items"] = [item for _, item in sorted(items, key=lambda entry: entry[0])]
    if turns:
        expected["turns"] = turns
    interrupted_calls = _count_calls_before_interrupt(story)
    if is_beside:
        # A server may refuse the second of two turns, or answer both at once.
        expected["model_calls"] = [*range(max(calls, script) + 1)]
    elif calls < script or paused_steers or interrupted_calls:
        # The rest of the script may stay unused.
        min_calls = (
            calls - paused_steers if calls - paused_steers > _count_retries(story) else calls
        )
        min_calls = min(min_calls, calls - interrupted_calls)
        expected["model_calls"] = [*range(min_calls, max(calls, script) + 1)]
    if conversion.result_files:
        expected["workspace"] = dict(conversion.result_files)
    return {"expect": expected} if expected else {}


def _count_retries(story: Story) -> int:
    return sum(len(turn.retries) for turn in story.turns.values())


def _count_calls_before_interrupt(story: Story) -> int:
    """Count the model calls of interrupted turns that no retry and no item followed.

    Another server may see the interrupt before such a call.
    """
    calls = [mark.after for mark in story.trace.marks_of(ModelCall) if mark.body.is_scripted]
    ends = [turn.ends for turn in story.turns.values() if turn.ends is not None]
    count = 0
    for turn in story.turns.values():
        if turn.status != "interrupted" or turn.ends is None:
            continue
        # A call can precede the answer to turn/start, so `turn.begins` is too late a bound.
        seen = [ended for ended in ends if ended < turn.begins]
        seen += [*turn.retries, *(product.begins for product in turn.products)]
        count += sum(max(seen, default=0) <= call < turn.ends for call in calls)
    return count


def _count_steers_before_retry(story: Story) -> int:
    """Count the steers between a failed call and its retry; either call may include them."""
    count = 0
    for frame in story.frames:
        if frame.kind is not Kind.REQUEST or frame.method != "turn/steer":
            continue
        turn = story.turn_at(text(dig(frame.params, "threadId")), frame.seq)
        failed = (
            max((retry for retry in turn.retries if retry < frame.seq), default=None)
            if turn
            else None
        )
        if turn is not None and failed is not None:
            count += not any(failed < product.begins < frame.seq for product in turn.products)
    return count


def _has_overlapping_turns(story: Story) -> bool:
    """Return whether two turns were in progress at once.

    The order of their items is then undefined.
    """
    turns = list(story.turns.values())
    return any(
        turn is not other and turn.runs_at(other.begins) for turn in turns for other in turns
    )


def _mark_until_it_loads(
    value: dict[str, Any], notes: dict[str, None], lexicon: Lexicon, origin: str
) -> ScenarioFromTrace:
    """Mark steps until the scenario loads, and return it. Raises `UsageError` if it never does."""
    for _ in range(_MAX_STEPS):
        text_made = _file_text(value, notes, origin)
        try:
            load_text(text_made, name="scenario", lexicon=lexicon)
        except ScenarioError as error:
            if not _mark_refused_step(value, text_made, error, notes):
                raise UsageError(
                    f"{origin}: what its client said cannot be written as a scenario: "
                    f"{error.message}"
                ) from error
        else:
            return ScenarioFromTrace(text_made, tuple(notes))
    raise UsageError(f"{origin}: more than {_MAX_STEPS} of its messages are wrong by the protocol")


def _mark_refused_step(
    value: dict[str, Any], written: str, error: ScenarioError, notes: dict[str, None]
) -> bool:
    """Mark the step that the loader rejects as an extension or as deliberate.

    Return whether there was such a step.
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
            return _mark_step(value, obj(step), error, notes)
    return False


def _mark_step(value: Any, step: Any, error: ScenarioError, notes: dict[str, None]) -> bool:
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
        named = next(
            (name for name in obj(params) if re.search(rf"\b{re.escape(name)}\b", error.message)),
            None,
        )
        if params and (named or len(params) == 1):
            removed = named or next(iter(params))
            del params[removed]
            notes[f"{removed} of {method} was left out: {error.message}"] = None
            return True
    return False


def _file_text(value: dict[str, Any], notes: Collection[str], origin: str) -> str:
    head = [f"Made by harness scenario from-trace of {origin}."]
    if notes:
        head.append("What the trace does not tell, or a scenario cannot say:")
        for note in notes:
            head += textwrap.wrap(
                _one_line(note), _MAX_WIDTH, initial_indent="- ", subsequent_indent="  "
            )
    ordered = {key: value[key] for key in _ORDER if key in value}
    return scenario_text(ordered, "\n# ".join(head), short=True)


# On a shared server these also list the threads of other scenarios.
_LIST_METHODS: Final = {"thread/list", "thread/loaded/list"}
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


def _one_line(note: str) -> str:
    """Return a note with a space for each unprintable character and line end."""
    return "".join(char if char.isprintable() else " " for char in note)
