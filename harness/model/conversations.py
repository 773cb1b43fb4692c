"""The conversations that a model service answers: whose a call is, and what is new in it.

They are told apart by the calls alone, since nobody says where one begins.
"""

import itertools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.model.encoder import Encoder
from harness.model.model import Call, ScriptedModel
from harness.model.script import Script
from harness.model.tools import Offered
from harness.model.wire.responses import ResponsesEncoder
from harness.protocol.values import arr, obj, text

Json = dict[str, Any]

# Of a service that begins again and again, so many conversations are kept in mind.
KEPT = 50
_NUMBERED = re.compile(r"^call \d+: ")


class NumberedEncoder(ResponsesEncoder):
    """The Responses API, with answers that are numbered through all conversations.

    The ids of items come from that number: two conversations must not be told the same ones.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def stream(self, call: int, body: Mapping[str, Any]) -> Any:
        """The next answer."""
        return super().stream(next(self._numbers), body)


@dataclass(slots=True)
class Conversation:
    """One conversation: its script (`alias`, "" where there is one only) and how far it is.

    `key` is what the calls name it by, "" where they do not; `input` is what the last call held.
    """

    number: int
    alias: str
    model: ScriptedModel
    key: str = ""
    input: list[Any] = field(default_factory=list[Any])
    texts: list[str] = field(default_factory=list[str])
    tools: list[Offered] | None = None


@dataclass(slots=True)
class Served:
    """One call and what is new in it since the last call of its conversation.

    `number` counts the calls of the service. `added` are entries of the input that were not there
    before; `lost` is how many are there no longer. `offered` are the tools, `tools_changed`
    whether they are others than before. `unfit` and `known_problems` count what the model had
    found wrong before the answer.
    """

    number: int
    conversation: Conversation
    call: Call
    added: list[Any]
    lost: int
    offered: list[Offered]
    tools_changed: bool
    unfit: int = 0
    known_problems: int = 0

    @property
    def problems(self) -> list[str]:
        """Return the problems of the call, without its number."""
        return [_NUMBERED.sub("", one) for one in self.call.problems]


MakeModel = Callable[[Script, Encoder], ScriptedModel]


class Conversations:
    """Finds the conversation of each call, and the next script where a new one begins.

    With one script and without `loop` all calls belong to one conversation, as with a scenario of
    one thread. Else each conversation gets the next script, in their order; with `loop` the first
    one comes after the last. What comes after the last script without it gets an empty one.
    """

    def __init__(self, scripts: Mapping[str, Script], make: MakeModel, *, loop: bool) -> None:
        self.all: list[Conversation] = []
        self._scripts = list(scripts.items())
        self._make = make
        self._loop = loop
        self._encoder = NumberedEncoder()
        self._begun = 0

    @property
    def several(self) -> bool:
        """Return whether there can be more than one."""
        return self._loop or len(self._scripts) > 1

    @property
    def waiting(self) -> list[str]:
        """The aliases of the scripts whose conversation has not begun."""
        return [] if self._loop and self._begun else [a for a, _ in self._scripts[self._begun :]]

    def of(self, body: Json) -> tuple[Conversation, bool]:
        """The conversation of a call, and whether the call begins it."""
        found = self._continued(body)
        if found is not None:
            return found, False
        self._begun += 1
        at = self._begun - 1
        place = at % len(self._scripts) if self._loop else at
        alias, script = self._scripts[place] if place < len(self._scripts) else ("", list[Any]())
        begun = Conversation(self._begun, alias, self._make(script, self._encoder))
        self.all.append(begun)
        return begun, True

    def forget(self) -> list[Conversation]:
        """Take out the oldest conversations beyond what is kept in mind; gives them."""
        gone, self.all = self.all[:-KEPT], self.all[-KEPT:]
        return gone

    def note(self, conversation: Conversation, call: Call, number: int) -> Served:
        """Take down what a call holds."""
        body, entries = call.body, _entries(call.body)
        before = conversation.input
        same = 0
        while same < min(len(before), len(entries)) and before[same] == entries[same]:
            same += 1
        offered = self._encoder.offered(body)
        served = Served(
            number=number,
            conversation=conversation,
            call=call,
            added=[one for one in entries[same:] if one not in before[same:]],
            lost=sum(one not in entries[same:] for one in before[same:]),
            offered=offered,
            tools_changed=offered != conversation.tools,
            unfit=len(conversation.model.unfit),
        )
        conversation.key = text(body.get("prompt_cache_key"))
        conversation.input, conversation.tools = entries, offered
        conversation.texts = self._encoder.user_texts(body)
        return served

    def _continued(self, body: Json) -> Conversation | None:
        """The conversation that a call goes on with, None where it begins one."""
        if not self.several:
            return self.all[0] if self.all else None
        key, texts = text(body.get("prompt_cache_key")), self._encoder.user_texts(body)
        for one in reversed(self.all):
            if key and one.key:
                if key == one.key:
                    return one
            elif texts[: len(one.texts)] == one.texts:
                if _was_answered(body) or not _has_answered(one):
                    return one
            elif _speaks_of(body, one):
                return one
        return None


def _entries(body: Json) -> list[Any]:
    given = body.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else arr(given)


def _was_answered(body: Json) -> bool:
    """Return whether the input holds anything that a model has said."""
    entries = [obj(one) for one in _entries(body)]
    return any(
        one.get("role") == "assistant" or text(one.get("type")).endswith("_call") for one in entries
    )


def _has_answered(one: Conversation) -> bool:
    return any(call.ended is not None and call.ended.completed for call in one.model.calls)


def _speaks_of(body: Json, one: Conversation) -> bool:
    """Return whether the input, though its texts are others, holds an answer of that conversation.

    After a compaction the history is a summary, which the model gave.
    """
    whole = json.dumps(body.get("input"), ensure_ascii=False)
    said = [said.text for call in one.model.calls if call.ended for said in call.ended.texts]
    return any(json.dumps(text_, ensure_ascii=False)[1:-1] in whole for text_ in said if text_)
