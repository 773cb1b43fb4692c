"""Several processes on one index: each adds threads and lists them, and some are killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from stored_threads import StoredHome

from reference_server.config.home import Home
from reference_server.index.index import ThreadIndex
from reference_server.index.query import Query

pytestmark = [pytest.mark.slow, pytest.mark.socket]
SERVERS, THREADS, BOUND = 4, 25, 100

SERVER = """
import random, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from stored_threads import StoredHome
from reference_server.config.home import Home
from reference_server.index.index import ThreadIndex
from reference_server.index.query import Query

root, own, count = Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
home, chance = StoredHome(root), random.Random(own)
index = ThreadIndex(Home(root))
for number in range(own * 1000, own * 1000 + count):
    thread = home.add(number, preview=f"of {own}", day=f"2025/01/{chance.randrange(1, 4):02}")
    if chance.random() < 0.5:
        index.note(thread.id, thread.path)
    listed, after = set(), None
    while True:
        page = index.page(Query(limit=20), after, home.now)
        listed |= {one.summary.id for one in page.threads}
        if (after := page.next) is None:
            break
    missing = set(home.threads) - listed
    assert not missing, missing
    home.answer(thread)
    index.note(thread.id, thread.path)
    if chance.random() < 0.3:
        index.write_down()
    print(number, flush=True)
index.close()
"""


def started(home: Path, own: int) -> "subprocess.Popen[str]":
    given = [str(Path(__file__).parent), str(home), str(own), str(THREADS)]
    return subprocess.Popen(
        [sys.executable, "-c", SERVER, *given],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def test_each_sees_its_own_threads_at_once_and_all_are_there_in_the_end(tmp_path) -> None:
    killed = (1, 2)
    servers = {own: started(tmp_path, own) for own in range(1, SERVERS + 1)}
    for own in killed:
        output = servers[own].stdout
        assert output is not None
        for _ in range(3 * own):
            output.readline()
        servers[own].send_signal(signal.SIGKILL)
    for own, server in servers.items():
        _, words = server.communicate(timeout=BOUND)
        assert own in killed or server.returncode == 0, words
    index = ThreadIndex(Home(tmp_path))
    # Whether a killed one came to write the first line of its last thread is not known.
    whole = [path for path in (tmp_path / "sessions").rglob("*.jsonl") if path.stat().st_size]
    found: list[str] = []
    after = None
    while True:
        page = index.page(Query(limit=50), after, StoredHome(tmp_path).now + 1e6)
        found += [one.summary.id for one in page.threads]
        if (after := page.next) is None:
            break
    assert sorted(found) == sorted(path.stem.rpartition("-")[2] for path in whole)
    index.close()
