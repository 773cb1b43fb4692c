"""A whole run of the fuzzers: known failures first, then each kind of case within its share."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.play.config import Config
from harness.play.interruption import Interruption
from harness.play.session.servers import SetupFailed
from harness.search.fuzz.case import SHARES, Kind, failure_id
from harness.search.fuzz.causes import Causes
from harness.search.fuzz.documents import search_documents
from harness.search.fuzz.replay import Case, Replayed, replay
from harness.search.fuzz.sessions import search as sessions
from harness.search.fuzz.sessions.play import loaded_from
from harness.search.fuzz.sessions.search import Found, SessionCampaign
from harness.search.fuzz.store import Failure, Store, failure_of

# Where the number of cases is the bound, time is none; no run of anybody lasts so long.
ENDLESS = 10.0**8


@dataclass(frozen=True, slots=True)
class Bounds:
    """The extent of a search: seconds for all kinds, or cases of each kind, or both.

    Without seconds the same seed plays the same cases. `method` is the only one of inputs, "" all.
    """

    kinds: Sequence[Kind]
    seed: int = 1
    seconds: float | None = None
    cases: int | None = None
    method: str = ""


@dataclass(slots=True)
class Fuzzing:
    """The result of a run. `stored` are its failures, `known` of them were in the store before.

    `fixed` are ids in the store that did not show any more; `notes` say what could not be done.
    """

    bounds: Bounds
    searches: dict[Kind, SessionCampaign] = field(default_factory=dict[Kind, SessionCampaign])
    failures: list[Failure] = field(default_factory=list[Failure])
    known: set[str] = field(default_factory=set[str])
    unkept: set[str] = field(default_factory=set[str])
    fixed: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    broke_off: bool = False
    interrupted: str = ""

    @property
    def played(self) -> int:
        """Return the number of cases played, of all kinds."""
        return sum(campaign.cases for campaign in self.searches.values())

    @property
    def red(self) -> bool:
        """Return whether something is wrong with the server."""
        return bool(self.failures) or self.broke_off

    @property
    def verdict(self) -> str:
        """RED or GREEN; of a run that a signal ended, what it was until then."""
        verdict = "RED" if self.red else "GREEN"
        return f"INTERRUPTED ({verdict} so far)" if self.interrupted else verdict


def fuzz(config: Config, bounds: Bounds, store: Store, interruption: Interruption) -> Fuzzing:
    """Search until the bounds or a signal. Raises `SetupFailed` if the server never could be used.

    What is found is in the store at once.
    """
    result = Fuzzing(bounds)
    began = time.monotonic()
    causes = _known_first(config, store, result, interruption)
    kinds_left = list(bounds.kinds)
    while kinds_left and not result.interrupted and not result.broke_off:
        kind = kinds_left[0]
        seconds, cases = ENDLESS, bounds.cases
        if bounds.seconds is not None:
            rest = max(0.0, bounds.seconds - (time.monotonic() - began))
            seconds = rest * SHARES[kind] / sum(SHARES[other] for other in kinds_left)
        try:
            _search(config, kind, seconds, cases, store, result, interruption, causes)
        except SetupFailed as failed:
            if not result.played and not result.failures:
                raise
            result.broke_off = True
            result.notes.append(f"the server cannot be used any more: {failed}")
        del kinds_left[0]
    for kind, campaign in result.searches.items():
        if not campaign.cases and not result.interrupted:
            result.notes.append(f"no case of {kind} was played in the time; give more: --max-time")
    if not result.played and not result.failures and not result.interrupted:
        result.broke_off = True
    return result


def _search(
    config: Config,
    kind: Kind,
    seconds: float,
    cases: int | None,
    store: Store,
    result: Fuzzing,
    interruption: Interruption,
    causes: Causes,
) -> None:
    bounds = result.bounds

    def keep(found: Found) -> None:
        _keep(config, kind, found, store, result)

    if kind == "sessions":
        campaign = sessions.search(
            config, bounds.seed, seconds, interruption, keep, cases=cases, known=causes
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
            known=causes,
            method=bounds.method,
        )
    result.searches[kind] = campaign
    result.interrupted = campaign.interrupted


def _keep(config: Config, kind: Kind, found: Found, store: Store, result: Fuzzing) -> None:
    target = config.option or config.profile.name
    if found.instead_of is not None:
        earlier = failure_id(kind, found.instead_of.cause, found.instead_of.document)
        result.failures = [failure for failure in result.failures if failure.id != earlier]
        result.unkept.discard(earlier)
        store.drop(earlier)
    try:
        result.failures.append(store.keep(kind, found, target))
    except OSError as error:
        # The search goes on: what it finds is still told.
        identity = failure_id(kind, found.cause, found.document)
        result.unkept.add(identity)
        result.notes.append(f"the store {store.folder} cannot keep {identity}: {error.strerror}")
        result.failures.append(failure_of(kind, found, target))


def _known_first(
    config: Config, store: Store, result: Fuzzing, interruption: Interruption
) -> Causes:
    """Try what is in the store; the causes that still show, not looked for again."""
    causes = Causes()
    for failure in store.failures():
        if isinstance(failure, str):
            result.notes.append(failure)
            continue
        if failure.kind not in result.bounds.kinds or result.bounds.method or result.interrupted:
            continue
        replayed = _again(config, failure, result, interruption)
        if replayed is None or replayed.interrupted:
            continue
        if replayed.verdict == "fixed":
            result.fixed.append(failure.id)
            continue
        causes.set_aside(failure.cause, failure.occasion)
        result.known.add(failure.id)
        result.failures.append(failure)
    return causes


def _again(
    config: Config, failure: Failure, result: Fuzzing, interruption: Interruption
) -> Replayed | None:
    try:
        loaded = loaded_from(failure.document)
    except (ValueError, LookupError, TypeError):
        result.notes.append(f"{store_name(failure)} is no scenario any more; it is left alone")
        return None
    replayed = replay(config, Case(failure.id, loaded, failure.cause), interruption)
    result.interrupted = replayed.interrupted
    return replayed


def store_name(failure: Failure) -> str:
    """The failure as a user finds it in the store."""
    return f"{failure.id}.scenario.yaml"
