"""Capabilities that a server turned out not to offer, read off what a run showed.

A profile that declares a capability promises it: nothing is probed, its absence is a failure.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable

from harness.client.target.profile import Profile
from harness.model.parts import Reasoning
from harness.play.run import Run
from harness.protocol.spec.loading import load_book
from harness.protocol.values import dig, text
from harness.scenario.client_steps import AnswerStep, WaitStep
from harness.scenario.loader import Loaded
from harness.trace.frame import Frame, Kind
from harness.trace.marks import EndingBegins, ModelCall
from harness.trace.views import Conversation

Probe = Callable[[Run, Conversation], bool]


def _all_interrupted(conversation: Conversation) -> bool:
    """Return whether a client interrupted every turn.

    An interrupt may overtake what was to be shown.
    """
    turns = conversation.turns.values()
    return bool(turns) and all(turn.interrupts for turn in turns)


def _reasoning(run: Run, conversation: Conversation) -> bool:
    """Offered if reasoning that the model streamed became an item."""
    streamed = any(
        isinstance(part, Reasoning)
        for call in run.model.calls
        if call.step is not None
        for part in call.step.reply or ()
    )
    shown = any(
        item.type == "reasoning"
        for turn in conversation.turns.values()
        for item in turn.items.values()
    )
    return shown or not streamed or _all_interrupted(conversation)


def _deltas(run: Run, conversation: Conversation) -> bool:
    """Offered if text was passed on as a delta while the scenario was played.

    One delta for the whole text, when the model is done, is legal; where the scenario holds the
    model's stream it comes only after the end has opened every gate.
    """
    over = next((mark.at for mark in run.trace.marks_of(EndingBegins)), float("inf"))
    return any(
        item.first_delta is not None and item.first_delta.at < over
        for turn in conversation.turns.values()
        for item in turn.items.values()
    )


def _model_retry(run: Run, conversation: Conversation) -> bool:
    """Offered if a failed call was repeated; who announces it and gives up offers nothing.

    A turn that was interrupted after the announcement could not go on to the call.
    """
    if len(run.model.calls) > max(1, len(conversation.turns)):
        return True
    return any(
        turn.interrupts and any(dig(error.params, "willRetry") is True for error in turn.errors)
        for turn in conversation.turns.values()
    )


def _grants_request(method: str) -> Probe:
    """Offered unless each request of this method was refused, in whatever form.

    For methods that the text does not have: how a server refuses those is its own affair; and for
    those whose parameters it does not show: ours are a guess, which a server may refuse.
    """

    def probe(run: Run, conversation: Conversation) -> bool:
        answers = [
            frame.kind
            for frame in run.trace.frames
            if frame.kind in (Kind.RESPONSE, Kind.ERROR)
            if (asked := conversation.request_of(frame)) is not None and asked.method == method
        ]
        return not answers or Kind.RESPONSE in answers

    return probe


def _both(first: Probe, second: Probe) -> Probe:
    """Offered if both say so."""
    return lambda run, conversation: first(run, conversation) and second(run, conversation)


def _compaction(run: Run, conversation: Conversation) -> bool:
    """Offered unless it is refused as unknown, or an accepted one comes to nothing that shows.

    A server need not find a short history worth compacting: then it asks the model nothing, and
    tells neither an item nor a turn.
    """
    if not _accepts_methods("thread/compact/start")(run, conversation):
        return False
    return not _compacted_nothing(run, conversation)


def _compacted_nothing(run: Run, conversation: Conversation) -> bool:
    asked = [frame for frame in run.trace.frames if frame.method == "thread/compact/start"]
    ours = [turn for turn in conversation.turns.values() if turn.request is not None]
    more_calls = len(run.model.calls) > len(ours)
    more_turns = len(conversation.turns) > len(ours)
    return bool(asked) and not (
        more_calls or more_turns or _shows_item("contextCompaction")(run, conversation)
    )


def _compaction_by_model(run: Run, conversation: Conversation) -> bool:
    """Offered if the model was asked while no turn of ours ran.

    Where the scenario asks for no compaction, it was asked more often than turns were started.
    """
    asked = next(
        (frame.seq for frame in run.trace.frames if frame.method == "thread/compact/start"), None
    )
    if asked is None:
        ours = [turn for turn in conversation.turns.values() if turn.request is not None]
        return len(run.model.calls) > len(ours)
    later = [
        turn.request.seq
        for turn in conversation.turns.values()
        if turn.request is not None and turn.request.seq > asked
    ]
    before = min(later, default=float("inf"))
    return any(asked <= mark.after < before for mark in run.trace.marks_of(ModelCall))


def _compaction_turn(run: Run, conversation: Conversation) -> bool:
    """Offered if a compaction that was asked for is told as a turn of its own."""
    return any(turn.started and turn.request is None for turn in conversation.turns.values())


def _storage(run: Run, conversation: Conversation) -> bool:
    """Offered unless threads are ephemeral although nobody asked for it."""
    return not any(
        dig(answer.result, "thread", "ephemeral") is True
        for answer in run.trace.frames
        if answer.kind is Kind.RESPONSE
        and (asked := conversation.request_of(answer)) is not None
        and asked.method == "thread/start"
        and dig(asked.params, "ephemeral") is not True
    )


def _sends_message(*methods: str) -> Probe:
    """Offered if the server sent a notification or a request of one of these methods."""

    def probe(run: Run, conversation: Conversation) -> bool:
        return any(
            frame.from_target and frame.kind in (Kind.NOTIFICATION, Kind.REQUEST)
            for frame in run.trace.frames
            if frame.method in methods
        )

    return probe


def _shows_item(kind: str) -> Probe:
    """Offered if an item of this type was shown."""

    def probe(run: Run, conversation: Conversation) -> bool:
        return _all_interrupted(conversation) or any(
            item.type == kind
            for turn in conversation.turns.values()
            for item in turn.items.values()
        )

    return probe


def _accepts_methods(*methods: str) -> Probe:
    """Offered unless a request of one of these methods is refused as unknown."""

    def probe(run: Run, conversation: Conversation) -> bool:
        return refused_methods(run, conversation).isdisjoint(methods)

    return probe


def refused_methods(run: Run, conversation: Conversation) -> set[str]:
    """The methods of the requests that the server refused as unknown to it."""
    return {
        asked.method
        for frame in run.trace.frames
        if frame.kind is Kind.ERROR and _is_unknown_method(frame)
        if (asked := conversation.request_of(frame)) is not None
    }


def _raw_reasoning(run: Run, conversation: Conversation) -> bool:
    """Offered if a reasoning item has content."""
    return _all_interrupted(conversation) or any(
        dig(frame.params, "item", "content")
        for turn in conversation.turns.values()
        for item in turn.items.values()
        if item.type == "reasoning"
        for frame in item.completed
    )


def _is_unknown_method(answer: Frame) -> bool:
    """Return whether an error says that there is no such method: by JSON-RPC's code, or in words.

    The form of errors is not shown, so a server may have codes of its own, or no `error` at all.
    """
    said = text(dig(answer.error, "message")) or json.dumps(answer.failure)
    return dig(answer.error, "code") == _UNKNOWN_METHOD or bool(_UNKNOWN_WORDS.search(said))


COMMAND_APPROVAL = "item/commandExecution/requestApproval"
FILE_CHANGE_APPROVAL = "item/fileChange/requestApproval"
_UNKNOWN_METHOD = -32601
_UNKNOWN_WORDS = re.compile(
    r"(unknown|unsupported|no such) method|method (is )?(not (found|supported|known)|unknown)",
    re.I,
)


def _methods() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = defaultdict(list)
    for row in load_book().methods:
        if row.direction == "client-to-server" and row.stability == "stable":
            found[row.capability].append(row.method)
    return {name: tuple(methods) for name, methods in found.items() if name != "core"}


METHODS = _methods()
"""Capabilities that consist of requests, by the book's table of methods."""


def _blocks_writing(name: str) -> Probe:
    """Offered unless the sandbox let a file of this name be written."""
    return lambda run, conversation: not (run.cwd / name).exists()


PROBE_ONLY: dict[str, Probe] = {
    "sandbox": _blocks_writing("by-a-command.txt"),
    "sandbox-policy": _blocks_writing("by-a-patch.txt"),
}
"""What a probe alone shows: in a scenario the same may be the breach that it is about."""
_PROBES: dict[str, Probe] = {
    **{capability: _accepts_methods(*methods) for capability, methods in METHODS.items()},
    "command-approval": _sends_message(COMMAND_APPROVAL),
    "file-change-approval": _sends_message(FILE_CHANGE_APPROVAL),
    "thread-name": _grants_request("thread/name/set"),
    "archive": _both(_accepts_methods(*METHODS["archive"]), _grants_request("thread/unarchive")),
    "history": _both(_accepts_methods(*METHODS["history"]), _grants_request("thread/rollback")),
    "subscription": _both(_accepts_methods(*METHODS["subscription"]), _grants_request("thread/unsubscribe")),
    "compaction": _compaction,
    "compaction-by-model": _compaction_by_model,
    "compaction-turn": _compaction_turn,
    "review": _grants_request("review/start"),
    "dynamic-tools": _sends_message("item/tool/call"),
    "mcp-progress": _sends_message("item/mcpToolCall/progress"),
    "model-reroute": _sends_message("model/rerouted"),
    "plan-update": _sends_message("turn/plan/updated"),
    "compaction-automatic": _shows_item("contextCompaction"),
    "image-view": _shows_item("imageView"),
    "plan": _shows_item("plan"),
    "reasoning-raw": _raw_reasoning,
    "storage": _storage,
    "web-search": _shows_item("webSearch"),
    "deltas": _deltas,
    "reasoning": _reasoning,
    "model-retry": _model_retry,
    "idle-timeout": _model_retry,
}


LINE_FRAMING = "json-lines"
"""What no list of capabilities decides on, but the way in which a server is reached."""


def undeclared_needs(loaded: Loaded, profile: Profile) -> list[str]:
    """The needs of a scenario that are known to be missing before it is played.

    A target with a list of capabilities leaves them out of it; over a WebSocket no message is a
    line.
    """
    declared = profile.capabilities
    by_lines = profile.listening_kind() not in ("ws", "ws-unix")
    return [
        need
        for need in loaded.scenario.needs
        if (not by_lines if need == LINE_FRAMING else declared != "probe" and need not in declared)
    ]


def offers(capability: str, run: Run, conversation: Conversation) -> bool:
    """Return whether a run shows that this is offered, or shows nothing about it."""
    return capability not in _PROBES or _PROBES[capability](run, conversation)


def absent(
    loaded: Loaded,
    run: Run,
    conversation: Conversation,
    profile: Profile,
    *,
    is_probe: bool = False,
) -> list[str]:
    """The needs of a scenario that this target does not offer; `asking`: it is a probe's."""
    if profile.capabilities != "probe":
        return undeclared_needs(loaded, profile)
    lacking = run.unmet.capability if run.unmet is not None else ""
    return [
        need
        for need in loaded.scenario.needs
        if need == lacking
        or (
            need in _PROBES
            and (is_probe or run_shows_absence(loaded, need))
            and not _PROBES[need](run, conversation)
        )
    ]


_QUESTIONS = {"command-approval": COMMAND_APPROVAL, "file-change-approval": FILE_CHANGE_APPROVAL}


def run_shows_absence(loaded: Loaded, need: str) -> bool:
    """Return whether a scenario's own run shows that a capability is absent.

    That nobody was asked shows it only where the script waits for the question: elsewhere it may
    be right, or the very breach that the scenario is about.
    """
    method = _QUESTIONS.get(need)
    return method is None or any(
        (isinstance(step, AnswerStep) and step.answer.to == method and not step.answer.standing)
        or (isinstance(step, WaitStep) and step.wait.request == method)
        for step in loaded.scenario.steps
    )
