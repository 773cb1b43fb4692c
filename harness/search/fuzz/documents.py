"""Documents of inputs and of raw frames, one after the other from one seed, until a bound.

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
from harness.search.fuzz.inputs import MAX_REQUESTS, input_document, marked
from harness.search.fuzz.params import Request, requests
from harness.search.fuzz.sessions.chooser import seeded
from harness.search.fuzz.sessions.following import shrinking_within
from harness.search.fuzz.sessions.play import Played, play
from harness.search.fuzz.sessions.search import OnFound, Searcher, SessionCampaign, opened
from harness.search.fuzz.sessions.turns import Json
from harness.search.fuzz.smaller_params import Mark

Attempt = Callable[[Json], None]
# Hypothesis slows down when it has generated very many; then it begins anew with another seed.
_AT_ONCE = 2000
# A live server is slow beside what hypothesis expects, and its answers are no part of the search.
_UNCHECKED = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)


class _Over(BaseException):
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
    known: Causes | None = None,
    method: str = "",
) -> SessionCampaign:
    """Play documents of inputs or frames for so long, or so many; each new cause is made small.

    The same seed gives the same documents in the same order, on any server. `method` is the only
    one that inputs send, "" for all. Raises `SetupFailed` where the server cannot be used at all.
    """

    def frames(attempt: Attempt) -> None:
        number, by_websocket = 0, config.profile.listening_kind() in ("ws", "ws-unix")
        while True:
            choose = seeded(seed * 1_000_003 + number)
            attempt(frame_document(choose, text_only=by_websocket))
            number += 1

    def inputs(attempt: Attempt) -> None:
        number = seed
        while True:
            _generate(config, number, method, attempt)
            number += 1_000_003

    with opened(config, f"fuzz-{kind}") as (portal, bench):
        searcher = DocumentSearcher(config, portal, bench, interruption, seed, on_found, known)
        # Raised within the block, it would come out as a group of errors.
        try:
            searcher.run_all(frames if kind == "frames" else inputs, seconds, cases)
        except SetupFailed as failed:
            gone = failed
        else:
            return searcher.campaign
    raise gone


class DocumentSearcher(Searcher):
    """One search of documents that come from elsewhere, and may send what is wrong."""

    most_occasions = MAX_OCCASIONS

    def play(self, document: Json, *, fresh: bool = False, bound: float | None = None) -> Played:
        """As of sessions, but nothing is looked at that no rule judges."""
        if fresh:
            self._portal.call(self._bench.servers.retire_all)
        once = partial(play, self._bench, self._config, document, looks=False, bound=bound)
        return self._interruption.wait(self._portal.start_task_soon(once))

    def _mark(self) -> Mark | None:
        return partial(marked, self._config.book)

    def run_all(self, source: Callable[[Attempt], None], seconds: float, cases: int | None) -> None:
        """Play what the source gives until the time is over, or so many were played."""
        campaign, began = self.campaign, time.monotonic()
        self.shrinking, self._end = shrinking_within(seconds), began + seconds
        broken: list[Exception] = []

        def attempt(document: Json) -> None:
            if time.monotonic() >= began + seconds or campaign.cases == cases:
                raise _Over
            try:
                self._attempt(document)
            except Exception as error:
                # Hypothesis would take it for a finding of its own, and try again.
                broken.append(error)
                raise _Over from error

        try:
            with self._interruption.defer_signals():
                source(attempt)
        except _Over:
            pass
        except Interrupted as signal:
            campaign.interrupted = str(signal)
        campaign.seconds = time.monotonic() - began
        if broken:
            raise broken[0]


def _generate(config: Config, number: int, method: str, attempt: Attempt) -> None:
    """Documents of generated requests, some thousand of them."""

    def one(drawn: list[Request]) -> None:
        attempt(input_document(config.book, drawn))

    drawn = st.lists(requests(config.book, method), min_size=MAX_REQUESTS, max_size=MAX_REQUESTS)
    bounded = settings(
        max_examples=_AT_ONCE,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=_UNCHECKED,
    )
    seeding(number)(bounded(given(drawn)(one)))()
