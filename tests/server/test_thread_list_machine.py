"""Lists of threads while several servers and other programs change everything, also the index.

The model is a dictionary of threads. Whatever happens between the pages of a list: a thread that
nobody touches meanwhile comes exactly once.
"""

import shutil
import sqlite3
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    multiple,
    precondition,
    rule,
)
from stored_threads import Stored, StoredHome

from reference_server.config.home import Home
from reference_server.index.cursor import Position
from reference_server.index.index import ThreadIndex
from reference_server.index.query import Query

pytestmark = pytest.mark.slow

DAYS = st.sampled_from(["2025/01/02", "2025/01/03", "2025/02/01", "2026/01/01"])
WORDS = st.sampled_from(["Zebra at work", "zebra", "100% of _", "", "Zürich\0and back"])
CWDS = st.sampled_from(["/projects", "/projects/a", "/PROJECTS"])
PROVIDERS = st.sampled_from(["mock", "other"])
SOURCES = st.sampled_from(["vscode", "cli"])
SERVERS = st.sampled_from([0, 1])

PLAIN = st.builds(
    Query, sort=st.sampled_from(["created", "updated", "updated"]), limit=st.integers(1, 3)
)
FILTERED = st.builds(
    Query,
    sort=st.sampled_from(["created", "updated"]),
    limit=st.integers(1, 4),
    archived=st.booleans(),
    providers=st.sampled_from([(), (), ("mock",), ("other", "mock", "nobody")]),
    sources=st.sampled_from([(), (), ("cli",), ("cli", "vscode")]),
    cwd=st.sampled_from([None, None, "/projects"]),
    term=st.sampled_from([None, None, "ebr", "Zebra", "%", "h\0a", "ü"]),
)

QUERIES = PLAIN | FILTERED


@dataclass
class Listing:
    """A list under way: what was seen, and which threads were touched since it began."""

    query: Query
    after: Position | None = None
    seen: list[str] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)
    there: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    """Threads that may be left out: see `damage`."""


def matches(thread: Stored, query: Query) -> bool:
    return (
        thread.archived == query.archived
        and (not query.providers or thread.provider in query.providers)
        and (not query.sources or thread.source in query.sources)
        and query.cwd in (None, thread.cwd)
        and (not query.term or query.term in thread.preview or query.term in (thread.name or ""))
    )


class ThreadListMachine(RuleBasedStateMachine):
    """Two servers on one home, and another program."""

    threads = Bundle("threads")
    listings = Bundle("listings")

    @initialize(target=threads)
    def begin(self) -> MultipleResults[str]:
        self.folder = Path(tempfile.mkdtemp())
        self.home = StoredHome(self.folder)
        self.servers = [ThreadIndex(Home(self.folder)) for _ in range(2)]
        self.open: list[Listing] = []
        self.number = 0
        self.untold: set[str] = set()
        for number in range(1001, 1006):
            self.home.add(number, preview="Zebra at work")
        for server in self.servers:
            server.page(Query(), None, self.home.now)
        return multiple(*self.home.threads)

    def teardown(self) -> None:
        if hasattr(self, "servers"):
            for server in self.servers:
                server.close()
            shutil.rmtree(self.folder)

    def touch(self, thread: str) -> None:
        for listing in self.open:
            listing.touched.add(thread)

    def tell(self, server: int, *paths: Path, thread: str) -> None:
        for path in paths:
            self.servers[server].note(thread, path)
        self.servers[server].write_down()

    @rule(
        target=threads,
        day=DAYS,
        preview=WORDS,
        cwd=CWDS,
        provider=PROVIDERS,
        source=SOURCES,
        server=st.sampled_from([None, 0, 1]),
    )
    def add(self, day, preview, cwd, provider, source, server) -> str:
        self.number += 1
        fields = {"preview": preview, "cwd": cwd, "provider": provider, "source": source}
        thread = self.home.add(self.number, day=day, **fields)
        self.touch(thread.id)
        if server is not None:
            self.tell(server, thread.path, thread=thread.id)
        return thread.id

    @rule(thread=threads)
    def another_program_writes(self, thread: str) -> None:
        """Only the time changes, and no server is told."""
        if stored := self.home.threads.get(thread):
            self.home.answer(stored)
            self.touch(thread)
            self.untold.add(thread)

    @rule(thread=threads, server=SERVERS, cwd=CWDS, provider=PROVIDERS)
    def a_turn_begins(self, thread: str, server: int, cwd: str, provider: str) -> None:
        if stored := self.home.threads.get(thread):
            self.home.begin_turn(stored, cwd=cwd, provider=provider)
            self.touch(thread)
            self.tell(server, stored.path, thread=thread)

    @rule(thread=threads, server=SERVERS, name=st.none() | WORDS)
    def name(self, thread: str, server: int, name: str | None) -> None:
        if stored := self.home.threads.get(thread):
            self.home.name(stored, name)
            self.touch(thread)
            self.tell(server, stored.path, thread=thread)

    @rule(thread=threads, server=st.sampled_from([None, 0, 1]))
    def archive_or_bring_back(self, thread: str, server: int | None) -> None:
        if stored := self.home.threads.get(thread):
            old = self.home.move(stored)
            self.touch(thread)
            if server is not None:
                self.tell(server, old, stored.path, thread=thread)

    @rule(thread=consumes(threads))
    def remove(self, thread: str) -> None:
        if stored := self.home.threads.get(thread):
            self.home.remove(stored)
            self.touch(thread)

    @rule(server=SERVERS)
    def restart(self, server: int) -> None:
        self.servers[server].close()
        self.servers[server] = ThreadIndex(Home(self.folder))

    @rule(kind=st.sampled_from(["remove", "empty", "garbage", "cut", "version", "rows", "pointer"]))
    def damage(self, kind: str) -> None:
        """The index goes, and with it what place it gave to a thread that was written to untold.

        Such a thread may have gone past the end of the last page of a list, and it is not known
        any more that it did. It may be left out by this list; nothing may come twice.
        """
        for listing in self.open:
            listing.lost |= self.untold
        for path in sorted((self.folder / "index").glob("threads-*.sqlite")):
            match kind:
                case "remove":
                    shutil.rmtree(self.folder / "index")
                    return
                case "empty":
                    path.write_bytes(b"")
                case "garbage":
                    path.write_bytes(b"This is no database. " * 1000)
                case "cut":
                    path.write_bytes(path.read_bytes()[:5000])
                case "version":
                    self._change(path, "PRAGMA user_version = 99")
                case "rows":
                    self._change(path, "DELETE FROM threads WHERE key % 2")
                case _:
                    (self.folder / "index" / "current-1").write_bytes(b"nonsense")
        if kind in ("version", "rows"):
            # A running server does not look for this before it looks at every file.
            for number in range(2):
                self.restart(number)

    def _change(self, path: Path, statement: str) -> None:
        connection = sqlite3.connect(path)
        try:
            connection.execute(statement)
            connection.commit()
        except sqlite3.Error:
            pass
        finally:
            connection.close()

    @rule(target=listings, query=QUERIES)
    def begin_list(self, query: Query) -> Listing:
        listing = Listing(query, there=set(self.home.threads))
        self.open.append(listing)
        return listing

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 3), server=SERVERS)
    def next_page(self, which: int, server: int) -> None:
        listing = self.open[which % len(self.open)]
        self.home.now += 1
        page = self.servers[server].page(listing.query, listing.after, self.home.now)
        assert len(page.threads) <= listing.query.limit
        listing.seen += [one.summary.id for one in page.threads]
        for one in page.threads:
            if stored := self.home.threads.get(one.summary.id):
                assert Path(one.path) == stored.path
                assert one.summary.preview == stored.preview
                assert one.summary.name == stored.name
                assert one.summary.updated_at == stored.updated
        if listing.query.sort == "created":
            keys = [one.summary.created_at for one in page.threads]
            assert keys == sorted(keys, reverse=True)
        listing.after = page.next
        if page.next is None:
            self.open.remove(listing)
            self._check(listing)

    def _check(self, listing: Listing) -> None:
        for thread in listing.there - listing.touched:
            wanted = int(matches(self.home.threads[thread], listing.query))
            seen = listing.seen.count(thread)
            assert seen == wanted or (seen < wanted and thread in listing.lost), (thread, listing)

    @precondition(lambda self: self.home.threads)
    @rule(limit=st.integers(1, 3), server=SERVERS, first=st.booleans())
    def list_what_another_program_has_written(self, limit: int, server: int, first: bool) -> None:
        """Before the list or between its pages, to the thread that was written to least lately."""
        listing = Listing(Query("updated", limit=limit), there=set(self.home.threads))
        self.open.append(listing)
        if not first:
            self.next_page(self.open.index(listing), server)
        oldest = min(self.home.threads.values(), key=lambda one: one.updated)
        self.home.answer(oldest)
        self.untold.add(oldest.id)
        for other in self.open:
            if other is not listing or not first:
                other.touched.add(oldest.id)
        while listing in self.open:
            self.next_page(self.open.index(listing), server)

    @rule(query=QUERIES, server=SERVERS)
    def list_at_once(self, query: Query, server: int) -> None:
        listing = Listing(query, there=set(self.home.threads))
        self.open.append(listing)
        while listing in self.open:
            self.next_page(self.open.index(listing), server)
        wanted = sorted(
            (one for one in self.home.threads.values() if matches(one, query)),
            key=lambda one: one.created,
            reverse=True,
        )
        if query.sort == "created":
            assert listing.seen == [one.id for one in wanted]


ThreadListMachine.TestCase.settings = settings(
    max_examples=25, stateful_step_count=30, deadline=None
)
TestThreadList = ThreadListMachine.TestCase
