"""Search with covering sequences: play the plan, count what it covers, follow up findings."""

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import anyio

from harness.judge.verdict import Level
from harness.play.config import Config
from harness.play.interruption import Interrupted, Interruption
from harness.play.run import Run
from harness.play.session.capability_prober import CapabilityProber
from harness.play.session.servers import SetupFailed
from harness.scenario.loader import Loaded
from harness.scenario.player import FailureKind, StepFailure
from harness.search.cluster.connection import Cluster
from harness.search.fuzz.causes import Causes, place_of
from harness.search.fuzz.sessions.confirm import MAX_STEP_SECONDS, Small, make_small
from harness.search.fuzz.sessions.habits import MIN_TIMES_KEPT, Habits
from harness.search.fuzz.sessions.lanes import Lanes, WaitingJobs, further_benches
from harness.search.fuzz.sessions.play import Played, Problem, load_document
from harness.search.fuzz.sessions.search import (
    OnFound,
    Searcher,
    SessionCampaign,
    open_search_bench,
)
from harness.search.fuzz.sessions.turns import Json
from harness.search.sequences.alphabet import OPERATIONS
from harness.search.sequences.coverage import IMPOSSIBLE, STOPPED, Coverage
from harness.search.sequences.goals import PLANS, Plan, all_goals
from harness.search.sequences.planning import PlannedSequence
from harness.search.sequences.processes import (
    MAX_FURTHER_PROCESSES,
    ClusterPlayer,
    PlayerProcess,
    further_processes,
)
from harness.search.sequences.result import ConversationResult, result_of

# Servers at once in each process: sequences wait for retries, restarts and silences.
LANES = 4
# A process more is not worth its start for fewer conversations.
MIN_CONVERSATIONS_FOR_PROCESSES = 24
# An operation that stopped this often, and never came to its end, is not planned any more.
MAX_STOPS = 3
# Plans: conversations that stopped leave goals, which are planned again.
MAX_PLANS = 3
# Takes a line of text on how far the plan is played.
OnProgress = Callable[[str], None]
# A SHOULD rule counts if the server keeps it this many times as often as it breaks it.
KEPT_PER_BROKEN = 3
STOPPED_CAUSE = "fuzz.sequence-stopped"
SHRINK_SECONDS = 20.0
# Of those whose turn comes when the time of the search is long over.
MIN_SHRINK_SECONDS = 0.1


@dataclass(slots=True)
class SequenceCampaign(SessionCampaign):
    """The result of a search with sequences.

    `broken_should` are lines on the SHOULD rules that the server breaks as a rule: not failures.
    """

    coverage: Coverage = field(default_factory=Coverage)
    broken_should: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A problem that a sequence of a plan showed."""

    plan: str
    sequence: PlannedSequence
    problem: Problem


@dataclass(frozen=True, slots=True)
class _Lead:
    """A problem to follow up after the plays, and the first sequence of each plan that showed it.

    What an earlier conversation left in the process shows in a play alone only if its own sequence
    does the same before: a pair across two threads does, a single operation does not.
    """

    problem: Problem
    occasion: str
    in_plans: dict[str, _Sighting]


def search_sequences(
    config: Config,
    ways: int,
    seconds: float = math.inf,
    interruption: Interruption | None = None,
    on_found: OnFound | None = None,
    *,
    cases: int | None = None,
    known_causes: Causes | None = None,
    on_progress: OnProgress | None = None,
    worker: str = "fuzz-sequences",
    cluster: Cluster | None = None,
) -> SequenceCampaign:
    """Play sequences that cover every tuple of `ways` operations; shrink each new cause.

    The plan is the same for the same capabilities of the server. What is not played within
    `seconds`, or in `cases` conversations, is told as not played. A `cluster` plays beside the
    lanes of this process. Raises `SetupFailed` if the server cannot be used at all.
    """
    is_small = cases is not None and cases < MIN_CONVERSATIONS_FOR_PROCESSES
    further = 0 if is_small or cluster is not None else MAX_FURTHER_PROCESSES
    watch = interruption or Interruption(config.base)
    with (
        open_search_bench(config, worker, math.inf) as (portal, bench),
        further_benches(portal, config, bench, worker, LANES) as lanes,
        portal.wrap_async_context_manager(
            further_processes(config, worker, further, LANES)
        ) as players,
    ):
        searcher = SequenceSearcher(config, portal, bench, watch, 0, on_found, known_causes)
        searcher.on_progress, searcher.players = on_progress, players
        if cluster is not None:
            on_cluster = ClusterPlayer(cluster, config, worker)
            searcher.players = [on_cluster]
            searcher.campaign.problems = on_cluster.problems
        try:
            searcher.run_sequences(lanes, ways, seconds, cases)
        except SetupFailed as failed:
            gone = failed
        else:
            return searcher.campaign
    raise gone


class SequenceHabits(Habits):
    """Rules that the server kept or broke in all sequences.

    A plan meets everything, the broken as well as the kept: what is usual is known in its end.
    """

    def __init__(self) -> None:
        super().__init__()
        self._times_broken: Counter[str] = Counter()

    def is_usual(self, rule: str) -> bool:
        """Return whether a rule that was broken is kept far more often; then it counts."""
        kept = self._kept[rule]
        if kept >= MIN_TIMES_KEPT and kept >= KEPT_PER_BROKEN * self._times_broken[rule]:
            self._news.add(rule)
        return rule in self._news

    def counts(self, rule: str) -> str:
        """Return how often a rule was broken, and how often kept, in words."""
        return f"broken {self._times_broken[rule]} times, kept {self._kept[rule]} times"

    def _is_habit(self, rule: str) -> bool:
        self._times_broken[rule] += 1
        return rule in self._news


class SequenceSearcher(Searcher):
    """A search with sequences on an open bench."""

    campaign: SequenceCampaign
    on_progress: OnProgress | None = None
    players: Sequence[PlayerProcess | ClusterPlayer] = ()

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # pyright: ignore[reportArgumentType]
        self.campaign = SequenceCampaign(0)
        self._lacks: dict[str, str] = {}
        self._stops: Counter[str] = Counter()
        self._carried_out: set[str] = set()
        self._leads: list[_Lead] = []
        self._plan = ""
        self._habits = SequenceHabits()
        # By plan, SHOULD rule and occasion: the first problem, until it is known what is usual.
        self._doubtful: dict[tuple[str, str, str], _Sighting] = {}
        self._cases_left = math.inf

    def run_sequences(
        self, lanes: Lanes, ways: int, seconds: float, cases: int | None = None
    ) -> None:
        """Play all plans, then follow up what was found."""
        self._lanes, self._cases_left = lanes, math.inf if cases is None else cases
        began = time.monotonic()
        self._end, self.shrinking = began + seconds, SHRINK_SECONDS
        coverage = self.campaign.coverage
        try:
            with self._interruption.defer_signals():
                absent = self._absent_capabilities()
                coverage.add((goal, _reason_of(needs, absent)) for goal, needs in all_goals(ways))
                self._lacks = {
                    operation.name: f"{IMPOSSIBLE}: {_reason_of(operation.needs, absent)}"
                    for operation in OPERATIONS
                    if not absent.isdisjoint(operation.needs)
                }
                for plan in PLANS:
                    for _ in range(MAX_PLANS):
                        if not self._play_plan(plan):
                            break
                self._judge_doubtful()
                for lead in self._leads:
                    self._follow_lead(lead)
        except Interrupted as signal:
            self.campaign.interrupted_by = str(signal)
        if self.on_progress is not None:
            self.on_progress("")
        self.campaign.seconds = time.monotonic() - began
        self.campaign.lacks = sorted(self._lacks)

    def _judge_doubtful(self) -> None:
        """Follow up broken SHOULD rules that are usually kept; tell of the others."""
        lines: dict[str, str] = {}
        for seen in self._doubtful.values():
            problem = seen.problem
            if self._habits.is_usual(problem.cause):
                self._note_lead(seen)
            elif self._is_new(problem):
                line = f"{self._habits.counts(problem.cause)}: {problem.text}"
                lines.setdefault(problem.cause, line)
        self.campaign.broken_should = list(lines.values())

    def _absent_capabilities(self) -> set[str]:
        """Return the capabilities that a goal needs and the server does not offer."""
        needs = sorted({need for _, needs in all_goals(2) for need in needs})
        offered = self._config.profile.capabilities
        if offered != "probe":
            return set(needs).difference(offered)
        steps: list[Json] = [{"start_thread": {"as": "t"}}]
        loaded = load_document({"title": "Needs", "needs": needs, "client": steps})

        def play(probe: Loaded) -> Run:
            return self._interruption.wait(self._portal.start_task_soon(self._bench.run, probe))

        return set(CapabilityProber(self._config.profile).missing_needs(loaded, play))

    def _play_plan(self, plan: Plan) -> bool:
        """Play the conversations that a plan still needs; return whether goals may be left."""
        coverage = self.campaign.coverage
        coverage.drop(self._lacks)
        wanted = set(coverage.open_goals(plan.scope))
        offered = [operation for operation in OPERATIONS if operation.name not in self._lacks]
        before, self._plan = len(wanted), plan.scope
        conversations = plan.conversations(offered, wanted)
        number = None if self._cases_left == math.inf else int(self._cases_left)
        self._interruption.wait(
            self._portal.start_task_soon(self._play_conversations, islice(conversations, number))
        )
        coverage.drop(self._lacks)
        left = len(coverage.open_goals(plan.scope))
        return 0 < left < before and time.monotonic() < self._end

    async def _play_conversations(self, conversations: Iterator[PlannedSequence]) -> None:
        """Play conversations on all lanes and processes; take them in, in their order."""
        assert self._lanes is not None
        begun: dict[int, PlannedSequence] = {}
        results: dict[int, ConversationResult] = {}
        taken_in = 0

        def documents() -> Iterator[Json]:
            for number, sequence in enumerate(conversations):
                begun[number] = sequence
                yield sequence.document

        def keep(number: int, result: ConversationResult) -> None:
            nonlocal taken_in
            results[number] = result
            # The results do not depend on which conversation ends first.
            while taken_in in results:
                self._take_in(begun.pop(taken_in), results.pop(taken_in))
                taken_in += 1

        def keep_received(number: int, result: ConversationResult) -> None:
            self._config.progress.count_play()
            keep(number, result)

        def keep_own(number: int, played: Played) -> None:
            keep(number, result_of(played))

        jobs, gone = WaitingJobs(documents(), self._end), list[SetupFailed]()
        async with anyio.create_task_group() as tasks:
            for player in self.players:
                tasks.start_soon(player.play_jobs, jobs, keep_received)
            try:
                await self._lanes.play_jobs(jobs, keep_own, self._spoils)
            except SetupFailed as failed:
                gone.append(failed)
                tasks.cancel_scope.cancel()
        if gone:
            raise gone[0]
        # Those that follow one that was lost with its process.
        for number, result in sorted(results.items()):
            self._take_in(begun[number], result)
        self._cases_left -= taken_in + len(results)

    def _covered_words(self) -> str:
        goals = self.campaign.coverage.goals.values()
        return f"{sum(not reason for reason in goals):,} of {len(goals):,} goals covered"

    def _take_in(self, sequence: PlannedSequence, result: ConversationResult) -> None:
        """Count what a play covers, and note its problems."""
        campaign, unmet = self.campaign, result.unmet
        campaign.cases += 1
        self._count(result.trace, result.rules)
        campaign.coverage.count_play(sequence, result.trace, unmet)
        for span in sequence.spans:
            if unmet is None or span.last < unmet.line:
                self._carried_out.add(span.operation)
            elif span.first < unmet.line:
                self._note_stop(sequence, span.operation, unmet)
        for problem in self._habits.serious_problems(result):
            self._note_lead(_Sighting(self._plan, sequence, problem))
        for problem in result.problems:
            if problem.level is Level.SHOULD:
                key = self._plan, problem.cause, problem.occasion
                self._doubtful.setdefault(key, _Sighting(self._plan, sequence, problem))
        if self.on_progress is not None:
            self.on_progress(f"{campaign.cases} conversations; {self._covered_words()}")

    def _note_stop(self, sequence: PlannedSequence, operation: str, unmet: StepFailure) -> None:
        self._stops[operation] += 1
        if unmet.capability:
            self._lacks.setdefault(operation, f"{IMPOSSIBLE}: needs {unmet.capability}")
        elif operation not in self._carried_out and self._stops[operation] >= MAX_STOPS:
            self._lacks.setdefault(operation, f"{STOPPED}: it never ended: {unmet.message}")
        elif operation in self._carried_out and unmet.kind is FailureKind.TIMEOUT:
            words = f"{operation!r}, carried out elsewhere, stopped here: {unmet.message}"
            problem = Problem(STOPPED_CAUSE, words, step=unmet.line, occasion=operation)
            self._note_lead(_Sighting(self._plan, sequence, problem))

    def _note_lead(self, seen: _Sighting) -> None:
        problem = seen.problem
        if self._is_new(problem):
            occasion = self._causes.follow(problem.cause, problem.occasion)
            self._leads.append(_Lead(problem, occasion, {seen.plan: seen}))
            return
        for lead in self._leads:
            if _is_same(lead.problem, problem):
                lead.in_plans.setdefault(seen.plan, seen)

    def _follow_lead(self, lead: _Lead) -> None:
        """Confirm a problem with few operations, shrink it, and report it.

        Each is confirmed, whatever the time; only the first ones have time to be shrunk.
        """
        problem = lead.problem
        is_late = time.monotonic() > self._end + SHRINK_SECONDS
        seconds = MIN_SHRINK_SECONDS if is_late else SHRINK_SECONDS
        shows: Callable[[Played], Problem | None] = partial(
            self._shows, problem.cause, lead.occasion
        )
        if problem.cause == STOPPED_CAUSE:
            shows = partial(_stopped_at, problem)
        for document in _documents_to_try(lead):
            played = self.play(document, fresh=True, bound=MAX_STEP_SECONDS)
            if shows(played) is None:
                continue
            if problem.cause == STOPPED_CAUSE:
                self._add_failure(Small(document, played, problem, flaky=False))
                return
            small = make_small(self, document, shows, seconds, self._mark())
            if small is not None:
                self._add_failure(small)
                return
        self._causes.lose(problem.cause, problem.occasion)
        self._unsteady.setdefault(problem.cause, problem.text)
        self.campaign.unsteady = list(self._unsteady.values())


def _is_same(problem: Problem, other: Problem) -> bool:
    """Return whether two problems have the same cause, at the same place."""
    if problem.cause == STOPPED_CAUSE:
        return (other.cause, other.occasion) == (problem.cause, problem.occasion)
    return other.cause == problem.cause and place_of(other.occasion) == place_of(problem.occasion)


def _documents_to_try(lead: _Lead) -> Iterator[Json]:
    """Yield conversations that may show the problem alone: of each plan the shorter ones first."""
    for seen in lead.in_plans.values():
        sequence, step = seen.sequence, seen.problem.step
        place = max(
            (place for place, span in enumerate(sequence.spans) if span.first < step),
            default=0,
        )
        if sequence.shorten is not None:
            yield from sequence.shorten(place)
        yield sequence.document


def _stopped_at(problem: Problem, played: Played) -> Problem | None:
    """Return the problem if a play stopped at its bound."""
    unmet = played.run.unmet
    return problem if unmet is not None and unmet.kind is FailureKind.TIMEOUT else None


def _reason_of(needs: Sequence[str], absent: Collection[str]) -> str:
    """Return why a goal is impossible without these capabilities, "" if it is possible."""
    missing = [need for need in needs if need in absent]
    return f"needs {missing[0]}" if missing else ""
