"""Inputs as documents: generated requests of every method, with right, nearly right, wrong params.

Here: from generated requests to a case. Not here: what is generated (params), playing.
"""

from collections.abc import Sequence
from typing import Any

from harness.fuzz.live import filled
from harness.fuzz.params import Request
from harness.fuzz.sessions.turns import Json
from harness.fuzz.values import FOLDER, HUGE, HUGE_TEXT, THREAD, TURN
from harness.spec.book import Book
from harness.spec.skill_paths import skill_paths

# Requests of a case: the silence at its end takes as long as a dozen of them.
LONGEST = 40
_SPEAKS: Json = {"reply": [{"message": {"deltas": ["o", "k"]}}]}
_TURNS = ("turn/start", "turn/steer", "thread/compact/start", "review/start")
# In a document; and as what the book is asked about.
_REFERENCES = {THREAD: "$t.thread.id", TURN: "$u.turn.id", FOLDER: "{cwd}", HUGE: HUGE_TEXT}
_LIKE = {THREAD: "thr_0", TURN: "turn_0", FOLDER: "/workspace", HUGE: HUGE_TEXT}


def input_document(book: Book, requests: Sequence[Request]) -> Json:
    """A document: a thread with a turn that is over, then these requests, with any answer."""
    client: list[Json] = [
        {"start_thread": {"as": "t"}},
        {"start_turn": {"thread": "t", "text": "Say ok.", "as": "u"}},
        {"wait": {"turn": "u"}},
    ]
    for one in requests:
        client.append({"request": _body(book, one)})
        if one.patient and one.method in _TURNS:
            client.append({"wait": {"idle": "t"}})
    calls = 2 + 2 * sum(one.method in _TURNS for one in requests)
    model = {"t": [dict(_SPEAKS) for _ in range(calls)]}
    return {"title": "Generated requests", "model": model, "client": client}


def _body(book: Book, one: Request) -> Json:
    likely = filled(one.params, _LIKE)
    paths = skill_paths(one.method, likely)
    right = book.is_valid_params(one.method, likely) and all(good for _, good in paths)
    body: Json = {"method": one.method, "params": filled(_quoted(one.params), _REFERENCES)}
    body["expect"] = "any"
    # A message of ours that is wrong by the book is the point, no finding against us.
    return body if right else {**body, "deliberate": True}


def _quoted(value: Any) -> Any:
    """A copy in which no text is a reference to what came back earlier."""
    if isinstance(value, str):
        return f"${value}" if value.startswith("$") else value
    if isinstance(value, dict):
        return {key: _quoted(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [_quoted(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
    return value
