"""Which capabilities a server turned out not to offer, read off what a run showed.

Here: one function per capability that a scenario can need and a `spec` target may lack. A profile
that declares a capability promises it: nothing is probed, its absence is a failure. Not here: what
is known before a scenario is played (asking).
"""

import json
import re
from collections.abc import Callable

from harness.backend.parts import Reasoning
from harness.scenario.loader import Loaded
from harness.suite.run import Run
from harness.target.profile import Profile
from harness.trace.frame import Frame, Kind
from harness.trace.values import dig, text
from harness.trace.views import Conversation

Probe = Callable[[Run, Conversation], bool]


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
    return shown or not streamed


def _deltas(run: Run, conversation: Conversation) -> bool:
    """Offered if text was passed on as a delta while the scenario was played.

    One delta for the whole text, when the model is done, is legal; where the scenario holds the
    model's stream it comes only after the end has opened every gate.
    """
    over = next((mark.at for mark in run.trace.marks_of("ending")), float("inf"))
    return any(
        item.first_delta is not None and item.first_delta.at < over
        for turn in conversation.turns.values()
        for item in turn.items.values()
    )


def _model_retry(run: Run, conversation: Conversation) -> bool:
    """Offered if a failed call was repeated; who announces it and gives up offers nothing."""
    return len(run.model.calls) > max(1, len(conversation.turns))


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


def _says(*methods: str) -> Probe:
    """Offered if the server sent a notification or a request of one of these methods."""

    def probe(run: Run, conversation: Conversation) -> bool:
        return any(
            frame.from_target and frame.kind in (Kind.NOTIFICATION, Kind.REQUEST)
            for frame in run.trace.frames
            if frame.method in methods
        )

    return probe


def _shows(kind: str) -> Probe:
    """Offered if an item of this type was shown."""

    def probe(run: Run, conversation: Conversation) -> bool:
        return any(
            item.type == kind
            for turn in conversation.turns.values()
            for item in turn.items.values()
        )

    return probe


def _takes(*methods: str) -> Probe:
    """Offered unless a request of one of these methods is refused as unknown."""

    def probe(run: Run, conversation: Conversation) -> bool:
        return refused(run, conversation).isdisjoint(methods)

    return probe


def refused(run: Run, conversation: Conversation) -> set[str]:
    """The methods of the requests that the server refused as unknown to it."""
    return {
        asked.method
        for frame in run.trace.frames
        if frame.kind is Kind.ERROR and _says_unknown(frame)
        if (asked := conversation.request_of(frame)) is not None
    }


def _raw_reasoning(run: Run, conversation: Conversation) -> bool:
    """Offered if a reasoning item has content."""
    return any(
        dig(frame.params, "item", "content")
        for turn in conversation.turns.values()
        for item in turn.items.values()
        if item.type == "reasoning"
        for frame in item.completed
    )


def _says_unknown(answer: Frame) -> bool:
    """Whether an error says that there is no such method: by JSON-RPC's code, or in words.

    The form of errors is not shown, so a server may have codes of its own, or no `error` at all.
    """
    said = text(dig(answer.error, "message")) or json.dumps(answer.failure)
    return dig(answer.error, "code") == _UNKNOWN_METHOD or bool(_UNKNOWN_WORDS.search(said))


_UNKNOWN_METHOD = -32601
_UNKNOWN_WORDS = re.compile(
    r"(unknown|unsupported|no such) method|method (is )?(not (found|supported|known)|unknown)",
    re.I,
)
METHODS = {
    "steering": ("turn/steer",),
    "archive": ("thread/archive", "thread/unarchive"),
    "compaction": ("thread/compact/start",),
    "history": ("thread/resume", "thread/fork", "thread/rollback"),
    "review": ("review/start",),
    "skills": ("skills/list", "skills/config/write"),
    "subscription": ("thread/loaded/list", "thread/unsubscribe"),
    "thread-list": ("thread/list",),
    "thread-name": ("thread/name/set",),
}
"""Capabilities that consist of requests."""
_PROBES: dict[str, Probe] = {
    **{capability: _takes(*methods) for capability, methods in METHODS.items()},
    "command-approval": _says("item/commandExecution/requestApproval"),
    "file-change-approval": _says("item/fileChange/requestApproval"),
    "dynamic-tools": _says("item/tool/call"),
    "model-reroute": _says("model/rerouted"),
    "plan-update": _says("turn/plan/updated"),
    "compaction-automatic": _shows("contextCompaction"),
    "image-view": _shows("imageView"),
    "plan": _shows("plan"),
    "reasoning-raw": _raw_reasoning,
    "storage": _storage,
    "web-search": _shows("webSearch"),
    "deltas": _deltas,
    "reasoning": _reasoning,
    "model-retry": _model_retry,
    "idle-timeout": _model_retry,
}


def undeclared(loaded: Loaded, profile: Profile) -> list[str]:
    """The needs of a scenario that a target with a list of capabilities leaves out of it."""
    declared = profile.capabilities
    return [need for need in loaded.scenario.needs if declared != "probe" and need not in declared]


def offers(capability: str, run: Run, conversation: Conversation) -> bool:
    """Whether a run shows that this is offered, or shows nothing about it."""
    return capability not in _PROBES or _PROBES[capability](run, conversation)


def absent(loaded: Loaded, run: Run, conversation: Conversation, profile: Profile) -> list[str]:
    """The needs of a scenario that this target does not offer."""
    if profile.capabilities != "probe":
        return undeclared(loaded, profile)
    lacking = run.unmet.capability if run.unmet is not None else ""
    return [
        need
        for need in loaded.scenario.needs
        if need == lacking or (need in _PROBES and not _PROBES[need](run, conversation))
    ]
