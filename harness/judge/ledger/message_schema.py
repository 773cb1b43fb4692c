"""The schema of a server's actual messages: their members and the types of their members.

A message is named by its kind: "notification item/started", "request item/tool/call", "result
thread/start", "error"; "event item.completed" of exec, "output mcp list --json" of a command,
"result run" of an SDK. A member is named by its path; `[]` is any element of an array, `*` any
member whose key is data (a file name, an id), and the `type` of an object follows its path:
`params.item<agentMessage>.text`. So does the key of an object that is a word with details, such as
`{"httpConnectionFailed": {...}}`.
"""

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from harness.judge.ledger.words import word
from harness.protocol.escapes import visible
from harness.protocol.values import json_type, obj
from harness.trace.frame import Frame, Kind
from harness.trace.surface.agent_mcp import Run

# Limits for one trace: messages of each kind, their depth, members in all, words of each member.
MAX_MESSAGES, MAX_DEPTH, MAX_PATHS, MAX_WORDS = 200, 9, 4000, 40
MAX_NAME_CHARACTERS = 200
# Members that hold one of a set of words, by the end of their names; others hold text.
_WORD_MEMBER = re.compile(
    r"(type|status|kind|phase|source|scope|mode|policy|access|effort|summary|delivery|decision|"
    r"decisions|info|flags|role|reason|personality|sandbox|method)$",
    re.IGNORECASE,
)
# The commands that print JSON, and the option that asks for it.
_JSON_SUBCOMMANDS, _JSON = ("list", "get"), "--json"
_NAME = re.compile(r"[A-Za-z_$][A-Za-z_$-]*([0-9]{1,3}[A-Za-z_$-]*)?")
# Cached since traces of a run have the same members; bounded since names may be invented.
_cached = lru_cache(maxsize=20_000)


@dataclass(slots=True)
class Member:
    """A member in one trace; `types` and `words` map each one seen to the seq of its first frame.

    `sometimes`: its parent object had the member in some messages only.
    """

    types: dict[str, int] = field(default_factory=dict[str, int])
    words: dict[str, int] = field(default_factory=dict[str, int])
    sometimes: bool = False


Messages = dict[str, dict[str, Member]]


@_cached
def _is_name(name: str) -> bool:
    """Return whether a key looks like the name of a member, not like data such as a path."""
    return _NAME.fullmatch(name) is not None


@_cached
def _holds_words(path: str) -> bool:
    """Return whether the strings at a path, or in the array there, are words of a fixed set."""
    return _WORD_MEMBER.search(path.rpartition(".")[2].replace("[]", "")) is not None


@_cached
def _is_word_itself(tag: str) -> bool:
    return word(tag) == tag


class MessageCollector:
    """A collector of the messages of one trace. Feed each frame once, in order, by `feed` in a
    session, `feed_event` on exec, `feed_output` at a command's end, `feed_result` for an SDK.
    """

    def __init__(self) -> None:
        self._messages: Messages = {}
        self._counts: dict[str, int] = {}
        self._objects: dict[tuple[str, str], tuple[int, dict[str, int]]] = {}
        self._paths = 0

    def feed(self, frame: Frame, request: Frame | None) -> None:
        """Add one frame; `request` is the request that it answers, None if it answers none."""
        if not frame.from_target:
            return
        if frame.kind is Kind.NOTIFICATION:
            self._message(f"notification {frame.method}", "params", frame.params, frame.seq)
        elif frame.kind is Kind.REQUEST:
            self._message(f"request {frame.method}", "params", frame.params, frame.seq)
        elif frame.kind is Kind.ERROR:
            self._message("error", "error", frame.error, frame.seq)
        elif frame.kind is Kind.RESPONSE and request is not None:
            self._message(f"result {request.method}", "result", frame.result, frame.seq)

    def feed_event(self, frame: Frame) -> None:
        """Add a line of `agent exec`."""
        if frame.kind is Kind.EVENT:
            members = dict(obj(frame.json))
            self._message(f"event {word(members.pop('type'))}", "event", members, frame.seq)

    def feed_output(self, run: Run) -> None:
        """Add the output of an ended run of `agent mcp list` or `get`, if it is JSON."""
        if (
            run.end is None
            or _JSON not in run.words.options
            or run.words.subcommand not in _JSON_SUBCOMMANDS
        ):
            return
        try:
            value = json.loads(run.stdout)
        except (ValueError, RecursionError):
            return
        self._message(f"output mcp {run.words.subcommand} {_JSON}", "output", value, run.end.seq)

    def feed_result(self, frame: Frame) -> None:
        """Add the result of a call of an SDK, if the frame has one."""
        result = obj(frame.json).get("result")
        if frame.kind is Kind.EVENT and result is not None:
            self._message("result run", "result", result, frame.seq)

    def _message(self, name: str, part: str, value: Any, seq: int) -> None:
        name = visible(name[:MAX_NAME_CHARACTERS])
        count = self._counts.get(name, 0)
        if count < MAX_MESSAGES:
            self._counts[name] = count + 1
            self._walk(name, part, value, seq, 0)

    def _walk(self, name: str, path: str, value: Any, seq: int, depth: int) -> None:
        member = self._member(name, path)
        if member is None:
            return
        type_name = json_type(value)
        member.types.setdefault(type_name, seq)
        if type_name == "string":
            if _holds_words(path) and len(member.words) < MAX_WORDS:
                member.words.setdefault(word(value), seq)
        elif depth >= MAX_DEPTH:
            return
        elif type_name == "array":
            for element in value:
                self._walk(name, f"{path}[]", element, seq, depth + 1)
        elif type_name == "object":
            self._object(name, path, obj(value), seq, depth)

    def _object(self, name: str, path: str, value: dict[str, Any], seq: int, depth: int) -> None:
        tag = value.get("type")
        if isinstance(tag, str) and _is_word_itself(tag):
            path = f"{path}<{tag}>"
        elif len(value) == 1 and not path.endswith("[]") and _holds_words(path):
            # A word with details: {"httpConnectionFailed": {…}}.
            path = f"{path}<{visible(next(iter(value))[:MAX_NAME_CHARACTERS])}>"
        count, members = self._objects.get((name, path), (0, {}))
        for key in value:
            if _is_name(key):
                members[key] = members.get(key, 0) + 1
        self._objects[name, path] = count + 1, members
        for key in value:
            self._walk(name, f"{path}.{key if key in members else '*'}", value[key], seq, depth + 1)

    def _member(self, name: str, path: str) -> Member | None:
        of_message = self._messages.setdefault(name, {})
        member = of_message.get(path)
        if member is None and self._paths < MAX_PATHS:
            self._paths += 1
            member = of_message[path] = Member()
        return member

    def finish(self) -> Messages:
        """Set `sometimes` of the members, and return the collected messages."""
        for (name, path), (total, members) in self._objects.items():
            for key, count in members.items():
                member = self._messages[name].get(f"{path}.{key}")
                if member is not None and count < total:
                    member.sometimes = True
        return self._messages
