"""Members whose form or values the specification leaves open."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from harness.judge.base import listen
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.words import join_sorted, names, presence, type_word, word
from harness.protocol.spec.effects import named_methods
from harness.protocol.spec.listed import unlisted_members
from harness.protocol.values import MISSING, arr, dig, json_type, obj, text
from harness.trace.frame import Frame, Kind

# Pairs of a situation and a value.
Read = Iterable[tuple[str, str]]
Reader = Callable[[Any], Read]
_TABLE: dict[tuple[str, str], list[tuple[str, Reader]]] = defaultdict(list)

_REPLIES: Final = ("thread/start", "thread/resume", "thread/fork")


def _reads(point: str, *topics: tuple[str, str]) -> Callable[[Reader], Reader]:
    """Register a function that reads values for `point` from params, or from results."""

    def register(reader: Reader) -> Reader:
        for topic in topics:
            _TABLE[topic].append((point, reader))
        return reader

    return register


def _messages(*methods: str) -> tuple[tuple[str, str], ...]:
    return tuple(("method", method) for method in methods)


def _answers(*methods: str) -> tuple[tuple[str, str], ...]:
    return tuple(("answer", method) for method in methods)


@_reads("thread.preview-absent", *_answers("thread/start"))
def _preview(result: Any) -> Read:
    yield "a new thread", type_word(dig(result, "thread", "preview"))


@_reads("thread.turns-null", *_answers("thread/start"))
def _turns(result: Any) -> Read:
    yield "a new thread", type_word(dig(result, "thread", "turns"))


@_reads("thread-status.flag-values", *_messages("thread/status/changed"))
def _flags(params: Any) -> Read:
    return (("", word(flag)) for flag in arr(dig(params, "status", "activeFlags")))


@_reads("turn-error.optional-fields", *_messages("turn/completed"))
def _optional_of_error(params: Any) -> Read:
    error = dig(params, "turn", "error")
    if isinstance(error, dict):
        for name in ("agentErrorInfo", "additionalDetails"):
            yield name, presence(dig(error, name))


@_reads("turn-error.info-form", *_messages("turn/completed", "error"))
def _info_form(params: Any) -> Read:
    info = _info(params)
    if info is not MISSING:
        yield "", json_type(info)


@_reads("turn-error.info-values", *_messages("turn/completed", "error"))
def _info_values(params: Any) -> Read:
    info = _info(params)
    if info is not MISSING and info is not None:
        yield "", f"an object with {names(info)}" if isinstance(info, dict) else word(info)


def _info(params: Any) -> Any:
    error = dig(params, "error")
    return dig(dig(params, "turn", "error") if error is MISSING else error, "agentErrorInfo")


@_reads("sandbox-policy.read-only-access", *_answers(*_REPLIES))
def _access(result: Any) -> Read:
    policy = dig(result, "sandbox")
    if dig(policy, "type") == "readOnly":
        access = dig(policy, "access")
        yield "", word(dig(access, "type")) if isinstance(access, dict) else json_type(access)


@_reads("sandbox-policy.external-values", *_answers(*_REPLIES))
def _external(result: Any) -> Read:
    policy = dig(result, "sandbox")
    if dig(policy, "type") == "externalSandbox":
        yield "the setting that is told", word(dig(policy, "networkAccess"))


# Parts of a rollout's path that depend on the thread or the day.
_OWN_PARTS: Final = re.compile(r"(thr|turn)_[^./]+|[0-9][0-9A-Za-z_-]*|(?<=-)[^./]+")


@_reads("storage.folders", *_answers("thread/start"))
def _folder(result: Any) -> Read:
    path = dig(result, "thread", "path")
    if isinstance(path, str) and path:
        parts = path.split("/")
        start = parts.index("sessions") if "sessions" in parts else len(parts) - 2
        yield "", _OWN_PARTS.sub("#", "/".join(parts[max(start, 0) :]))


@_reads("skill.interface-optional", *_answers("skills/list"))
def _interface(result: Any) -> Read:
    for skill in _skills(result):
        interface = dig(skill, "interface")
        yield "interface", presence(interface)
        if isinstance(interface, dict):
            for name in ("displayName", "shortDescription", "iconSmall", "iconLarge"):
                yield name, presence(dig(interface, name))
            for name in ("brandColor", "defaultPrompt"):
                yield name, presence(dig(interface, name))


@_reads("skill-error.fields", *_answers("skills/list"))
def _skill_errors(result: Any) -> Read:
    for entry in arr(dig(result, "data")):
        for error in arr(dig(entry, "errors")):
            yield "", names(error)


@_reads("skills-list.same-name", *_answers("skills/list"))
def _same_names(result: Any) -> Read:
    for entry in arr(dig(result, "data")):
        skill_names = [text(dig(skill, "name")) for skill in arr(dig(entry, "skills"))]
        if any(skill_names.count(name) > 1 for name in skill_names if name):
            yield "", "all are listed"


@_reads("skills-list.disabled-listed", *_answers("skills/list"))
def _disabled_skills(result: Any) -> Read:
    return (
        ("", "listed with enabled false")
        for skill in _skills(result)
        if dig(skill, "enabled") is False
    )


def _skills(result: Any) -> Iterator[Any]:
    for entry in arr(dig(result, "data")):
        yield from arr(dig(entry, "skills"))


@_reads("item.message-phase", *_messages("item/completed"))
def _phase(params: Any) -> Read:
    if dig(params, "item", "type") == "agentMessage":
        yield "", word(dig(params, "item", "phase"))


@_reads("item.command-action-fields", *_messages("item/completed"))
def _actions(params: Any) -> Read:
    if dig(params, "item", "type") == "commandExecution":
        for action in arr(dig(params, "item", "commandActions")):
            yield word(dig(action, "type")), names(action)


@_reads("item.file-change-kind", *_messages("item/completed"))
def _change_kinds(params: Any) -> Read:
    for change in _changes(params):
        change_kind = dig(change, "kind")
        if isinstance(change_kind, dict):
            yield "", f"an object with {names(change_kind)}, type {word(dig(change_kind, 'type'))}"
        else:
            yield "", word(change_kind)


@_reads("item.file-change-diff", *_messages("item/completed"))
def _diffs(params: Any) -> Read:
    for change in _changes(params):
        change_kind = dig(change, "kind")
        yield (
            word(dig(change_kind, "type") if isinstance(change_kind, dict) else change_kind),
            _diff(change),
        )


def _diff(change: Any) -> str:
    diff = dig(change, "diff")
    if not isinstance(diff, str):
        return json_type(diff)
    if re.search(r"^(diff --git|--- )", diff, re.MULTILINE):
        return "hunks below a file header"
    if re.search(r"^@@", diff, re.MULTILINE):
        return "hunks and a line on the move" if "Moved to" in diff else "hunks"
    if diff and all(line[:1] in "+-" for line in diff.splitlines()):
        return "lines with a sign"
    return "the content" if diff else "empty string"


def _changes(params: Any) -> list[Any]:
    item = dig(params, "item")
    return arr(dig(item, "changes")) if dig(item, "type") == "fileChange" else []


@_reads("item.web-search-payloads", *_messages("item/completed"))
def _search_action(params: Any) -> Read:
    action = dig(params, "item", "action")
    if dig(params, "item", "type") == "webSearch":
        yield word(dig(action, "type")), names(action)


@_reads("item.tool-result-shapes", *_messages("item/completed"))
def _tool_results(params: Any) -> Read:
    item = dig(params, "item")
    if dig(item, "type") == "mcpToolCall":
        for name in ("result", "error"):
            yield f"{name} of an mcpToolCall", names(dig(item, name))
    if dig(item, "type") == "dynamicToolCall":
        for entry in arr(dig(item, "contentItems")):
            yield f"contentItems, {word(dig(entry, 'type'))}", names(entry)


@_reads("rpc.optional-null", *_messages("item/started"))
def _not_yet(params: Any) -> Read:
    if dig(params, "item", "type") == "commandExecution":
        for name in ("exitCode", "aggregatedOutput", "durationMs", "processId"):
            value = dig(params, "item", name)
            form = presence(value)
            yield f"{name} before a command has ended", "left out" if form == "absent" else form


@_reads(
    "approval.optional-params",
    *_messages("item/commandExecution/requestApproval", "item/fileChange/requestApproval"),
)
def _approval_members(params: Any) -> Read:
    asks_for = "a command" if "command" in obj(params) else "another question"
    for name in ("commandActions", "reason"):
        yield f"{name}, {asks_for}", presence(dig(params, name))


@_reads("approval.offered-decisions", *_messages("item/commandExecution/requestApproval"))
def _offered_decisions(params: Any) -> Read:
    offered = [decision for name, decision in obj(params).items() if "decision" in name.lower()]
    if not offered:
        yield "", "no"
    for decisions in offered:
        words = (
            names(decision) if isinstance(decision, dict) else word(decision)
            for decision in arr(decisions)
        )
        yield "", f"yes: {join_sorted(words)}"


@_reads("event.plan-explanation", *_messages("turn/plan/updated"))
def _explanation(params: Any) -> Read:
    yield "", json_type(dig(params, "explanation"))


@_reads("event.reroute-reason", *_messages("model/rerouted"))
def _reason(params: Any) -> Read:
    yield "", word(dig(params, "reason"))


@_reads("event.file-output-content", *_messages("item/fileChange/outputDelta"))
def _file_output(params: Any) -> Read:
    yield "", "some text" if dig(params, "delta") else "an empty text"


_METHODS_WITHOUT_PAYLOAD: Final = (
    "thread/unarchived",
    "thread/closed",
    "thread/name/updated",
    "thread/tokenUsage/updated",
    "item/mcpToolCall/progress",
    "serverRequest/resolved",
)


def _payload_reader(method: str) -> None:
    def read(params: Any) -> Read:
        yield method, names(params)

    _reads("event.payloads", ("method", method))(read)


for _method in _METHODS_WITHOUT_PAYLOAD:
    _payload_reader(_method)


@_reads("rpc.handshake", *_answers("initialize"))
def _handshake(result: Any) -> Read:
    yield "the result of initialize", names(result)


@observes(*sorted({point for rows in _TABLE.values() for point, _ in rows}))
class Members(Observer):
    """Values of the members for which `_TABLE` has a reader."""

    @listen(*(topic for topic in sorted(_TABLE) if topic[0] == "method"))
    def on_message(self, frame: Frame) -> Iterator[Choice]:
        """Yield the values in the params of a notification or request of the server."""
        for point, reader in _TABLE["method", frame.method]:
            for situation, value in reader(frame.params):
                yield Choice(point, value, frame, situation)

    @listen(*(topic for topic in sorted(_TABLE) if topic[0] == "answer"))
    def on_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield the values in a result."""
        request = self.scene.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        for point, reader in _TABLE["answer", request.method]:
            for situation, value in reader(frame.result):
                yield Choice(point, value, frame, situation)


@observes("thread-start.defaults")
class Defaults(Observer):
    """Settings that the request left out, in the reply of thread/start."""

    @listen(*_answers("thread/start"))
    def on_thread_start_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield the defaults of the settings that the request left out."""
        request = self.scene.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        settings = {
            "approvalPolicy": word(dig(frame.result, "approvalPolicy")),
            "sandbox": word(dig(frame.result, "sandbox", "type")),
        }
        for setting, value in settings.items():
            if obj(request.params).get(setting) is None:
                yield Choice("thread-start.defaults", value, frame, setting)


@observes("thread-start.ephemeral")
class Ephemeral(Observer):
    """The effect of the member `ephemeral` of thread/start."""

    @listen(*_answers("thread/start"))
    def on_thread_start_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield whether a thread that was requested as ephemeral is so in the reply."""
        request = self.scene.request_of(frame)
        if request is None or obj(request.params).get("ephemeral") is not True:
            return
        made = dig(frame.result, "thread", "ephemeral") is True
        yield Choice("thread-start.ephemeral", "yes" if made else "no", frame)


@observes("rpc.extra-members", "rpc.jsonrpc-member", "rpc.unlisted-methods", "rpc.error-response")
class Forms(Observer):
    """Members, methods and error forms besides those that the specification lists."""

    def begin(self) -> None:
        """Set up the state."""
        self._seen_names: set[str] = set()
        self._extra = False

    @listen(("kind", "notification"), ("kind", "request"), ("kind", "response"), ("kind", "error"))
    def on_message(self, frame: Frame) -> Iterator[Choice]:
        """Yield the form of each error, and of the first message of each method and kind."""
        if frame.kind is Kind.ERROR:
            yield Choice("rpc.error-response", self._error(frame), frame)
            return
        request = self.scene.request_of(frame) if frame.kind is Kind.RESPONSE else None
        method = frame.method or (request.method if request is not None else "")
        name = f"{frame.kind} {method}"
        if name in self._seen_names or len(self._seen_names) > 500:
            return
        self._seen_names.add(name)
        yield Choice(
            "rpc.jsonrpc-member", "sent" if "jsonrpc" in obj(frame.json) else "not sent", frame
        )
        book = self.scene.book
        if frame.kind is Kind.NOTIFICATION and book.event(method) is None:
            yield Choice("rpc.unlisted-methods", method, frame, "notification")
        elif frame.kind is Kind.REQUEST and method not in named_methods():
            yield Choice("rpc.unlisted-methods", method, frame, "request")
        part = "result" if frame.kind is Kind.RESPONSE else "params"
        reference = book.reference(method, part) if method else None
        if reference is not None and not self._extra:
            value = frame.result if part == "result" else frame.params
            if next(unlisted_members(book.schemas, reference, value), None) is not None:
                self._extra = True
                yield Choice("rpc.extra-members", "yes", frame)

    @staticmethod
    def _error(frame: Frame) -> str:
        error = obj(frame.error)
        if not error:
            return f"{names(frame.json)}; error is {json_type(frame.error)}"
        return f"error with {names(error)}; code is {json_type(error.get('code', MISSING))}"
