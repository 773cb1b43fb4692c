"""Generated requests of every method, with right, nearly right and wrong params, as documents."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from harness.protocol.spec.book import Book
from harness.protocol.spec.skill_paths import skill_paths
from harness.search.fuzz.params import Request
from harness.search.fuzz.sessions.turns import Json
from harness.search.fuzz.values import FOLDER, HUGE, HUGE_TEXT, THREAD, TURN, filled

# Requests of a case: the silence at its end takes as long as a dozen of them.
MAX_REQUESTS = 40
_SPEAKS: Json = {"reply": [{"message": {"deltas": ["o", "k"]}}]}
_TURNS = ("turn/start", "turn/steer", "thread/compact/start", "review/start")
# In a document; and as what the book is asked about.
_REFERENCES = {THREAD: "$t.thread.id", TURN: "$u.turn.id", FOLDER: "{cwd}", HUGE: HUGE_TEXT}
_LIKE = {"$t.thread.id": "thr_0", "$u.turn.id": "turn_0", "{cwd}": "/workspace"}


def input_document(book: Book, requests: Sequence[Request]) -> Json:
    """A document: a thread with a turn that is over, then these requests, with any answer."""
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
    model = {"t": [dict(_SPEAKS) for _ in range(calls)]}
    return {"title": "Generated requests", "model": model, "client": client}


def _body(book: Book, one: Request) -> Json:
    params = filled(_quoted(one.params), _REFERENCES)
    return marked(book, {"method": one.method, "params": params, "expect": "any"})


def marked(book: Book, body: Json) -> Json:
    """The body of a request, `deliberate` where its params are wrong by the book."""
    method, likely = body["method"], _unquoted(filled(body.get("params"), _LIKE))
    paths = skill_paths(method, likely)
    right = book.is_valid_params(method, likely) and all(good for _, good in paths)
    plain_body = {name: value for name, value in body.items() if name != "deliberate"}
    # A message of ours that is wrong by the book is the point, no finding against us.
    return plain_body if right else {**plain_body, "deliberate": True}


def _quoted(value: Any) -> Any:
    """A copy in which no text is a reference to what came back earlier."""
    return _with_texts(value, lambda text: f"${text}" if text.startswith("$") else text)


def _unquoted(value: Any) -> Any:
    """The reverse, where all references are filled."""
    return _with_texts(value, lambda text: text.removeprefix("$"))


def _with_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _with_texts(item, change) for key, item in cast(Json, value).items()}
    if isinstance(value, list):
        return [_with_texts(item, change) for item in cast("list[Any]", value)]
    return value
