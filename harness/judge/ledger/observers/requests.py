"""Answers to requests in situations of which the text does not speak."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from harness.judge.base import listen
from harness.judge.ledger.base import Choice, Observer, Scene, observes
from harness.judge.ledger.facts import ThreadFacts
from harness.judge.ledger.words import UNANSWERED, outcome
from harness.protocol.spec.effects import named_methods
from harness.protocol.spec.listed import unlisted
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
# A limit beyond what any list holds, and a name longer than what fits into a list.
_LARGE, _LONG = 10_000, 150


@dataclass(frozen=True, slots=True)
class Asked:
    """A request at the moment it was sent."""

    frame: Frame
    scene: Scene
    params: dict[str, Any]
    thread: ThreadFacts

    @property
    def known(self) -> bool:
        """Return whether it names a thread that the server has told of."""
        return self.thread.known

    @property
    def active(self) -> bool:
        """Return whether that thread has a turn in progress."""
        return bool(self.thread.running)


# The situation in words where the request is in it, else None.
Situation = Callable[[Asked], str | None]
_TABLE: dict[str, list[tuple[str, Situation]]] = defaultdict(list)
_ANY: Final = ""


def _at(point: str, *methods: str) -> Callable[[Situation], Situation]:
    """Register a situation of some methods, or of any."""

    def register(situation: Situation) -> Situation:
        for method in methods or (_ANY,):
            _TABLE[method].append((point, situation))
        return situation

    return register


def _when(point: str, method: str, about: str, holds: Callable[[Asked], bool]) -> None:
    """Register a situation that a condition tells."""
    _at(point, method)(lambda one: about if holds(one) else None)


@_at("rpc.absent-params")
def _no_params(one: Asked) -> str | None:
    return one.frame.method if "params" not in obj(one.frame.json) else None


@_at("rpc.id-forms")
def _string_id(one: Asked) -> str | None:
    return "a string" if isinstance(one.frame.id, str) else None


@_at("rpc.unknown-method")
def _unknown(one: Asked) -> str | None:
    known = one.frame.method in named_methods() or one.frame.method == "initialize"
    return None if known else "a method that nothing names"


@_at("rpc.invalid-params")
def _invalid(one: Asked) -> str | None:
    if one.scene.book.method(one.frame.method) is None:
        return None
    params = obj(one.frame.json).get("params", MISSING)
    if params is MISSING or not isinstance(params, dict):
        return None
    errors = one.scene.book.validate_params(one.frame.method, params)
    if not errors:
        return None
    missing = any(error.expected == "the member to be there" for error in errors)
    return "a member is missing" if missing else "a member has a wrong value"


@_at("rpc.unknown-params")
def _unlisted(one: Asked) -> str | None:
    book, method = one.scene.book, one.frame.method
    reference = book.reference(method, "params")
    if reference is None:
        return None
    found = {str(other.path[-1]) for other in unlisted(book.schemas, reference, one.params)}
    return method if found - _EXTENSIONS else None


# Members that the text does not list and that the harness sends for a purpose of its own.
_EXTENSIONS: Final = {
    "ephemeral",
    "dynamicTools",
    "persistExtendedHistory",
    "experimentalRawEvents",
}


@_at("sandbox-mode.camel", "thread/start")
def _camel(one: Asked) -> str | None:
    return text(one.params.get("sandbox")) if one.params.get("sandbox") in CAMEL else None


@_at("sandbox-policy.external-values", "turn/start")
def _external(one: Asked) -> str | None:
    policy = obj(one.params.get("sandboxPolicy"))
    if policy.get("type") != "externalSandbox":
        return None
    return f"networkAccess {policy.get('networkAccess')}"


@_at("approval-policy.on-failure-flow", "thread/start", "turn/start")
def _on_failure(one: Asked) -> str | None:
    policy = one.params.get("approvalPolicy")
    return f"{one.frame.method} with the policy" if policy == "on-failure" else None


@_at("approval-policy.reject-flow", "thread/start", "turn/start")
def _reject(one: Asked) -> str | None:
    policy = one.params.get("approvalPolicy")
    return f"{one.frame.method} with the policy" if policy == "reject" else None


@_at("thread-start.unknown-values", "thread/start", "turn/start")
def _unheard_policy(one: Asked) -> str | None:
    policy = one.params.get("approvalPolicy")
    return "a policy" if isinstance(policy, str) and policy not in POLICIES else None


@_at("thread-start.unknown-values", "thread/start")
def _unheard_provider(one: Asked) -> str | None:
    provider = one.params.get("modelProvider")
    return "a provider" if isinstance(provider, str) and "nobody" in provider else None


@_at("thread.cwd-relative", "thread/start", "turn/start")
def _relative(one: Asked) -> str | None:
    cwd = one.params.get("cwd")
    return f"relative, {one.frame.method}" if isinstance(cwd, str) and cwd[:1] != "/" else None


_when("storage.archive-loaded", "thread/archive", "an active turn", lambda one: one.active)
_when(
    "storage.archive-loaded",
    "thread/archive",
    "loaded",
    lambda one: bool(one.thread.loaded) and not one.active and bool(one.thread.turns),
)
_when("storage.archive-twice", "thread/archive", "archived", lambda one: one.thread.archived)
_when(
    "storage.archive-twice",
    "thread/unarchive",
    "unarchived",
    lambda one: one.known and not one.thread.archived,
)


@_at("storage.archived-use", *_ARCHIVED_USE)
def _archived(one: Asked) -> str | None:
    return one.frame.method if one.thread.archived else None


@_at("storage.unused-thread", *_UNUSED)
def _unused(one: Asked) -> str | None:
    thread = one.thread
    fit = one.known and not (thread.turns or thread.archived or thread.ephemeral or thread.forked)
    return one.frame.method if fit else None


@_at("thread-resume.loaded", "thread/resume")
def _loaded(one: Asked) -> str | None:
    if not one.thread.loaded or not one.thread.turns or one.thread.ephemeral:
        return None
    return "an active turn" if one.active else "no active turn"


@_at("thread-read.unknown")
def _no_such_thread(one: Asked) -> str | None:
    thread_id = text(one.params.get("threadId"))
    if not thread_id or thread_id in one.scene.facts.threads or one.scene.facts.restarts:
        return None
    row = one.scene.book.method(one.frame.method)
    return None if row is None else one.frame.method


_when("thread-name.empty", "thread/name/set", "", lambda one: one.params.get("name") == "")


@_at("thread-name.words", "thread/name/set")
def _odd_name(one: Asked) -> str | None:
    name = text(one.params.get("name"))
    if not name or not one.known:
        return None
    if not name.strip():
        return "blanks alone"
    if len(name) > _LONG:
        return "long"
    if any(ord(letter) < ord(" ") for letter in name):
        return "control characters"
    return "of a thread that is not loaded" if one.thread.loaded is False else None


@_at("thread-rollback.too-many", "thread/rollback")
def _how_many(one: Asked) -> str | None:
    count = one.params.get("numTurns")
    if not isinstance(count, int) or not one.known:
        return None
    if count < 1:
        return "none" if count == 0 else "less than none"
    return "more than there are" if count > len(one.thread.turns) else None


_when(
    "thread-rollback.loads",
    "thread/rollback",
    "",
    lambda one: one.known and one.thread.loaded is False and not one.thread.archived,
)
_when("thread-rollback.active", "thread/rollback", "", lambda one: one.active)
_when("thread-compact.active", "thread/compact/start", "", lambda one: one.active)
_when(
    "turn-start.loads",
    "turn/start",
    "",
    lambda one: one.known and one.thread.loaded is False and not one.thread.archived,
)
_when(
    "turn-start.empty-input",
    "turn/start",
    "the request",
    lambda one: one.params.get("input") == [] and not one.active,
)


@_at("turn-interrupt.wrong-turn", "turn/interrupt")
def _wrong_turn(one: Asked) -> str | None:
    if not one.known:
        return None
    if not one.active:
        return "no active turn"
    return "another turn is active" if one.params.get("turnId") != one.thread.running else None


_when(
    "turn-interrupt.twice",
    "turn/interrupt",
    "",
    lambda one: one.active and one.thread.stopping == one.thread.running,
)


@_at("thread-list.limit-range", "thread/list")
def _odd_limit(one: Asked) -> str | None:
    limit = one.params.get("limit")
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        return None
    if limit < 1:
        return "0" if limit == 0 else "below 0"
    if limit != int(limit):
        return "with a fraction"
    return "very large" if limit > _LARGE else None


_when(
    "thread-list.source-words",
    "thread/list",
    "an empty list",
    lambda one: one.params.get("sourceKinds") == [],
)


@_at("thread-loaded-list.paging", "thread/loaded/list")
def _paged(one: Asked) -> str | None:
    given = [name for name in ("cursor", "limit") if one.params.get(name) is not None]
    return " and ".join(given) or None


@_at("skills-remote.shapes", "skills/remote/list", "skills/remote/export")
def _remote(one: Asked) -> str | None:
    return one.frame.method


@_at("skills-config-write.unknown", "skills/config/write")
def _no_skill_there(one: Asked) -> str | None:
    path = text(one.params.get("path"))
    return "" if any(part in path for part in ("nowhere", "no-such", "missing")) else None


@_at("item.review-begins", "review/start")
def _review(one: Asked) -> str | None:
    return f"params {', '.join(sorted(one.params))}"


@_at("turn-start.missing-file", "turn/start")
def _missing_image(one: Asked) -> str | None:
    for entry in arr(one.params.get("input")):
        path = text(obj(entry).get("path"))
        if obj(entry).get("type") == "localImage" and "no-such" in path:
            return "the request"
    return None


@observes(*sorted({point for rows in _TABLE.values() for point, _ in rows}))
class Answers(Observer):
    """Answers of a server in the situations of the table."""

    def begin(self) -> None:
        """Nothing was seen yet."""
        self._open: dict[int, list[tuple[str, str, Frame]]] = {}

    @listen(("own", ""))
    def on_own_answer(self, frame: Frame) -> None:
        """Note which situations a request is in."""
        if frame.kind is not Kind.REQUEST:
            return
        one = Asked(frame, self.scene, obj(frame.params), self.scene.facts.named(frame.params))
        found = [
            (point, about, frame)
            for point, situation in (*_TABLE[_ANY], *_TABLE.get(frame.method, ()))
            if (about := situation(one)) is not None
        ]
        if found:
            self._open[frame.seq] = found

    @listen(("kind", "response"), ("kind", "error"))
    def on_response(self, frame: Frame) -> Iterator[Choice]:
        """Tell the answer of each."""
        asked = self.scene.asked(frame)
        if asked is not None:
            for point, about, _ in self._open.pop(asked.seq, ()):
                yield Choice(point, outcome(frame), frame, about)

    def finish(self) -> Iterator[Choice]:
        """Tell which were never answered, where the server was given the time for it."""
        if str(self.scene.trace.end) != "quiescent":
            return
        for rows in self._open.values():
            for point, about, frame in rows:
                yield Choice(point, UNANSWERED, frame, about)
