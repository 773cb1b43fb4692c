"""Documents of generated requests, with valid, nearly valid and invalid params."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from harness.protocol.spec.book import Book
from harness.protocol.spec.skill_paths import skill_paths
from harness.search.fuzz.params import Request
from harness.search.fuzz.sessions.turns import Json
from harness.search.fuzz.values import FOLDER, HUGE, HUGE_TEXT, THREAD, TURN, fill_placeholders

# Many requests per case, since the silence at its end takes as long as a dozen of them.
MAX_REQUESTS = 40
_REPLY_STEP: Json = {"reply": [{"message": {"deltas": ["o", "k"]}}]}
_TURNS = ("turn/start", "turn/steer", "thread/compact/start", "review/start")
# Placeholders in a document, and sample values for validation by the book.
_REFERENCES = {THREAD: "$t.thread.id", TURN: "$u.turn.id", FOLDER: "{cwd}", HUGE: HUGE_TEXT}
_SAMPLE_VALUES = {"$t.thread.id": "thr_0", "$u.turn.id": "turn_0", "{cwd}": "/workspace"}


def input_document(book: Book, requests: Sequence[Request]) -> Json:
    """Return a document: a thread with a completed turn, then these requests, with any answer."""
    client: list[Json] = [
        {"start_thread": {"as": "t"}},
        {"start_turn": {"thread": "t", "text": "Say ok.", "as": "u"}},
        {"wait": {"turn": "u"}},
    ]
    for request in requests:
        client.append({"request": _body(book, request)})
        if request.patient and request.method in _TURNS:
            client.append({"wait": {"idle": "t"}})
    calls = 2 + 2 * sum(request.method in _TURNS for request in requests)
    model = {"t": [dict(_REPLY_STEP) for _ in range(calls)]}
    return {"title": "Generated requests", "model": model, "client": client}


def _body(book: Book, request: Request) -> Json:
    params = fill_placeholders(_escape_texts(request.params), _REFERENCES)
    return mark_deliberate(book, {"method": request.method, "params": params, "expect": "any"})


def mark_deliberate(book: Book, body: Json) -> Json:
    """Return a request's body, marked `deliberate` if its params are invalid by the book."""
    method, likely = (
        body["method"],
        _unescape_texts(fill_placeholders(body.get("params"), _SAMPLE_VALUES)),
    )
    paths = skill_paths(method, likely)
    right = book.is_valid_params(method, likely) and all(good for _, good in paths)
    plain_body = {name: value for name, value in body.items() if name != "deliberate"}
    # Invalid messages are intended here, so they are not findings against the harness.
    return plain_body if right else {**plain_body, "deliberate": True}


def _escape_texts(value: Any) -> Any:
    """Return a copy in which no text is taken for a reference to an earlier result."""
    return _with_texts(value, lambda text: f"${text}" if text.startswith("$") else text)


def _unescape_texts(value: Any) -> Any:
    """Reverse `_escape_texts`, once all references are filled."""
    return _with_texts(value, lambda text: text.removeprefix("$"))


def _with_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _with_texts(item, change) for key, item in cast(Json, value).items()}
    if isinstance(value, list):
        return [_with_texts(item, change) for item in cast("list[Any]", value)]
    return value
