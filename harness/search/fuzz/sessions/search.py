"""Search with generated sessions from one seed, on one server; failures are shrunk."""

import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from harness.judge.verdict import Level
from harness.play.bench import Bench, open_bench
from harness.play.config import Config
from harness.play.interruption import Interrupted, Interruption
from harness.play.session.servers import SetupFailed
from harness.protocol.values import obj
from harness.search.fuzz.causes import Causes, place_of
from harness.search.fuzz.sessions.chains import draw_session
from harness.search.fuzz.sessions.chooser import Chooser
from harness.search.fuzz.sessions.confirm import (
    MAX_SHRINK_SECONDS,
    MAX_STEP_SECONDS,
    MIN_SHRINK_SECONDS,
    Small,
    make_small,
    shrinking_within,
)
from harness.search.fuzz.sessions.cuts import split_step
from harness.search.fuzz.sessions.expectations import add_demands
from harness.search.fuzz.sessions.features import blamed_feature, feature_at
from harness.search.fuzz.sessions.guidance import Corpus
from harness.search.fuzz.sessions.habits import Habits
from harness.search.fuzz.sessions.lanes import Lanes, further_benches
from harness.search.fuzz.sessions.novelty import DRAWN_PER_PLAYED, Meeting, choose_novel
from harness.search.fuzz.sessions.play import Played, Problem, play
from harness.search.fuzz.sessions.session import FEATURES, Offers, approvals_under
from harness.search.fuzz.sessions.shrinking import SMALL_CASE_STEPS
from harness.search.fuzz.sessions.turns import Json
from harness.search.fuzz.sessions.unsupported import (
    policy_at,
    proves_missing,
    shown_features,
    unasked_policy,
)
from harness.search.fuzz.smaller_params import Mark
from harness.trace.correlation import Correlation
from harness.trace.frame import Kind
from harness.trace.trace import Trace

# Sessions drawn at once, before the results of any are used.
SESSIONS_PER_ROUND = 24
# The first sessions show what the server does not offer.
SESSIONS_OF_FIRST_ROUND = 4
# A feature that failed this often, and never worked, counts as unsupported.
MAX_FAILED_TRIES = 3
# A request that was rejected this often, and never granted, is not sent again.
MAX_REFUSALS = 12


@dataclass(frozen=True, slots=True)
class FoundFailure:
    """A failure: the document that shows it, its cause, a line of text, its trace.

    `instead_of` is the longer or flaky case of the same defect that this failure replaces.
    `played_document` is the document as it was played, without the added needs and expectations.
    """

    document: Json
    cause: str
    text: str
    trace: Trace = field(repr=False)
    flaky: bool = False
    occasion: str = ""
    instead_of: "FoundFailure | None" = field(default=None, repr=False)
    played_document: Json = field(default_factory=dict[str, Any], repr=False)


@dataclass(slots=True)
class SessionCampaign:
    """The result of a search. `unmet` counts the unfinished scripts by reason.

    `problems` are those of a cluster: what it did not play, and why.
    """

    seed: int
    cases: int = 0
    results: int = 0
    errors: int = 0
    seconds: float = 0.0
    failures: list[FoundFailure] = field(default_factory=list[FoundFailure])
    unsteady: list[str] = field(default_factory=list[str])
    unmet: Counter[str] = field(default_factory=Counter[str])
    lacks: list[str] = field(default_factory=list[str])
    rules: set[str] = field(default_factory=set[str])
    interrupted_by: str = ""
    problems: list[str] = field(default_factory=list[str])

    @property
    def requests(self) -> int:
        """Return the number of requests answered in the search, not counting shrinking."""
        return self.results + self.errors

    @property
    def only_errors(self) -> bool:
        """Return whether most requests, of at least 20, were rejected."""
        return self.requests >= 20 and self.errors > 0.8 * self.requests


OnFound = Callable[[FoundFailure], None]
# A session to play: the chooser with which it was drawn, and its document.
Planned = tuple[Chooser, Json]


def search(
    config: Config,
    seed: int,
    seconds: float,
    interruption: Interruption | None = None,
    on_found: OnFound | None = None,
    *,
    cases: int | None = None,
    known_causes: Causes | None = None,
    worker: str = "fuzz-sessions",
) -> SessionCampaign:
    """Play generated sessions for `seconds`, or `cases` of them; shrink each new cause.

    `known_causes` and the profile's known deviations are ignored. With `cases` the same seed plays
    the same sessions. Raises `SetupFailed` if the server cannot be used at all.
    """
    watch = interruption or Interruption(config.base)
    with (
        open_search_bench(config, worker) as (portal, bench),
        further_benches(portal, config, bench, worker) as lanes,
    ):
        searcher = Searcher(config, portal, bench, watch, seed, on_found, known_causes)
        try:
            searcher.run(lanes, seconds, cases)
        except SetupFailed as failed:
            gone = failed
        else:
            return searcher.campaign
    raise gone


@contextmanager
def open_search_bench(
    config: Config, worker: str, max_step: float = MAX_STEP_SECONDS
) -> Generator[tuple[BlockingPortal, Bench]]:
    """Open a bench whose steps have at most `max_step` seconds, for the length of the block."""
    bounds = config.profile.bounds
    short = bounds.model_copy(update={"step": min(bounds.step, max_step)})
    profile = config.profile.model_copy(update={"bounds": short})
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            open_bench(
                profile,
                config.book,
                base=config.base,
                worker=worker,
                scale=config.scale,
                progress=config.progress,
            )
        ) as bench,
    ):
        yield portal, bench


class Searcher:
    """A search on an open bench."""

    # One, since sessions overlap requests: the last message says little about a server's end.
    max_occasions = 1

    def __init__(
        self,
        config: Config,
        portal: BlockingPortal,
        bench: Bench,
        interruption: Interruption,
        seed: int,
        on_found: OnFound | None = None,
        known_causes: Causes | None = None,
    ) -> None:
        self.campaign = SessionCampaign(seed)
        self._config = config
        self._portal = portal
        self._bench = bench
        self._lanes: Lanes | None = None
        self._interruption = interruption
        self._on_found = on_found
        # A known deviation of one scenario also shows in generated sessions.
        self._causes = Causes() if known_causes is None else known_causes
        for entry in config.entries:
            self._causes.set_aside(entry.rule)
        self._offers = Offers()
        self._failures: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()
        self._works: set[str] = set()
        self._habits = Habits()
        self._met: Counter[Meeting] = Counter()
        self._unsteady: dict[str, str] = {}
        self._poor: dict[str, FoundFailure] = {}
        self._end = math.inf
        self.shrinking = MAX_SHRINK_SECONDS

    def run(self, lanes: Lanes, seconds: float, cases: int | None) -> None:
        """Search until the time is over, or `cases` sessions were played.

        Sessions are drawn in rounds and evaluated in order, so that the result does not depend on
        which of them ended first.
        """
        campaign, self._lanes = self.campaign, lanes
        began = time.monotonic()
        self.shrinking, self._end = shrinking_within(seconds), began + seconds
        corpus = Corpus(campaign.seed, guided=cases is None)
        ahead: list[Planned] = []
        try:
            with self._interruption.defer_signals():
                while time.monotonic() < began + seconds and campaign.cases != cases:
                    some = ahead or self._draw(corpus, campaign.cases, cases)
                    all_of_them = self._portal.start_task_soon(
                        lanes.play_all,
                        [document for _, document in some],
                        began + seconds,
                        self._spoils,
                    )
                    # The first sessions are not drawn ahead: the server's features are unknown.
                    offers_known = campaign.cases >= SESSIONS_PER_ROUND
                    ahead = (
                        self._draw(corpus, campaign.cases + len(some), cases)
                        if offers_known
                        else []
                    )
                    plays = self._interruption.wait(all_of_them)
                    for (chooser, _), played in zip(some, plays, strict=True):
                        if played is not None:
                            self._judge(played)
                            corpus.note_play(played, chooser)
                if cases is None:
                    self._polish()
        except Interrupted as signal:
            campaign.interrupted_by = str(signal)
        campaign.seconds = time.monotonic() - began
        campaign.lacks = sorted(self._offers.lacks)

    def _draw(self, corpus: Corpus, before: int, cases: int | None) -> list[Planned]:
        """Draw many sessions, and return the best to play next."""
        number = min(SESSIONS_PER_ROUND, SESSIONS_OF_FIRST_ROUND + before)
        number = number if cases is None else min(number, cases - before)
        choosers = [corpus.chooser() for _ in range(number * DRAWN_PER_PLAYED)]
        sessions = [draw_session(chooser, self._offers) for chooser in choosers]
        places = choose_novel(sessions, number, self._met)
        return [(choosers[place], sessions[place].document()) for place in places]

    def play(self, document: Json, *, fresh: bool = False, bound: float | None = None) -> Played:
        """Play a document, on the shared process or a fresh one. Raises `Interrupted`.

        `bound` limits each step, in seconds, if timeouts are of no interest.
        """
        if fresh:
            self._portal.call(self._bench.servers.retire_all)

        async def play_once() -> Played:
            return await play(self._bench, self._config, document, bound=bound)

        return self._interruption.wait(self._portal.start_task_soon(play_once))

    @property
    def at_once(self) -> int:
        """Return the number of documents that are played at once."""
        return 1 if self._lanes is None else self._lanes.number

    def play_some(self, documents: list[Json], *, fresh: bool, bound: float) -> list[Played]:
        """Play several documents at once. Raises `Interrupted`."""
        if self._lanes is None:
            return [self.play(document, fresh=fresh, bound=bound) for document in documents]
        # A process on which something went wrong may keep failing.
        once = partial(
            self._lanes.play_all, documents, math.inf, _went_wrong, fresh=fresh, bound=bound
        )
        plays = self._interruption.wait(self._portal.start_task_soon(once))
        return [played for played in plays if played is not None]

    def _shows(self, cause: str, occasion: str, played: Played) -> Problem | None:
        """Return the problem of this cause and occasion in a play, or None.

        In sessions any other new problem counts too: one defect shows in many ways, and in a shrunk
        and hurried script in other ways than before.
        """
        problems = [
            problem
            for problem in self._habits.serious_problems(played)
            if occasion in ("", problem.occasion) or self._is_same_place(occasion, problem)
        ]
        matching = [problem for problem in problems if problem.cause == cause]
        if not matching and self.max_occasions == 1:
            matching = [
                problem
                for problem in problems
                if problem.level is Level.MUST and self._is_new(problem)
            ]
        return matching[0] if matching else None

    def _is_same_place(self, occasion: str, problem: Problem) -> bool:
        """Return whether a session shows a problem at the same place, maybe of another method."""
        place = place_of(occasion)
        return self.max_occasions == 1 and place != "" and place == place_of(problem.occasion)

    def _mark(self) -> Mark | None:
        """Return the function that marks requests whose params are shrunk; None to keep params."""
        return None

    def _is_new(self, problem: Problem) -> bool:
        if self._causes.was_lost(problem.cause) and time.monotonic() > self._end:
            return False
        if self.max_occasions == 1:
            return self._causes.is_new_place(problem.cause, problem.occasion)
        return self._causes.is_new(problem.cause, problem.occasion, self.max_occasions)

    def _attempt(self, document: Json) -> Played:
        """Play a generated document, and follow up its problems."""
        played = self.play(document)
        if self._judge(played):
            self._portal.call(self._bench.servers.retire_all)
        return played

    def _judge(self, played: Played) -> bool:
        """Learn from a play, and follow up its problems; return whether it has any."""
        self.campaign.cases += 1
        self._count(played.run.trace, {row.rule for row in played.outcome.rows})
        self._learn(played)
        problems = self._habits.serious_problems(played)
        for problem in problems:
            if self._is_new(problem):
                occasion = self._causes.follow(problem.cause, problem.occasion)
                self._follow(played.document, problem, occasion)
                if self.max_occasions == 1:
                    # Other problems most likely have the same cause, or recur in another session.
                    return True
        self._improve(played.document, problems)
        return bool(problems)

    def _spoils(self, played: Played) -> bool:
        """Return whether the process of this play should not be used again."""
        new = (problem for problem in played.problems if self._is_new(problem))
        return any(problem.level is not Level.INFO for problem in new)

    def _count(self, trace: Trace, rules: Set[str]) -> None:
        """Count granted and rejected requests; stop planning methods that are never granted."""
        exchanges = Correlation()
        for frame in trace.frames:
            request = exchanges.feed(frame)
            feature = FEATURES.get(request.method, "") if request is not None else ""
            if frame.from_target and frame.kind is Kind.RESPONSE:
                self.campaign.results += 1
                self._works.add(feature)
            elif frame.from_target and frame.kind is Kind.ERROR:
                self.campaign.errors += 1
                self._refusals[feature] += 1
        never = {refused for refused, times in self._refusals.items() if times >= MAX_REFUSALS}
        # Steers and interrupts often come too late if turns are short.
        self._offers.lacks |= never - self._works - {"", "steer", "interrupt"}
        self.campaign.rules |= rules

    def _learn(self, played: Played) -> None:
        """Stop planning features that the server does not offer."""
        self._works |= shown_features(played.run.trace)
        document, run = played.document, played.run
        policy = unasked_policy(document, run)
        feature = approvals_under(policy) if policy else ""
        if proves_missing(document, run):
            feature = blamed_feature(document, run)
        if played.run.unmet is not None:
            self.campaign.unmet[played.run.unmet.message[:100]] += 1
        if feature:
            self._failures[feature] += 1
            if self._failures[feature] >= MAX_FAILED_TRIES and feature not in self._works:
                self._offers.lacks.add(feature)
        number = played.run.unmet.line - 1 if played.run.unmet else len(played.document["client"])
        steps = played.document["client"]
        for index, step in enumerate(steps[:number]):
            if obj(split_step(step)[1]).get("expect") != "any":
                self._works.add(feature_at(steps, index))
                self._works.add(approvals_under(policy_at(steps, index)))

    def _follow(self, document: Json, problem: Problem, occasion: str) -> None:
        """Confirm a problem, shrink its document, and report it.

        `occasion` is the one on which it must show, "" for any.
        """
        small = self._make_small(document, partial(self._shows, problem.cause, occasion))
        if small is None:
            self._causes.lose(problem.cause, problem.occasion)
            self._unsteady.setdefault(problem.cause, problem.text)
            self.campaign.unsteady = list(self._unsteady.values())
            return
        shown_problem = small.problem
        if shown_problem.cause != problem.cause:
            self._causes.follow(shown_problem.cause, shown_problem.occasion)
        failure = self._add_failure(small)
        for cause in (problem.cause, shown_problem.cause):
            self._unsteady.pop(cause, None)
            if self.max_occasions == 1 and _is_poor(failure):
                self._poor[cause] = failure
        self.campaign.unsteady = list(self._unsteady.values())

    def _improve(self, document: Json, problems: list[Problem]) -> None:
        """Shrink again if a failure recurred whose case is flaky or long."""
        earlier = next(
            (self._poor[problem.cause] for problem in problems if problem.cause in self._poor), None
        )
        if earlier is None or time.monotonic() + MIN_SHRINK_SECONDS > self._end:
            return
        causes = {cause for cause, failure in self._poor.items() if failure is earlier}
        self._poor = {
            cause: failure for cause, failure in self._poor.items() if failure is not earlier
        }
        self._keep_better(earlier, document, causes)

    def _polish(self) -> None:
        """Shrink flaky and long cases again when the time is over."""
        for failure in [failure for failure in self.campaign.failures if _is_poor(failure)]:
            if time.monotonic() < self._end + self.shrinking:
                self._keep_better(failure, failure.played_document, {failure.cause})

    def _keep_better(self, earlier: FoundFailure, document: Json, causes: set[str]) -> None:
        """Shrink a document that shows an earlier failure; replace that if the case is better."""

        def shows(played: Played) -> Problem | None:
            serious = self._habits.serious_problems(played)
            return next((problem for problem in serious if problem.cause in causes), None)

        small = self._make_small(document, shows)
        if small is not None and _rank(small.flaky, small.document) < _rank(
            earlier.flaky, earlier.document
        ):
            self.campaign.failures.remove(earlier)
            self._add_failure(small, earlier)

    def _make_small(
        self, document: Json, shows: Callable[[Played], Problem | None]
    ) -> Small | None:
        # A failure at the end of the search has as much time as any other, a later one less.
        seconds_left = max(MIN_SHRINK_SECONDS, self._end + self.shrinking - time.monotonic())
        return make_small(self, document, shows, min(self.shrinking, seconds_left), self._mark())

    def _add_failure(self, small: Small, instead_of: FoundFailure | None = None) -> FoundFailure:
        """Add and report a failure, possibly in place of an earlier one."""
        problem = small.problem
        self._causes.confirm(problem.cause, problem.occasion)
        failure = FoundFailure(
            add_demands(small.document, problem, self._config.book),
            problem.cause,
            problem.text,
            small.result.run.trace,
            small.flaky,
            problem.occasion,
            instead_of,
            small.document,
        )
        self.campaign.failures.append(failure)
        if self._on_found is not None:
            self._on_found(failure)
        return failure


def _is_poor(failure: FoundFailure) -> bool:
    """Return whether a case is flaky, or has many steps."""
    return failure.flaky or len(failure.document["client"]) > SMALL_CASE_STEPS


def _rank(flaky: bool, document: Json) -> tuple[bool, int]:
    """Return a sort key: steady and short cases first."""
    return flaky, len(document["client"])


def _went_wrong(played: Played) -> bool:
    return any(problem.level is not Level.INFO for problem in played.problems)
