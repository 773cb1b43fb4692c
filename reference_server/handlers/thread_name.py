"""`thread/name/set`.

Source: session-protocol "Other thread operations" ("sets or updates the user-facing name"). Not
shown there: whitespace around a name is removed, an empty name deletes the name, and a thread that
is not loaded can be named too.
"""

import unicodedata

from harness.protocol.wire.rpc import Empty
from harness.protocol.wire.thread_operations import (
    ThreadNameSetParams,
    ThreadNameUpdatedNotification,
)
from reference_server.call import Call
from reference_server.handlers.registry import handles
from reference_server.refusal import invalid_params
from reference_server.rollout.records import NameRecord

MAX_NAME_CHARACTERS = 1000
"""Maximum length: a name is sent with each list of threads."""
_DIRECTION_CHARACTERS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the direction of the text after them, in a line of a list for example."""


@handles("thread/name/set")
async def thread_name_set(call: Call, params: ThreadNameSetParams) -> None:
    """Record the name and notify every client."""
    name = _check_name(params.name)
    services = call.services
    async with services.threads.for_writing(params.thread_id) as thread:
        thread.record(NameRecord(at=thread.clock(), name=name))
        thread.name = name
    call.answer(Empty())
    services.everyone.notify(
        ThreadNameUpdatedNotification(thread_id=params.thread_id, thread_name=name)
    )


def _check_name(name: str) -> str | None:
    """Return the name to store, None for an empty one. Raises Refusal for a bad name."""
    name = name.strip()
    if len(name) > MAX_NAME_CHARACTERS:
        raise invalid_params(f"name: has more than {MAX_NAME_CHARACTERS:,} characters")
    if any(
        character in _DIRECTION_CHARACTERS or unicodedata.category(character) == "Cc"
        for character in name
    ):
        raise invalid_params("name: holds a control character, such as a line feed")
    return name or None
