"""Many generated sessions from one seed, on one server, and what goes wrong in them, made small."""

import math
import time
from collections import Counter
from collections.abc import Callable, Generator
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
from harness.search.fuzz.causes import Causes
from harness.search.fuzz.sessions.chains import drawn
from harness.search.fuzz.sessions.chooser import Chooser
from harness.search.fuzz.sessions.cuts import only
from harness.search.fuzz.sessions.demands import demanding
from harness.search.fuzz.sessions.features import blamed, feature_at
from harness.search.fuzz.sessions.following import (
    MIN_SHRINK_SECONDS,
    SHRINKING,
    STEP_BOUND,
    Small,
    made_small,
    shrinking_within,
)
from harness.search.fuzz.sessions.guidance import Corpus
from harness.search.fuzz.sessions.habits import Habits
from harness.search.fuzz.sessions.lacking import policy_at, shown, tells, unasked
from harness.search.fuzz.sessions.lanes import Lanes, further_benches
from harness.search.fuzz.sessions.novelty import DRAWN_FOR_ONE, Meeting, chosen
from harness.search.fuzz.sessions.play import Played, Problem, play
from harness.search.fuzz.sessions.session import FEATURES, Offers, approvals_under
from harness.search.fuzz.sessions.shrinking import SMALL
from harness.search.fuzz.sessions.turns import Json
from harness.search.fuzz.smaller_params import Mark
from harness.trace.correlation import Correlation
from harness.trace.frame import Kind
from harness.trace.trace import Trace

# So many sessions are drawn before what they showed is learnt.
AT_ONCE = 24
# The first ones show what the server does not offer.
AT_FIRST = 4
# So many cases of one kind in vain, and none with success: the server does not offer it.
GIVEN_UP = 3
# What is refused so often, and was never granted, is not asked for again.
REFUSED_ALWAYS = 12


@dataclass(frozen=True, slots=True)
class Found:
    """A failure: the document that shows it, its cause, a line that tells it, its trace.

    `instead_of` is what was found before of the same defect: a longer case, or a flaky one.
    `played` is the document as it was played, without what a server must offer for it.
    """

    document: Json
    cause: str
    text: str
    trace: Trace = field(repr=False)
    flaky: bool = False
    occasion: str = ""
    instead_of: "Found | None" = field(default=None, repr=False)
    played: Json = field(default_factory=dict[str, Any], repr=False)


@dataclass(slots=True)
class SessionCampaign:
    """The result of a search. `unmet` counts the scripts that did not end, by reason."""

    seed: int
    cases: int = 0
    results: int = 0
    errors: int = 0
    seconds: float = 0.0
    found: list[Found] = field(default_factory=list[Found])
    unsteady: list[str] = field(default_factory=list[str])
    unmet: Counter[str] = field(default_factory=Counter[str])
    lacks: list[str] = field(default_factory=list[str])
    rules: set[str] = field(default_factory=set[str])
    interrupted: str = ""

    @property
    def requests(self) -> int:
        """Return the number of requests answered in the search, without shrinking."""
        return self.results + self.errors

    @property
    def only_errors(self) -> bool:
        """Return whether most requests reached nothing but a refusal."""
        return self.requests >= 20 and self.errors > 0.8 * self.requests


OnFound = Callable[[Found], None]
# A session to play: the choices that it was drawn by, and its document.
Planned = tuple[Chooser, Json]


def search(
    config: Config,
    seed: int,
    seconds: float,
    interruption: Interruption | None = None,
    on_found: OnFound | None = None,
    *,
    cases: int | None = None,
    known: Causes | None = None,
    worker: str = "fuzz-sessions",
) -> SessionCampaign:
    """Play generated sessions for so long, or so many; each new cause is told and made small.

    `known` are causes that are not looked for, nor are the rules that the profile says this server
    breaks, in whichever scenario. With `cases` the same seed plays the same sessions.
    Raises `SetupFailed` where the server cannot be used at all.
    """
    watch = interruption or Interruption(config.base)
    with (
        opened(config, worker) as (portal, bench),
        further_benches(portal, config, bench, worker) as lanes,
    ):
        searcher = Searcher(config, portal, bench, watch, seed, on_found, known)
        try:
            searcher.run(lanes, seconds, cases)
        except SetupFailed as failed:
            gone = failed
        else:
            return searcher.campaign
    raise gone


@contextmanager
def opened(config: Config, worker: str) -> Generator[tuple[BlockingPortal, Bench]]:
    """A bench with short steps, for as long as the block runs."""
    bounds = config.profile.bounds
    short = bounds.model_copy(update={"step": min(bounds.step, STEP_BOUND)})
    profile = config.profile.model_copy(update={"bounds": short})
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            open_bench(profile, config.book, base=config.base, worker=worker, scale=config.scale)
        ) as bench,
    ):
        yield portal, bench


class Searcher:
    """One search on an open bench."""

    # Sessions do several things at once: what was sent last says little of why a server ended.
    most_occasions = 1

    def __init__(
        self,
        config: Config,
        portal: BlockingPortal,
        bench: Bench,
        interruption: Interruption,
        seed: int,
        on_found: OnFound | None = None,
        known: Causes | None = None,
    ) -> None:
        self.campaign = SessionCampaign(seed)
        self._config = config
        self._portal = portal
        self._bench = bench
        self._lanes: Lanes | None = None
        self._interruption = interruption
        self._on_found = on_found
        # Generated sessions come to what the profile knows of a bundled scenario in other ways.
        self._causes = Causes() if known is None else known
        for entry in config.entries:
            self._causes.set_aside(entry.rule)
        self._offers = Offers()
        self._failures: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()
        self._works: set[str] = set()
        self._habits = Habits()
        self._met: Counter[Meeting] = Counter()
        self._unsteady: dict[str, str] = {}
        self._poor: dict[str, Found] = {}
        self._end = math.inf
        self.shrinking = SHRINKING

    def run(self, lanes: Lanes, seconds: float, cases: int | None) -> None:
        """Search until the time is over, or so many sessions were played.

        Sessions are drawn some at a time, and what is learnt of them is learnt in their order, so
        that it does not depend on which of them was over first.
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
                    # While the first ones are played it is still open what the server offers.
                    offers_known = campaign.cases >= AT_ONCE
                    ahead = (
                        self._draw(corpus, campaign.cases + len(some), cases)
                        if offers_known
                        else []
                    )
                    plays = self._interruption.wait(all_of_them)
                    for (chooser, _), played in zip(some, plays, strict=True):
                        if played is not None:
                            self._judge(played)
                            corpus.reached(played, chooser)
                if cases is None:
                    self._polish()
        except Interrupted as signal:
            campaign.interrupted = str(signal)
        campaign.seconds = time.monotonic() - began
        campaign.lacks = sorted(self._offers.lacks)

    def _draw(self, corpus: Corpus, before: int, cases: int | None) -> list[Planned]:
        """The sessions to play after so many, the best of many that are drawn."""
        number = min(AT_ONCE, AT_FIRST + before)
        number = number if cases is None else min(number, cases - before)
        choosers = [corpus.chooser() for _ in range(number * DRAWN_FOR_ONE)]
        sessions = [drawn(chooser, self._offers) for chooser in choosers]
        places = chosen(sessions, number, self._met)
        return [(choosers[place], sessions[place].document()) for place in places]

    def play(self, document: Json, *, fresh: bool = False, bound: float | None = None) -> Played:
        """Play a document, on the shared process or on one of its own. Raises `Interrupted`.

        `bound` is that of each step, in seconds, where a script that cannot go on tells nothing.
        """
        if fresh:
            self._portal.call(self._bench.servers.retire_all)

        async def played() -> Played:
            return await play(self._bench, self._config, document, bound=bound)

        return self._interruption.wait(self._portal.start_task_soon(played))

    @property
    def at_once(self) -> int:
        """Return the number of documents played side by side."""
        return 1 if self._lanes is None else self._lanes.number

    def play_some(self, documents: list[Json], *, fresh: bool, bound: float) -> list[Played]:
        """Play some documents side by side. Raises `Interrupted`."""
        if self._lanes is None:
            return [self.play(document, fresh=fresh, bound=bound) for document in documents]
        # A process on which something went wrong may go on to do so, whatever it is asked.
        once = partial(
            self._lanes.play_all, documents, math.inf, _went_wrong, fresh=fresh, bound=bound
        )
        plays = self._interruption.wait(self._portal.start_task_soon(once))
        return [played for played in plays if played is not None]

    def _shows(self, cause: str, occasion: str, played: Played) -> Problem | None:
        """The problem of this cause in a play, on that occasion; None for none.

        Else, in sessions, any other that is news: one defect shows in many ways, in a script that
        is cut and hurried in others than before.
        """
        problems = [
            problem
            for problem in self._habits.serious(played)
            if occasion in ("", problem.occasion)
        ]
        matching = [problem for problem in problems if problem.cause == cause]
        if not matching and self.most_occasions == 1:
            matching = [
                problem
                for problem in problems
                if problem.level is Level.MUST and self._is_news(problem)
            ]
        return matching[0] if matching else None

    def _mark(self) -> Mark | None:
        """Return the mark of a request whose params are made smaller; None if there is none."""
        return None

    def _is_news(self, problem: Problem) -> bool:
        if self._causes.was_lost(problem.cause) and time.monotonic() > self._end:
            return False
        return self._causes.is_news(problem.cause, problem.occasion, self.most_occasions)

    def _attempt(self, document: Json) -> Played:
        """Play a generated document; what goes wrong is followed up."""
        played = self.play(document)
        if self._judge(played):
            self._portal.call(self._bench.servers.retire_all)
        return played

    def _judge(self, played: Played) -> bool:
        """Learn from a play, and follow up what goes wrong in it, if anything."""
        self.campaign.cases += 1
        self._count(played)
        self._learn(played)
        problems = self._habits.serious(played)
        for problem in problems:
            if self._is_news(problem):
                occasion = self._causes.follow(problem.cause, problem.occasion)
                self._follow(played.document, problem, occasion)
                if self.most_occasions == 1:
                    # What else goes wrong here is most likely the same defect; if not, it comes up
                    # in another session.
                    return True
        self._improve(played.document, problems)
        return bool(problems)

    def _spoils(self, played: Played) -> bool:
        """Return whether nothing more should be played on the process of this play."""
        new = (problem for problem in played.problems if self._is_news(problem))
        return any(problem.level is not Level.INFO for problem in new)

    def _count(self, played: Played) -> None:
        """Count the requests that were granted, and note methods that never were."""
        exchanges = Correlation()
        for frame in played.run.trace.frames:
            request = exchanges.feed(frame)
            feature = FEATURES.get(request.method, "") if request is not None else ""
            if frame.from_target and frame.kind is Kind.RESPONSE:
                self.campaign.results += 1
                self._works.add(feature)
            elif frame.from_target and frame.kind is Kind.ERROR:
                self.campaign.errors += 1
                self._refusals[feature] += 1
        never = {refused for refused, times in self._refusals.items() if times >= REFUSED_ALWAYS}
        # Steers and interrupts come too late, again and again, where turns are short.
        self._offers.lacks |= never - self._works - {"", "steer", "interrupt"}
        self.campaign.rules |= {row.rule for row in played.outcome.rows}

    def _learn(self, played: Played) -> None:
        """Stop planning what the server does not offer."""
        self._works |= shown(played.run.trace)
        document, run = played.document, played.run
        policy = unasked(document, run)
        feature = approvals_under(policy) if policy else ""
        if tells(document, run):
            feature = blamed(document, run)
        if played.run.unmet is not None:
            self.campaign.unmet[played.run.unmet.message[:100]] += 1
        if feature:
            self._failures[feature] += 1
            if self._failures[feature] >= GIVEN_UP and feature not in self._works:
                self._offers.lacks.add(feature)
        number = played.run.unmet.line - 1 if played.run.unmet else len(played.document["client"])
        steps = played.document["client"]
        for index, step in enumerate(steps[:number]):
            if obj(only(step)[1]).get("expect") != "any":
                self._works.add(feature_at(steps, index))
                self._works.add(approvals_under(policy_at(steps, index)))

    def _follow(self, document: Json, problem: Problem, occasion: str) -> None:
        """Confirm a problem, make its document small, tell it.

        `occasion` is the one on which it must show, "" for any.
        """
        small = self._small(document, partial(self._shows, problem.cause, occasion))
        if small is None:
            self._causes.lose(problem.cause, problem.occasion)
            self._unsteady.setdefault(problem.cause, problem.text)
            self.campaign.unsteady = list(self._unsteady.values())
            return
        shown_problem = small.problem
        if shown_problem.cause != problem.cause:
            self._causes.follow(shown_problem.cause, shown_problem.occasion)
        failure = self._tell(small)
        for cause in (problem.cause, shown_problem.cause):
            self._unsteady.pop(cause, None)
            if self.most_occasions == 1 and _is_poor(failure):
                self._poor[cause] = failure
        self.campaign.unsteady = list(self._unsteady.values())

    def _improve(self, document: Json, problems: list[Problem]) -> None:
        """Follow up once more what was found flaky, or as a long case, now that it came again."""
        earlier = next(
            (self._poor[problem.cause] for problem in problems if problem.cause in self._poor), None
        )
        if earlier is None or time.monotonic() + MIN_SHRINK_SECONDS > self._end:
            return
        causes = {cause for cause, failure in self._poor.items() if failure is earlier}
        self._poor = {
            cause: failure for cause, failure in self._poor.items() if failure is not earlier
        }
        self._better(earlier, document, causes)

    def _polish(self) -> None:
        """Follow up once more what is flaky, or a long case, when the time is over."""
        for failure in [failure for failure in self.campaign.found if _is_poor(failure)]:
            if time.monotonic() < self._end + self.shrinking:
                self._better(failure, failure.played, {failure.cause})

    def _better(self, earlier: Found, document: Json, causes: set[str]) -> None:
        """Make a document small that shows what was found before; the better case is kept."""

        def shows(played: Played) -> Problem | None:
            serious = self._habits.serious(played)
            return next((problem for problem in serious if problem.cause in causes), None)

        small = self._small(document, shows)
        if small is not None and _rank(small.flaky, small.document) < _rank(
            earlier.flaky, earlier.document
        ):
            self.campaign.found.remove(earlier)
            self._tell(small, earlier)

    def _small(self, document: Json, shows: Callable[[Played], Problem | None]) -> Small | None:
        # What is found at the very end has as much time as any other; what is found later, less.
        seconds_left = max(MIN_SHRINK_SECONDS, self._end + self.shrinking - time.monotonic())
        return made_small(self, document, shows, min(self.shrinking, seconds_left), self._mark())

    def _tell(self, small: Small, instead_of: Found | None = None) -> Found:
        """Tell a failure, in the place of another one if so."""
        problem = small.problem
        self._causes.tell(problem.cause, problem.occasion)
        failure = Found(
            demanding(small.document, problem, self._config.book),
            problem.cause,
            problem.text,
            small.played.run.trace,
            small.flaky,
            problem.occasion,
            instead_of,
            small.document,
        )
        self.campaign.found.append(failure)
        if self._on_found is not None:
            self._on_found(failure)
        return failure


def _is_poor(found: Found) -> bool:
    """Return whether a case does not go wrong each time, or has many steps."""
    return found.flaky or len(found.document["client"]) > SMALL


def _rank(flaky: bool, document: Json) -> tuple[bool, int]:
    """The less the better: a case that goes wrong each time, with few steps."""
    return flaky, len(document["client"])


def _went_wrong(played: Played) -> bool:
    return any(problem.level is not Level.INFO for problem in played.problems)
