"""Search with generated documents of inputs and of raw frames, from one seed until a bound.

Playing, confirming and shrinking are those of sessions.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeding
from hypothesis import strategies as st

from harness.play.config import Config
from harness.play.interruption import Interrupted, Interruption
from harness.play.session.servers import SetupFailed
from harness.protocol.spec.book import Book
from harness.protocol.spec.skill_paths import skill_paths
from harness.search.fuzz.case import Kind
from harness.search.fuzz.causes import MAX_OCCASIONS, Causes
from harness.search.fuzz.frames import frame_document
from harness.search.fuzz.params import Request, requests
from harness.search.fuzz.reactions import Reactions
from harness.search.fuzz.sessions.chooser import seeded_chooser
from harness.search.fuzz.sessions.confirm import shrinking_within
from harness.search.fuzz.sessions.play import Played, play
from harness.search.fuzz.sessions.search import (
    OnFound,
    Searcher,
    SessionCampaign,
    open_search_bench,
)
from harness.search.fuzz.sessions.turns import Json
from harness.search.fuzz.smaller_params import Mark
from harness.search.fuzz.values import FOLDER, HUGE, HUGE_TEXT, THREAD, TURN, fill_placeholders

# Many requests per case, since the silence at its end takes as long as a dozen of them.
MAX_REQUESTS = 40
_REPLY_STEP: Json = {"reply": [{"message": {"deltas": ["o", "k"]}}]}
_TURNS = ("turn/start", "turn/steer", "thread/compact/start", "review/start")
# Placeholders in a document, and sample values to validate params against the schemas.
_REFERENCES = {THREAD: "$t.thread.id", TURN: "$u.turn.id", FOLDER: "{cwd}", HUGE: HUGE_TEXT}
_SAMPLE_VALUES = {"$t.thread.id": "thr_0", "$u.turn.id": "turn_0", "{cwd}": "/workspace"}


def input_document(book: Book, requests: Sequence[Request]) -> Json:
    """Return a scenario: a thread with a completed turn, then these requests, with any answer."""
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
    """Return a request's body, marked `deliberate` if its params violate the schema."""
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
    """Return a copy in which texts that begin with `$` are escaped: they are no references."""
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


Attempt = Callable[[Json], None]
# Hypothesis slows down after many examples, so it is restarted with another seed.
_EXAMPLES_PER_SEED = 2000
# A live server is slower than hypothesis expects.
_SUPPRESSED_CHECKS = (
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
)


class _BoundReached(BaseException):
    """Exception for the end of the search; hypothesis would take an `Exception` for a failure."""


def search_documents(
    kind: Kind,
    config: Config,
    seed: int,
    seconds: float,
    interruption: Interruption,
    on_found: OnFound,
    *,
    cases: int | None = None,
    known_causes: Causes | None = None,
    method: str = "",
    may_end_early: bool = False,
) -> SessionCampaign:
    """Play documents of inputs or frames until a bound, and shrink each new cause.

    The same seed gives the same documents in the same order, on any server. `method` is the only
    one that inputs send, "" for all. With `may_end_early` the search ends when the server shows no
    new reactions. Raises `SetupFailed` if the server cannot be used at all.
    """

    def frames(attempt: Attempt) -> None:
        number, by_websocket = 0, config.profile.listening_kind() in ("ws", "ws-unix")
        while True:
            choose = seeded_chooser(seed * 1_000_003 + number)
            attempt(frame_document(choose, by_websocket=by_websocket))
            number += 1

    def inputs(attempt: Attempt) -> None:
        number = seed
        while True:
            _generate(config, number, method, attempt)
            number += 1_000_003

    with open_search_bench(config, f"fuzz-{kind}") as (portal, bench):
        searcher = DocumentSearcher(
            config, portal, bench, interruption, seed, on_found, known_causes
        )
        searcher.reactions = Reactions(kind) if may_end_early else None
        # An exception raised within the block would be wrapped in an exception group.
        try:
            searcher.run_all(frames if kind == "frames" else inputs, seconds, cases)
        except SetupFailed as failed:
            gone = failed
        else:
            return searcher.campaign
    raise gone


class DocumentSearcher(Searcher):
    """A search with documents from a generator, which may send invalid messages."""

    max_occasions = MAX_OCCASIONS
    # Reactions seen so far; None to search until the bound.
    reactions: Reactions | None = None

    def play(self, document: Json, *, fresh: bool = False, bound: float | None = None) -> Played:
        """Play a document without the extra checks of sessions."""
        if fresh:
            self._portal.call(self._bench.servers.retire_all)
        once = partial(play, self._bench, self._config, document, looks=False, bound=bound)
        return self._interruption.wait(self._portal.start_task_soon(once))

    def _mark(self) -> Mark | None:
        return partial(mark_deliberate, self._config.book)

    def run_all(self, source: Callable[[Attempt], None], seconds: float, cases: int | None) -> None:
        """Play the documents of `source` until the time is over, or `cases` were played."""
        campaign, began = self.campaign, time.monotonic()
        self.shrinking, self._end = shrinking_within(seconds), began + seconds
        broken: list[Exception] = []

        def attempt(document: Json) -> None:
            exhausted = self.reactions is not None and self.reactions.are_exhausted
            if exhausted or time.monotonic() >= began + seconds or campaign.cases == cases:
                raise _BoundReached
            try:
                played = self._attempt(document)
                if self.reactions is not None:
                    self.reactions.note(played)
            except Exception as error:
                # Hypothesis would take it for a failing example, and try again.
                broken.append(error)
                raise _BoundReached from error

        try:
            with self._interruption.defer_signals():
                source(attempt)
        except _BoundReached:
            pass
        except Interrupted as signal:
            campaign.interrupted_by = str(signal)
        campaign.seconds = time.monotonic() - began
        if broken:
            raise broken[0]


def _generate(config: Config, number: int, method: str, attempt: Attempt) -> None:
    """Generate some thousand documents of requests, and pass each to `attempt`."""

    def play_drawn(drawn: list[Request]) -> None:
        attempt(input_document(config.book, drawn))

    drawn = st.lists(requests(config.book, method), min_size=MAX_REQUESTS, max_size=MAX_REQUESTS)
    bounded = settings(
        max_examples=_EXAMPLES_PER_SEED,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=_SUPPRESSED_CHECKS,
    )
    seeding(number)(bounded(given(drawn)(play_drawn)))()
