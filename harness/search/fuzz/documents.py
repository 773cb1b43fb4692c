"""Search with documents of inputs and of raw frames, generated from one seed until a bound.

Playing, confirming and shrinking are those of sessions.
"""

import time
from collections.abc import Callable
from functools import partial

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeding
from hypothesis import strategies as st

from harness.play.config import Config
from harness.play.interruption import Interrupted, Interruption
from harness.play.session.servers import SetupFailed
from harness.search.fuzz.case import Kind
from harness.search.fuzz.causes import MAX_OCCASIONS, Causes
from harness.search.fuzz.frames import frame_document
from harness.search.fuzz.inputs import MAX_REQUESTS, input_document, mark_deliberate
from harness.search.fuzz.params import Request, requests
from harness.search.fuzz.sessions.chooser import seeded_chooser
from harness.search.fuzz.sessions.following import shrinking_within
from harness.search.fuzz.sessions.play import Played, play
from harness.search.fuzz.sessions.search import (
    OnFound,
    Searcher,
    SessionCampaign,
    open_search_bench,
)
from harness.search.fuzz.sessions.turns import Json
from harness.search.fuzz.smaller_params import Mark

Attempt = Callable[[Json], None]
# Hypothesis slows down after many examples; then it begins anew with another seed.
_EXAMPLES_PER_SEED = 2000
# A live server is slower than hypothesis expects.
_SUPPRESSED_CHECKS = (
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
)


class _BoundReached(BaseException):
    """The bound is reached. Not an `Exception`, which hypothesis would take for a failure."""


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
) -> SessionCampaign:
    """Play documents of inputs or frames until a bound, and shrink each new cause.

    The same seed gives the same documents in the same order, on any server. `method` is the only
    one that inputs send, "" for all. Raises `SetupFailed` if the server cannot be used at all.
    """

    def frames(attempt: Attempt) -> None:
        number, by_websocket = 0, config.profile.listening_kind() in ("ws", "ws-unix")
        while True:
            choose = seeded_chooser(seed * 1_000_003 + number)
            attempt(frame_document(choose, text_only=by_websocket))
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
        # Raised within the block, it would come out as an exception group.
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

    def play(self, document: Json, *, fresh: bool = False, bound: float | None = None) -> Played:
        """Play like sessions, without the extra checks."""
        if fresh:
            self._portal.call(self._bench.servers.retire_all)
        once = partial(play, self._bench, self._config, document, looks=False, bound=bound)
        return self._interruption.wait(self._portal.start_task_soon(once))

    def _mark(self) -> Mark | None:
        return partial(mark_deliberate, self._config.book)

    def run_all(self, source: Callable[[Attempt], None], seconds: float, cases: int | None) -> None:
        """Play the documents of the source until the time is over, or `cases` were played."""
        campaign, began = self.campaign, time.monotonic()
        self.shrinking, self._end = shrinking_within(seconds), began + seconds
        broken: list[Exception] = []

        def attempt(document: Json) -> None:
            if time.monotonic() >= began + seconds or campaign.cases == cases:
                raise _BoundReached
            try:
                self._attempt(document)
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
    """Attempt some thousand documents of generated requests."""

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
