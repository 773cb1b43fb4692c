"""Many conversations of generated requests from one seed, and the smallest one that goes wrong.

Here: searching on a shared process, confirming on a fresh one, shrinking by replay, telling. Not
here: what is generated (params), one conversation (live).
"""

import json
import shlex
import time
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from harness.fuzz.live import Fuzzed, converse
from harness.fuzz.params import Request, requests
from harness.runner.bench import Bench, open_bench
from harness.runner.config import Config
from harness.runner.interruption import Interrupted, Interruption
from harness.runner.servers import SetupFailed
from harness.trace.store import save

# How often the smallest failure is tried to be made smaller: each try is a process of its own.
MOST_TRIES = 60
# A live server is slow beside what hypothesis expects, and its answers are no part of the search.
_UNCHECKED = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
# Requests of a conversation at most. The silence at its end takes as long as a dozen of them, and a
# failure in a longer one takes longer to be made small.
LONGEST = 45


class _Unsound(Exception):
    """A conversation went wrong, on a process of its own too."""


@dataclass(slots=True)
class Campaign:
    """What so many conversations gave. `worst` went wrong, and is the smallest of its kind.

    `interrupted` is the name of the signal that ended the search, "" for none.
    """

    seed: int
    only: str
    conversations: int = 0
    results: int = 0
    errors: int = 0
    seconds: float = 0.0
    worst: Fuzzed | None = None
    smallest: tuple[Request, ...] = ()
    trace: Path | None = None
    flaky: bool = False
    unsteady: list[str] = field(default_factory=list[str])
    interrupted: str = ""

    @property
    def verdict(self) -> str:
        """RED or GREEN; of a search that a signal ended, what it was until then."""
        verdict = "GREEN" if self.worst is None else "RED"
        return f"INTERRUPTED ({verdict} so far)" if self.interrupted else verdict

    @property
    def requests(self) -> int:
        """How many were sent and answered in the search, shrinking left out."""
        return self.results + self.errors

    def lines(self, again: Sequence[str]) -> Iterator[str]:
        """The story: what was done, what went wrong, how to see it again."""
        rate = self.requests / self.seconds if self.seconds else 0.0
        yield (
            f"fuzz {self.only or 'all methods'}: seed {self.seed}, {self.conversations} "
            f"conversations, {self.requests} requests ({self.results} answered, {self.errors} "
            f"refused), {rate:.0f} requests/s"
        )
        for text in self.unsteady:
            yield f"UNSTEADY not seen again on a fresh process: {text}"
        if self.worst is not None:
            for text in what_is_wrong(self.worst):
                yield f"FAIL {text}"
            if self.flaky:
                yield "  it did not go wrong each time that the same was sent"
            yield "  smallest found, after initialize and a thread/start:"
            for request in self.smallest:
                yield f"    {request.method} {_short(json.dumps(request.params))}"
            yield f"  again     {shlex.join(again)}"
            yield f"  judge     harness check {self.trace}"
            yield f"  look      harness show {self.trace}"
        if self.interrupted:
            yield f"interrupted ({self.interrupted}): what was not sent by then is not tried"
        yield f"verdict: {self.verdict}"


def what_is_wrong(fuzzed: Fuzzed) -> list[str]:
    """One line for each violation and trouble of a conversation."""
    found = [
        f"{row.level} {row.rule}: {row.subject}: expected {row.expected}; actual {row.actual}"
        for row in fuzzed.violations
    ]
    return [_short(text, 500) for text in (*fuzzed.trouble, *found)]


def _short(text: str, limit: int = 300) -> str:
    if len(text) <= limit:
        return text
    return f"{text[: limit - 60]} …{len(text) - limit + 20} more… {text[-40:]}"


class Fuzzer:
    """A live server to fuzz. Make it with `open_fuzzer`."""

    def __init__(
        self, config: Config, portal: BlockingPortal, bench: Bench, interruption: Interruption
    ) -> None:
        self.config = config
        self._interruption = interruption
        self._portal = portal
        self._bench = bench

    def __repr__(self) -> str:
        return self.config.profile.name

    def hold(self, sent: Sequence[Request], *, fresh: bool = False) -> Fuzzed:
        """One conversation, on the shared process or on one of its own. Raises `Interrupted`."""
        if fresh:
            self._portal.call(self._bench.servers.retire)
        talk = self._portal.start_task_soon(converse, self._bench, self.config, sent)
        fuzzed = self._interruption.wait(talk)
        if fresh or not fuzzed.sound:
            self._portal.call(self._bench.servers.retire)
        return fuzzed

    def search(self, number: int, conversations: int, only: str = "") -> Campaign:
        """Conversations from this seed, until one goes wrong twice; that one is made smaller."""
        campaign = Campaign(number, only)
        tries = 0

        def attempt(drawn: list[Request | None]) -> None:
            nonlocal tries
            sent = key = tuple(one for one in drawn if one is not None)
            if campaign.worst is not None:
                tries += 1
                if tries > MOST_TRIES and key != campaign.smallest:
                    return
                self._confirm(campaign, key)
                return
            began = time.monotonic()
            fuzzed = self.hold(sent)
            campaign.seconds += time.monotonic() - began
            campaign.conversations += 1
            campaign.results += fuzzed.results
            campaign.errors += fuzzed.errors
            if fuzzed.sound:
                return
            self._confirm(campaign, key)

        # Mostly requests; none is simpler, so that shrinking leaves out what is not needed.
        one = requests(self.config.book, only)
        either = st.one_of(st.none(), one, one, one, one)
        run = given(st.lists(either, min_size=LONGEST, max_size=LONGEST))
        bounded = settings(
            max_examples=conversations,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=_UNCHECKED,
            report_multiple_bugs=False,
            print_blob=False,
        )
        try:
            seed(number)(bounded(run(attempt)))()
        except (_Unsound, Flaky) as wrong:
            # Seen twice, once on a fresh process, and then not again: told all the same.
            campaign.flaky = isinstance(wrong, Flaky)
            campaign.trace = self._keep(campaign)
        except Interrupted as signal:
            campaign.interrupted = str(signal)
            if campaign.worst is not None:
                campaign.trace = self._keep(campaign)
        return campaign

    def _confirm(self, campaign: Campaign, sent: tuple[Request, ...]) -> None:
        """Raises `_Unsound` if it goes wrong on a process of its own."""
        fuzzed = self.hold(sent, fresh=True)
        if not fuzzed.sound:
            campaign.worst, campaign.smallest = fuzzed, sent
            raise _Unsound("; ".join(what_is_wrong(fuzzed)))
        if campaign.worst is None:
            campaign.unsteady.append(f"{len(sent)} requests, the last {sent[-1].method}")

    def _keep(self, campaign: Campaign) -> Path:
        assert campaign.worst is not None
        name = zlib.crc32(repr(campaign.smallest).encode())
        profile = self.config.profile.name
        path = self.config.base / "traces" / profile / "fuzz" / f"{name:08x}.jsonl"
        save(campaign.worst.run.trace, path)
        return path


@contextmanager
def open_fuzzer(
    config: Config, worker: str = "fuzz", interruption: Interruption | None = None
) -> Generator[Fuzzer]:
    """A live server for as long as the block runs."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            open_bench(
                config.profile, config.book, base=config.base, worker=worker, scale=config.scale
            )
        ) as bench,
    ):
        yield Fuzzer(config, portal, bench, interruption or Interruption(config.base))


def search(
    config: Config, number: int, conversations: int, only: str, interruption: Interruption
) -> Campaign:
    """Open a server and search, until a signal comes to `interruption`.

    Raises `SetupFailed` where the server cannot be used at all.
    """
    with interruption.ours(), open_fuzzer(config, interruption=interruption) as fuzzer:
        # Raised within the block, it would come out as a group of errors.
        try:
            fuzzer.hold(())
            return fuzzer.search(number, conversations, only)
        except Interrupted as signal:
            return Campaign(number, only, interrupted=str(signal))
        except SetupFailed as failed:
            gone = failed
    raise gone
