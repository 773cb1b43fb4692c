"""Capabilities that a run shows to be missing in a server.

A profile that declares a capability promises it: it is not probed, and its absence is a failure.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable

from harness.client.target.profile import Profile
from harness.model.parts import Reasoning
from harness.play.run import Run
from harness.play.scenario_evidence import (
    COMMAND_APPROVAL,
    FILE_CHANGE_APPROVAL,
    refusal_shows_absence,
    silence_shows_absence,
)
from harness.protocol.spec.loading import load_book
from harness.protocol.values import dig, text
from harness.scenario.loader import Loaded
from harness.trace.frame import Frame, Kind
from harness.trace.marks import EndingBegins, ModelCall
from harness.trace.views import Conversation

Probe = Callable[[Run, Conversation], bool]


def _all_interrupted(conversation: Conversation) -> bool:
    """Return whether the client interrupted every turn, of at least one.

    An interrupt may overtake the messages that would show a capability.
    """
    turns = conversation.turns.values()
    return bool(turns) and all(turn.interrupts for turn in turns)


def _offers_reasoning(run: Run, conversation: Conversation) -> bool:
    """Return whether reasoning became an item, if the model streamed any."""
    streamed = any(
        isinstance(part, Reasoning)
        for call in run.model.calls
        if call.step is not None
        for part in call.step.reply or ()
    )
    has_item = any(
        item.type == "reasoning"
        for turn in conversation.turns.values()
        for item in turn.items.values()
    )
    return has_item or not streamed or _all_interrupted(conversation)


def _offers_deltas(run: Run, conversation: Conversation) -> bool:
    """Return whether the server sent a delta before the end of the scenario's steps.

    One delta for the whole text, when the model is done, is legal; if the scenario holds the
    model's stream, that delta arrives only after the end has opened every gate.
    """
    end = next((mark.at for mark in run.trace.marks_of(EndingBegins)), float("inf"))
    return any(
        item.first_delta is not None and item.first_delta.at < end
        for turn in conversation.turns.values()
        for item in turn.items.values()
    )


def _offers_model_retry(run: Run, conversation: Conversation) -> bool:
    """Return whether a failed call was retried; announcing a retry is not enough.

    A turn that was interrupted after the announcement could not make the call, and passes.
    """
    if len(run.model.calls) > max(1, len(conversation.turns)):
        return True
    return any(
        turn.interrupts and any(dig(error.params, "willRetry") is True for error in turn.errors)
        for turn in conversation.turns.values()
    )


def _grants_request(method: str, run: Run, conversation: Conversation) -> bool:
    """Return whether a request of a method was answered by a result, or none was answered.

    Used for methods that a server may reject with any error: the specification lacks the method, or
    its parameters, so that ours are a guess.
    """
    answers = [
        frame.kind
        for frame in run.trace.frames
        if frame.kind in (Kind.RESPONSE, Kind.ERROR)
        if (request := conversation.request_of(frame)) is not None and request.method == method
    ]
    return not answers or Kind.RESPONSE in answers


def _shows_compaction(run: Run, conversation: Conversation) -> bool:
    """Return False if compaction is granted and has no visible effect.

    A server may find that a short history needs no compaction: then it does not call the model, and
    sends neither an item nor a turn.
    """
    granted = any(
        frame.kind is Kind.RESPONSE
        and (request := conversation.request_of(frame)) is not None
        and request.method == "thread/compact/start"
        for frame in run.trace.frames
    )
    own_turns = [turn for turn in conversation.turns.values() if turn.request is not None]
    more_calls = len(run.model.calls) > len(own_turns)
    more_turns = len(conversation.turns) > len(own_turns)
    return (
        not granted
        or more_calls
        or more_turns
        or _shows_item("contextCompaction")(run, conversation)
    )


def _offers_compaction_by_model(run: Run, conversation: Conversation) -> bool:
    """Return whether the model was called between a compaction request and the next turn.

    If the scenario requests no compaction: whether there were more calls than turns that it
    started.
    """
    request_seq = next(
        (frame.seq for frame in run.trace.frames if frame.method == "thread/compact/start"), None
    )
    if request_seq is None:
        own_turns = [turn for turn in conversation.turns.values() if turn.request is not None]
        return len(run.model.calls) > len(own_turns)
    later = [
        turn.request.seq
        for turn in conversation.turns.values()
        if turn.request is not None and turn.request.seq > request_seq
    ]
    before = min(later, default=float("inf"))
    return any(request_seq <= mark.after < before for mark in run.trace.marks_of(ModelCall))


def _offers_compaction_turn(run: Run, conversation: Conversation) -> bool:
    """Return whether the server reported a turn that no request started."""
    return any(turn.starts and turn.request is None for turn in conversation.turns.values())


def _offers_storage(run: Run, conversation: Conversation) -> bool:
    """Return False if a thread is ephemeral although its request did not ask for that."""
    return not any(
        dig(answer.result, "thread", "ephemeral") is True
        for answer in run.trace.frames
        if answer.kind is Kind.RESPONSE
        and (request := conversation.request_of(answer)) is not None
        and request.method == "thread/start"
        and dig(request.params, "ephemeral") is not True
    )


def _sends_message(*methods: str) -> Probe:
    """Return a probe for a notification or request of the server with one of these methods."""

    def probe(run: Run, conversation: Conversation) -> bool:
        return any(
            frame.from_target and frame.kind in (Kind.NOTIFICATION, Kind.REQUEST)
            for frame in run.trace.frames
            if frame.method in methods
        )

    return probe


def _shows_item(kind: str) -> Probe:
    """Return a probe for an item of this type."""

    def probe(run: Run, conversation: Conversation) -> bool:
        return _all_interrupted(conversation) or any(
            item.type == kind
            for turn in conversation.turns.values()
            for item in turn.items.values()
        )

    return probe


def refused_methods(run: Run, conversation: Conversation) -> set[str]:
    """Return the methods that the server rejected as unknown."""
    return {
        request.method
        for frame in run.trace.frames
        if frame.kind is Kind.ERROR
        if (request := conversation.request_of(frame)) is not None
        if _is_unknown_method(frame, request.method)
    }


def _offers_raw_reasoning(run: Run, conversation: Conversation) -> bool:
    """Return whether a completed reasoning item has content."""
    return _all_interrupted(conversation) or any(
        dig(frame.params, "item", "content")
        for turn in conversation.turns.values()
        for item in turn.items.values()
        if item.type == "reasoning"
        for frame in item.completions
    )


def _is_unknown_method(answer: Frame, method: str) -> bool:
    """Return whether an error says that the method is unknown, by JSON-RPC's code or in words.

    The specification does not give the form of errors: a server may have its own codes, or no
    `error` at all.
    """
    words = text(dig(answer.error, "message")) or json.dumps(answer.failure)
    return (
        dig(answer.error, "code") == _UNKNOWN_METHOD
        or f"unknown variant `{method}`" in words
        or bool(_UNKNOWN_WORDS.search(words))
    )


_UNKNOWN_METHOD = -32601
_UNKNOWN_WORDS = re.compile(
    r"(unknown|unsupported|no such) method|method (is )?(not (found|supported|known)|unknown)",
    re.I,
)


def _methods_by_capability() -> dict[str, tuple[str, ...]]:
    methods_by_capability: dict[str, list[str]] = defaultdict(list)
    for row in load_book().methods:
        if row.direction == "client-to-server" and row.stability == "stable":
            methods_by_capability[row.capability].append(row.method)
    return {
        name: tuple(methods) for name, methods in methods_by_capability.items() if name != "core"
    }


METHODS = _methods_by_capability()
"""Capabilities that consist of requests -> these methods, by the specification's method table."""


def _blocks_writing(name: str) -> Probe:
    """Return a probe for a sandbox that kept this file from being written."""
    return lambda run, conversation: not (run.cwd / name).exists()


PROBE_ONLY: dict[str, Probe] = {
    "sandbox": _blocks_writing("by-a-command.txt"),
    "sandbox-policy": _blocks_writing("by-a-patch.txt"),
}
"""Capabilities that only a probe decides: in a scenario their absence may be the violation."""
_REQUESTED: dict[str, tuple[str, ...]] = {**METHODS, "review": ("review/start",)}
"""Capabilities that are absent if one of these methods is refused as unknown."""
_GRANTED = {
    "archive": "thread/unarchive",
    "compaction": "thread/compact/start",
    "history": "thread/rollback",
    "review": "review/start",
    "subscription": "thread/unsubscribe",
    "thread-name": "thread/name/set",
}
"""Capabilities that are absent if this method is refused though a correct server must accept it."""
_SHOWN: dict[str, Probe] = {
    "command-approval": _sends_message(COMMAND_APPROVAL),
    "file-change-approval": _sends_message(FILE_CHANGE_APPROVAL),
    "compaction": _shows_compaction,
    "compaction-by-model": _offers_compaction_by_model,
    "compaction-turn": _offers_compaction_turn,
    "dynamic-tools": _sends_message("item/tool/call"),
    "mcp-progress": _sends_message("item/mcpToolCall/progress"),
    "model-reroute": _sends_message("model/rerouted"),
    "plan-update": _sends_message("turn/plan/updated"),
    "compaction-automatic": _shows_item("contextCompaction"),
    "image-view": _shows_item("imageView"),
    "plan": _shows_item("plan"),
    "reasoning-raw": _offers_raw_reasoning,
    "web-search": _shows_item("webSearch"),
    "deltas": _offers_deltas,
    "reasoning": _offers_reasoning,
    "model-retry": _offers_model_retry,
    "idle-timeout": _offers_model_retry,
}
"""Capabilities that are absent if the run does not show them."""


LINE_FRAMING = "json-lines"
"""A need that depends on the transport, and is not in lists of capabilities."""


def undeclared_needs(loaded: Loaded, profile: Profile) -> list[str]:
    """Return the needs of a scenario that are known to be missing before it is played.

    They are not in the target's list of capabilities; over a WebSocket messages are not lines.
    """
    declared = profile.capabilities
    by_lines = profile.listening_kind() not in ("ws", "ws-unix")
    return [
        need
        for need in loaded.scenario.needs
        if (not by_lines if need == LINE_FRAMING else declared != "probe" and need not in declared)
    ]


def offers(capability: str, run: Run, conversation: Conversation) -> bool:
    """Return whether a run shows that a capability is offered, or shows nothing about it."""
    return not _is_refuted(capability, run, conversation) and (
        capability not in _SHOWN or _SHOWN[capability](run, conversation)
    )


def absent_needs(
    loaded: Loaded,
    run: Run,
    conversation: Conversation,
    profile: Profile,
    *,
    is_probe: bool = False,
) -> list[str]:
    """Return the needs of a scenario that this target does not offer; `is_probe`: it is a probe.

    If one need was missing and ended the run, the run's silence about the others shows nothing. If
    another capability was missing, the needs that depend on it are absent too.
    """
    if profile.capabilities != "probe":
        return undeclared_needs(loaded, profile)
    lacking = run.unmet.capability if run.unmet is not None else ""
    named = lacking in loaded.scenario.needs

    def is_absent(need: str) -> bool:
        if need == lacking or _is_refuted(need, run, conversation):
            return True
        method = _GRANTED.get(need)
        if (
            method is not None
            and (is_probe or refusal_shows_absence(loaded, method))
            and not _grants_request(method, run, conversation)
        ):
            return True
        return (
            need in _SHOWN
            and (is_probe or (not named and silence_shows_absence(loaded, need, conversation)))
            and not _SHOWN[need](run, conversation)
        )

    return [need for need in loaded.scenario.needs if is_absent(need)]


def shown_needs(probe: Loaded, run: Run, conversation: Conversation) -> set[str]:
    """Return the needs of a probe that its completed run shows to be offered."""
    return {
        need
        for need in probe.scenario.needs
        if need in _SHOWN and need not in METHODS and _SHOWN[need](run, conversation)
    }


def _is_refuted(need: str, run: Run, conversation: Conversation) -> bool:
    """Return whether an answer of the server shows that it does not offer a capability."""
    if need == "storage":
        return not _offers_storage(run, conversation)
    return not refused_methods(run, conversation).isdisjoint(_REQUESTED.get(need, ()))
