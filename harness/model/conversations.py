"""Conversations that a model service answers: the owner of each call, and its new input.

Only the calls themselves show where a conversation begins.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.model.model import Call, ScriptedModel
from harness.model.script import Script
from harness.model.tools import OfferedTool
from harness.model.wire import asking
from harness.protocol.values import arr, obj, text

Json = dict[str, Any]

# Older conversations are forgotten, since a service that loops has no end.
MAX_CONVERSATIONS_KEPT = 50
_NUMBERED = re.compile(r"^call \d+: ")


@dataclass(slots=True)
class Conversation:
    """One conversation: its script (`alias`, "" if there is only one) and its progress.

    `key` is the cache key of its calls, "" for none; `input`, the user's `texts` and `tools` are
    those of its last call.
    """

    number: int
    alias: str
    model: ScriptedModel
    key: str = ""
    input: list[Any] = field(default_factory=list[Any])
    texts: list[str] = field(default_factory=list[str])
    tools: list[OfferedTool] | None = None


@dataclass(slots=True)
class ServedCall:
    """One call and its changes since the last call of its conversation.

    `number` counts the calls of the service. `new_entries` are new entries of the input;
    `lost_entries` counts removed ones. `tools` are the offered tools, `tools_changed` whether they
    differ from the last call. `missing_tools_before` and `problems_before` count the model's
    findings before the answer.
    """

    number: int
    conversation: Conversation
    call: Call
    new_entries: list[Any]
    lost_entries: int
    tools: list[OfferedTool]
    tools_changed: bool
    missing_tools_before: int = 0
    problems_before: int = 0

    @property
    def problems(self) -> list[str]:
        """Return the problems of the call, without the prefix `call N: `."""
        return [_NUMBERED.sub("", problem) for problem in self.call.problems]


MakeModel = Callable[[Script, Iterator[int]], ScriptedModel]


class Conversations:
    """Conversations of a service: finds that of each call, or begins one with the next script.

    With one script and without `loop` all calls belong to one conversation, as with a scenario of
    one thread. Else each conversation gets the next script, in order; with `loop` the first one
    follows the last, and without it later conversations get an empty script.
    """

    def __init__(self, scripts: Mapping[str, Script], make: MakeModel, *, loop: bool) -> None:
        self.all: list[Conversation] = []
        self._scripts = list(scripts.items())
        self._make = make
        self._loop = loop
        # Ids of items contain these numbers, so no two conversations get the same ids.
        self._numbers = itertools.count(1)
        self._begun_count = 0

    @property
    def has_several(self) -> bool:
        """Return whether there can be more than one conversation."""
        return self._loop or len(self._scripts) > 1

    @property
    def waiting_aliases(self) -> list[str]:
        """Return the aliases of the scripts whose conversation has not begun."""
        return (
            []
            if self._loop and self._begun_count
            else [a for a, _ in self._scripts[self._begun_count :]]
        )

    def conversation_of(self, body: Json) -> tuple[Conversation, bool]:
        """Return the conversation of a call, and whether the call began it."""
        continued = self._find_continued(body)
        if continued is not None:
            return continued, False
        self._begun_count += 1
        index = self._begun_count - 1
        script_index = index % len(self._scripts) if self._loop else index
        alias, script = (
            self._scripts[script_index] if script_index < len(self._scripts) else ("", list[Any]())
        )
        conversation = Conversation(self._begun_count, alias, self._make(script, self._numbers))
        self.all.append(conversation)
        return conversation, True

    def forget(self) -> list[Conversation]:
        """Remove and return the oldest conversations beyond the limit."""
        old, self.all = self.all[:-MAX_CONVERSATIONS_KEPT], self.all[-MAX_CONVERSATIONS_KEPT:]
        return old

    def record_call(self, conversation: Conversation, call: Call, number: int) -> ServedCall:
        """Update a conversation by its new call, and return the call with its changes."""
        body, entries = call.body, _entries(call.body)
        old_entries = conversation.input
        same_count = 0
        while (
            same_count < min(len(old_entries), len(entries))
            and old_entries[same_count] == entries[same_count]
        ):
            same_count += 1
        offered = asking.offered_tools(body)
        served = ServedCall(
            number=number,
            conversation=conversation,
            call=call,
            new_entries=[
                entry for entry in entries[same_count:] if entry not in old_entries[same_count:]
            ],
            lost_entries=sum(
                entry not in entries[same_count:] for entry in old_entries[same_count:]
            ),
            tools=offered,
            tools_changed=offered != conversation.tools,
            missing_tools_before=len(conversation.model.missing_tools),
        )
        conversation.key = text(body.get("prompt_cache_key"))
        conversation.input, conversation.tools = entries, offered
        conversation.texts = asking.user_texts(body)
        return served

    def _find_continued(self, body: Json) -> Conversation | None:
        """Return the conversation that a call continues, None if it begins one."""
        if not self.has_several:
            return self.all[0] if self.all else None
        key, texts = text(body.get("prompt_cache_key")), asking.user_texts(body)
        for conversation in reversed(self.all):
            if key and conversation.key:
                if key == conversation.key:
                    return conversation
            elif texts[: len(conversation.texts)] == conversation.texts:
                if _holds_answer(body) or not _has_answered(conversation):
                    return conversation
            elif _holds_answer_of(body, conversation):
                return conversation
        return None


def _entries(body: Json) -> list[Any]:
    entries = body.get("input")
    return [{"role": "user", "content": entries}] if isinstance(entries, str) else arr(entries)


def _holds_answer(body: Json) -> bool:
    """Return whether the input contains an answer of a model."""
    entries = [obj(entry) for entry in _entries(body)]
    return any(
        entry.get("role") == "assistant" or text(entry.get("type")).endswith("_call")
        for entry in entries
    )


def _has_answered(conversation: Conversation) -> bool:
    return any(call.end is not None and call.end.is_complete for call in conversation.model.calls)


def _holds_answer_of(body: Json, conversation: Conversation) -> bool:
    """Return whether the input contains an answer of that conversation, though its texts differ.

    After a compaction the history is a summary that the model wrote.
    """
    input_json = json.dumps(body.get("input"), ensure_ascii=False)
    answers = [
        message.text for call in conversation.model.calls if call.end for message in call.end.texts
    ]
    return any(
        json.dumps(text_, ensure_ascii=False)[1:-1] in input_json for text_ in answers if text_
    )
