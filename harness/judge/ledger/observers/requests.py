"""Answers to requests in situations that the specification does not cover."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from harness.judge.base import listen
from harness.judge.ledger.base import Choice, Observer, Scene, observes
from harness.judge.ledger.facts import ThreadFacts
from harness.judge.ledger.words import UNANSWERED, outcome
from harness.protocol.spec.effects import named_methods
from harness.protocol.spec.listed import unlisted_members
from harness.protocol.values import MISSING, arr, obj, text
from harness.trace.frame import Frame, Kind

POLICIES: Final = ("never", "untrusted", "on-request", "on-failure", "reject")
CAMEL: Final = ("workspaceWrite", "readOnly", "dangerFullAccess")
_ARCHIVED_USE: Final = (
    "thread/read",
    "thread/resume",
    "thread/fork",
    "thread/name/set",
    "thread/rollback",
    "thread/unarchive",
    "thread/compact/start",
    "turn/start",
)
_UNUSED: Final = ("thread/archive", "thread/resume", "thread/fork")
# A `limit` above this is longer than any list; a longer name does not fit into a list.
_LARGE_LIMIT, _LONG_NAME_CHARACTERS = 10_000, 150


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request with the state of the scene and its thread when it is sent."""

    frame: Frame
    scene: Scene
    params: dict[str, Any]
    thread: ThreadFacts

    @property
    def is_known(self) -> bool:
        """Return whether the request names a thread that the server has shown."""
        return self.thread.is_known

    @property
    def is_active(self) -> bool:
        """Return whether that thread has a turn in progress."""
        return bool(self.thread.running_turn)


# Returns the situation in words if the request is in it, else None.
Situation = Callable[[SentRequest], str | None]
_TABLE: dict[str, list[tuple[str, Situation]]] = defaultdict(list)
_ANY: Final = ""


def _at(point: str, *methods: str) -> Callable[[Situation], Situation]:
    """Register a situation at a point, for these methods or for all if none is given."""

    def register(situation: Situation) -> Situation:
        for method in methods or (_ANY,):
            _TABLE[method].append((point, situation))
        return situation

    return register


def _when(point: str, method: str, words: str, holds: Callable[[SentRequest], bool]) -> None:
    """Register `words` as the situation of a method's requests for which `holds` is true."""
    _at(point, method)(lambda request: words if holds(request) else None)


@_at("rpc.absent-params")
def _no_params(request: SentRequest) -> str | None:
    return request.frame.method if "params" not in obj(request.frame.json) else None


@_at("rpc.id-forms")
def _string_id(request: SentRequest) -> str | None:
    return "a string" if isinstance(request.frame.id, str) else None


@_at("rpc.unknown-method")
def _unknown(request: SentRequest) -> str | None:
    is_known = request.frame.method in named_methods() or request.frame.method == "initialize"
    return None if is_known else "a method that nothing names"


@_at("rpc.invalid-params")
def _invalid(request: SentRequest) -> str | None:
    if request.scene.book.method(request.frame.method) is None:
        return None
    params = obj(request.frame.json).get("params", MISSING)
    if params is MISSING or not isinstance(params, dict):
        return None
    errors = request.scene.book.validate_params(request.frame.method, params)
    if not errors:
        return None
    missing = any(error.expected == "the member to be there" for error in errors)
    return "a member is missing" if missing else "a member has a wrong value"


@_at("rpc.unknown-params")
def _unlisted_params(request: SentRequest) -> str | None:
    book, method = request.scene.book, request.frame.method
    reference = book.reference(method, "params")
    if reference is None:
        return None
    members = {
        str(member.path[-1]) for member in unlisted_members(book.schemas, reference, request.params)
    }
    return method if members - _EXTENSIONS else None


# Members that the specification does not list, and that the harness sends on purpose.
_EXTENSIONS: Final = {
    "ephemeral",
    "dynamicTools",
    "persistExtendedHistory",
    "experimentalRawEvents",
}


@_at("sandbox-mode.camel", "thread/start")
def _camel(request: SentRequest) -> str | None:
    return text(request.params.get("sandbox")) if request.params.get("sandbox") in CAMEL else None


@_at("sandbox-policy.external-values", "turn/start")
def _external(request: SentRequest) -> str | None:
    policy = obj(request.params.get("sandboxPolicy"))
    if policy.get("type") != "externalSandbox":
        return None
    return f"networkAccess {policy.get('networkAccess')}"


@_at("approval-policy.on-failure-flow", "thread/start", "turn/start")
def _on_failure(request: SentRequest) -> str | None:
    policy = request.params.get("approvalPolicy")
    return f"{request.frame.method} with the policy" if policy == "on-failure" else None


@_at("approval-policy.reject-flow", "thread/start", "turn/start")
def _reject(request: SentRequest) -> str | None:
    policy = request.params.get("approvalPolicy")
    return f"{request.frame.method} with the policy" if policy == "reject" else None


@_at("thread-start.unknown-values", "thread/start", "turn/start")
def _unheard_policy(request: SentRequest) -> str | None:
    policy = request.params.get("approvalPolicy")
    return "a policy" if isinstance(policy, str) and policy not in POLICIES else None


@_at("thread-start.unknown-values", "thread/start")
def _unheard_provider(request: SentRequest) -> str | None:
    provider = request.params.get("modelProvider")
    return "a provider" if isinstance(provider, str) and "nobody" in provider else None


@_at("thread.cwd-relative", "thread/start", "turn/start")
def _relative(request: SentRequest) -> str | None:
    cwd = request.params.get("cwd")
    return f"relative, {request.frame.method}" if isinstance(cwd, str) and cwd[:1] != "/" else None


_when(
    "storage.archive-loaded", "thread/archive", "an active turn", lambda request: request.is_active
)
_when(
    "storage.archive-loaded",
    "thread/archive",
    "loaded",
    lambda request: (
        bool(request.thread.is_loaded) and not request.is_active and bool(request.thread.turns)
    ),
)
_when(
    "storage.archive-twice",
    "thread/archive",
    "archived",
    lambda request: request.thread.is_archived,
)
_when(
    "storage.archive-twice",
    "thread/unarchive",
    "unarchived",
    lambda request: request.is_known and not request.thread.is_archived,
)


@_at("storage.archived-use", *_ARCHIVED_USE)
def _archived_thread(request: SentRequest) -> str | None:
    return request.frame.method if request.thread.is_archived else None


@_at("storage.unused-thread", *_UNUSED)
def _unused_thread(request: SentRequest) -> str | None:
    thread = request.thread
    fit = request.is_known and not (
        thread.turns or thread.is_archived or thread.is_ephemeral or thread.is_fork
    )
    return request.frame.method if fit else None


@_at("thread-resume.loaded", "thread/resume")
def _loaded_thread(request: SentRequest) -> str | None:
    if not request.thread.is_loaded or not request.thread.turns or request.thread.is_ephemeral:
        return None
    return "an active turn" if request.is_active else "no active turn"


@_at("thread-read.unknown")
def _no_such_thread(request: SentRequest) -> str | None:
    thread_id = text(request.params.get("threadId"))
    if not thread_id or thread_id in request.scene.facts.threads or request.scene.facts.restarts:
        return None
    row = request.scene.book.method(request.frame.method)
    return None if row is None else request.frame.method


_when("thread-name.empty", "thread/name/set", "", lambda request: request.params.get("name") == "")


@_at("thread-name.words", "thread/name/set")
def _odd_name(request: SentRequest) -> str | None:
    name = text(request.params.get("name"))
    if not name or not request.is_known:
        return None
    if not name.strip():
        return "blanks alone"
    if len(name) > _LONG_NAME_CHARACTERS:
        return "long"
    if any(ord(letter) < ord(" ") for letter in name):
        return "control characters"
    return "of a thread that is not loaded" if request.thread.is_loaded is False else None


@_at("thread-rollback.too-many", "thread/rollback")
def _how_many(request: SentRequest) -> str | None:
    count = request.params.get("numTurns")
    if not isinstance(count, int) or not request.is_known:
        return None
    if count < 1:
        return "none" if count == 0 else "less than none"
    return "more than there are" if count > len(request.thread.turns) else None


_when(
    "thread-rollback.loads",
    "thread/rollback",
    "",
    lambda request: (
        request.is_known and request.thread.is_loaded is False and not request.thread.is_archived
    ),
)
_when("thread-rollback.active", "thread/rollback", "", lambda request: request.is_active)
_when("thread-compact.active", "thread/compact/start", "", lambda request: request.is_active)
_when(
    "turn-start.loads",
    "turn/start",
    "",
    lambda request: (
        request.is_known and request.thread.is_loaded is False and not request.thread.is_archived
    ),
)
_when(
    "turn-start.empty-input",
    "turn/start",
    "the request",
    lambda request: request.params.get("input") == [] and not request.is_active,
)


@_at("turn-interrupt.wrong-turn", "turn/interrupt")
def _wrong_turn(request: SentRequest) -> str | None:
    if not request.is_known:
        return None
    if not request.is_active:
        return "no active turn"
    return (
        "another turn is active"
        if request.params.get("turnId") != request.thread.running_turn
        else None
    )


_when(
    "turn-interrupt.twice",
    "turn/interrupt",
    "",
    lambda request: (
        request.is_active and request.thread.interrupt_target == request.thread.running_turn
    ),
)


@_at("thread-list.limit-range", "thread/list")
def _odd_limit(request: SentRequest) -> str | None:
    limit = request.params.get("limit")
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        return None
    if limit < 1:
        return "0" if limit == 0 else "below 0"
    if limit != int(limit):
        return "with a fraction"
    return "very large" if limit > _LARGE_LIMIT else None


_when(
    "thread-list.source-words",
    "thread/list",
    "an empty list",
    lambda request: request.params.get("sourceKinds") == [],
)


@_at("thread-loaded-list.paging", "thread/loaded/list")
def _page_params(request: SentRequest) -> str | None:
    params = [name for name in ("cursor", "limit") if request.params.get(name) is not None]
    return " and ".join(params) or None


@_at("skills-remote.shapes", "skills/remote/list", "skills/remote/export")
def _remote(request: SentRequest) -> str | None:
    return request.frame.method


@_at("skills-config-write.unknown", "skills/config/write")
def _no_skill_there(request: SentRequest) -> str | None:
    path = text(request.params.get("path"))
    return "" if any(part in path for part in ("nowhere", "no-such", "missing")) else None


@_at("item.review-begins", "review/start")
def _review(request: SentRequest) -> str | None:
    return f"params {', '.join(sorted(request.params))}"


@_at("turn-start.missing-file", "turn/start")
def _missing_image(request: SentRequest) -> str | None:
    for entry in arr(request.params.get("input")):
        path = text(obj(entry).get("path"))
        if obj(entry).get("type") == "localImage" and "no-such" in path:
            return "the request"
    return None


@observes(*sorted({point for rows in _TABLE.values() for point, _ in rows}))
class Answers(Observer):
    """Answers of a server in the situations of `_TABLE`."""

    def begin(self) -> None:
        """Set up the state."""
        self._open: dict[int, list[tuple[str, str, Frame]]] = {}

    @listen(("own", ""))
    def on_own_answer(self, frame: Frame) -> None:
        """Note the situations of a request."""
        if frame.kind is not Kind.REQUEST:
            return
        request = SentRequest(
            frame, self.scene, obj(frame.params), self.scene.facts.thread_of(frame.params)
        )
        situations = [
            (point, words, frame)
            for point, situation in (*_TABLE[_ANY], *_TABLE.get(frame.method, ()))
            if (words := situation(request)) is not None
        ]
        if situations:
            self._open[frame.seq] = situations

    @listen(("kind", "response"), ("kind", "error"))
    def on_response(self, frame: Frame) -> Iterator[Choice]:
        """Yield the outcome for each situation of the request."""
        request = self.scene.request_of(frame)
        if request is not None:
            for point, situation, _ in self._open.pop(request.seq, ()):
                yield Choice(point, outcome(frame), frame, situation)

    def finish(self) -> Iterator[Choice]:
        """Yield the requests without an answer, if the trace ended quiescent."""
        if str(self.scene.trace.end) != "quiescent":
            return
        for rows in self._open.values():
            for point, situation, frame in rows:
                yield Choice(point, UNANSWERED, frame, situation)
