"""A run of the fuzzers: stored failures first, then each kind of case within its share."""

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.play.config import Config
from harness.play.interruption import Interruption
from harness.play.session.servers import SetupFailed
from harness.report.progress.events import Found, PlayStarted, cut
from harness.search.cluster.connection import Cluster
from harness.search.fuzz.case import SHARES, Kind, failure_id
from harness.search.fuzz.causes import Causes
from harness.search.fuzz.documents import search_documents
from harness.search.fuzz.replay import Case, ReplayResult, replay
from harness.search.fuzz.sessions import search as sessions
from harness.search.fuzz.sessions.play import load_document
from harness.search.fuzz.sessions.search import FoundFailure, SessionCampaign
from harness.search.fuzz.store import TRACE, Failure, Store, failure_of
from harness.search.sequences.search import OnProgress, search_sequences

# Seconds of a search if only the number of cases is bounded.
ENDLESS_SECONDS = 10.0**8


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a search: seconds for all kinds, or cases of each kind, or both.

    Without seconds the same seed plays the same cases. `method` limits inputs to one method, "" for
    all. With `may_end_early` a kind without new reactions ends early. `ways` is the length of the
    tuples that sequences cover.
    """

    kinds: Sequence[Kind]
    seed: int = 1
    seconds: float | None = None
    cases: int | None = None
    method: str = ""
    may_end_early: bool = False
    ways: int = 2


@dataclass(slots=True)
class FuzzResult:
    """The result of a run: its failures, and the `known_ids` that were in the store before.

    `fixed_ids` are in the store but no longer fail; `unkept_ids` could not be stored; `notes` are
    for people; `broke_off` is whether the server became unusable, or no case was played.
    """

    bounds: Bounds
    searches: dict[Kind, SessionCampaign] = field(default_factory=dict[Kind, SessionCampaign])
    failures: list[Failure] = field(default_factory=list[Failure])
    known_ids: set[str] = field(default_factory=set[str])
    unkept_ids: set[str] = field(default_factory=set[str])
    fixed_ids: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    broke_off: bool = False
    interrupted_by: str = ""

    @property
    def case_count(self) -> int:
        """Return the number of cases played, of all kinds."""
        return sum(campaign.cases for campaign in self.searches.values())

    @property
    def red(self) -> bool:
        """Return whether a failure was found, or the run broke off."""
        return bool(self.failures) or self.broke_off

    @property
    def verdict(self) -> str:
        """Return RED or GREEN; for a run that a signal ended, the verdict so far."""
        verdict = "RED" if self.red else "GREEN"
        return f"INTERRUPTED ({verdict} so far)" if self.interrupted_by else verdict


def fuzz(
    config: Config,
    bounds: Bounds,
    store: Store,
    interruption: Interruption,
    on_progress: OnProgress | None = None,
    cluster: Cluster | None = None,
) -> FuzzResult:
    """Search until the bounds or a signal. Raises `SetupFailed` if the server was never usable.

    Failures are stored as soon as they are found. `on_progress` is told how far sequences are. The
    `cluster` plays sequences, too.
    """
    result = FuzzResult(bounds)
    began = time.monotonic()
    causes = _replay_known(config, store, result, interruption)
    kinds_left = list(bounds.kinds)
    while kinds_left and not result.interrupted_by and not result.broke_off:
        kind = kinds_left[0]
        config.progress.write(PlayStarted(scenario=kind, lane="fuzz"))
        seconds, cases = ENDLESS_SECONDS, bounds.cases
        if bounds.seconds is not None:
            rest = max(0.0, bounds.seconds - (time.monotonic() - began))
            seconds = rest * SHARES[kind] / sum(SHARES[other] for other in kinds_left)
        # Sessions, which come last, use the time that the other kinds leave.
        may_end_early = cases is None and (bounds.may_end_early or "sessions" in kinds_left)
        try:
            _search(
                config,
                kind,
                seconds,
                cases,
                store,
                result,
                interruption,
                causes,
                may_end_early,
                on_progress,
                cluster,
            )
        except SetupFailed as failed:
            if not result.case_count and not result.failures:
                raise
            result.broke_off = True
            result.notes.append(f"the server cannot be used any more: {failed}")
        del kinds_left[0]
    for kind, campaign in result.searches.items():
        if not campaign.cases and not result.interrupted_by:
            result.notes.append(f"no case of {kind} was played in the time; give more: --max-time")
    if not result.case_count and not result.failures and not result.interrupted_by:
        result.broke_off = True
    return result


def _search(
    config: Config,
    kind: Kind,
    seconds: float,
    cases: int | None,
    store: Store,
    result: FuzzResult,
    interruption: Interruption,
    causes: Causes,
    may_end_early: bool,
    on_progress: OnProgress | None,
    cluster: Cluster | None,
) -> None:
    bounds = result.bounds

    def keep(failure: FoundFailure) -> None:
        _keep(config, kind, failure, store, result)

    campaign: SessionCampaign
    if kind == "sequences":
        campaign = search_sequences(
            config,
            bounds.ways,
            seconds,
            interruption,
            keep,
            cases=cases,
            known_causes=causes,
            on_progress=on_progress,
            cluster=cluster,
        )
    elif kind == "sessions":
        campaign = sessions.search(
            config, bounds.seed, seconds, interruption, keep, cases=cases, known_causes=causes
        )
    else:
        campaign = search_documents(
            kind,
            config,
            bounds.seed,
            seconds,
            interruption,
            keep,
            cases=cases,
            known_causes=causes,
            method=bounds.method,
            may_end_early=may_end_early,
        )
    result.searches[kind] = campaign
    result.interrupted_by = campaign.interrupted_by
    result.broke_off |= bool(campaign.problems)
    result.notes += campaign.problems


def _keep(
    config: Config, kind: Kind, found_failure: FoundFailure, store: Store, result: FuzzResult
) -> None:
    target, server = config.option or config.profile.name, shlex.join(config.profile.command)
    if found_failure.instead_of is not None:
        earlier = failure_id(
            kind, found_failure.instead_of.cause, found_failure.instead_of.document
        )
        result.failures = [failure for failure in result.failures if failure.id != earlier]
        result.unkept_ids.discard(earlier)
        store.drop(earlier)
    kept_trace = ""
    try:
        result.failures.append(store.keep(kind, found_failure, target, server))
        kept_trace = _trace_file(store, result.failures[-1])
    except OSError as error:
        # The search continues; a failure that is not stored is still reported.
        identity = failure_id(kind, found_failure.cause, found_failure.document)
        result.unkept_ids.add(identity)
        result.notes.append(f"the store {store.folder} cannot keep {identity}: {error.strerror}")
        result.failures.append(failure_of(kind, found_failure, target, server))
    _report(config, result.failures[-1], kept_trace)


def _trace_file(store: Store, failure: Failure) -> str:
    return str((store.folder / f"{failure.id}{TRACE}").resolve())


def _report(config: Config, failure: Failure, trace: str) -> None:
    """Write a failure into the progress of the campaign."""
    found = Found(
        rule=failure.cause, level="MUST", text=cut(failure.text), scenario=failure.id, trace=trace
    )
    config.progress.write(found)


def _replay_known(
    config: Config, store: Store, result: FuzzResult, interruption: Interruption
) -> Causes:
    """Replay the stored failures into `result`; return the causes that still fail, to ignore."""
    causes = Causes()
    for failure in store.failures():
        if isinstance(failure, str):
            result.notes.append(failure)
            continue
        if failure.kind not in result.bounds.kinds or result.bounds.method or result.interrupted_by:
            continue
        replayed = _replay_failure(config, failure, result, interruption)
        if replayed is None or replayed.interrupted_by:
            continue
        if replayed.verdict == "fixed":
            if failure.server in ("", shlex.join(config.profile.command)):
                result.fixed_ids.append(failure.id)
            else:
                message = f"{failure.id} was found on another server ({failure.server})"
                result.notes.append(f"{message}; this one does not show it")
            continue
        causes.set_aside(failure.cause, failure.occasion)
        result.known_ids.add(failure.id)
        result.failures.append(failure)
        _report(config, failure, _trace_file(store, failure))
    return causes


def _replay_failure(
    config: Config, failure: Failure, result: FuzzResult, interruption: Interruption
) -> ReplayResult | None:
    try:
        loaded = load_document(failure.document)
    except (ValueError, LookupError, TypeError):
        result.notes.append(f"{store_name(failure)} is no scenario any more; it is left alone")
        return None
    replayed = replay(config, Case(failure.id, loaded, failure.cause), interruption)
    result.interrupted_by = replayed.interrupted_by
    return replayed


def store_name(failure: Failure) -> str:
    """Return the file name of a failure in the store."""
    return f"{failure.id}.scenario.yaml"
