"""The processes of one run: the agent, leader of a process session of its own, and descendants.

Nothing here waits; `Tree.steps` yields pauses, so that tasks and threads can both use it.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GRACE_SECONDS = 5.0
"""Seconds between SIGTERM and SIGKILL."""
KILL_SECONDS = 2.0
"""Maximum seconds to wait for killed processes to be gone."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A process of the machine; `start_time` tells it from a later one with the same id."""

    parent: int
    session: int
    start_time: str
    zombie: bool


class Tree:
    """The agent, its descendants, and all processes in the sessions that any of them led.

    A command often leads a session of its own; its children are found by that session even if the
    command ended before they were seen.
    """

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._seen: dict[int, str] = {}
        self._sessions: dict[int, str] = {}

    def alive(self) -> set[int]:
        """Look at the machine's processes and return the ids of this tree that have not ended."""
        table = processes()
        self._look(table)
        return {
            pid
            for pid, started in self._seen.items()
            if (entry := table.get(pid)) and entry.start_time == started and not entry.zombie
        }

    def _look(self, table: dict[int, Entry]) -> None:
        children: dict[int, list[int]] = {}
        for pid, entry in table.items():
            children.setdefault(entry.parent, []).append(pid)
        waiting = [pid for pid, entry in table.items() if self._is_ours(pid, entry, table)]
        tracked = set(waiting)
        while waiting:
            for child in children.get(waiting.pop(), ()):
                if child not in tracked:
                    tracked.add(child)
                    waiting.append(child)
        self._seen = {pid: table[pid].start_time for pid in tracked}
        self._sessions |= {
            pid: table[pid].start_time for pid in tracked if table[pid].session == pid
        }

    def _is_ours(self, pid: int, entry: Entry, table: dict[int, Entry]) -> bool:
        if pid == self._leader or self._seen.get(pid) == entry.start_time:
            return True
        leader_start = self._sessions.get(entry.session)
        # A session's id is reused only after all its processes have ended.
        leader = table.get(entry.session)
        return leader_start is not None and (leader is None or leader.start_time == leader_start)

    def steps(self, grace: float) -> Iterator[float]:
        """End all processes: SIGTERM, and SIGKILL after `grace` seconds.

        Yield the seconds to wait before the next step. SIGTERM goes to the agent's group first, so
        that the agent can end its commands itself, and to all others once the agent has ended.
        """
        signalled = self.alive()
        self._signal_group(signal.SIGTERM)
        signalled = {pid for pid in signalled if _group(pid) == self._leader}
        deadline, pause = time.monotonic() + grace, 0.005
        while (alive := self.alive()) and time.monotonic() < deadline:
            if self._leader not in alive:
                for pid in alive - signalled:
                    _kill(pid, signal.SIGTERM)
                signalled |= alive
            yield pause
            pause = min(pause * 1.5, 0.1)
        deadline = time.monotonic() + KILL_SECONDS
        while self.kill() and time.monotonic() < deadline:
            yield 0.01

    def kill(self) -> bool:
        """Send SIGKILL to all living processes; return whether there were any."""
        alive = self.alive()
        if alive:
            self._signal_group(signal.SIGKILL)
        for pid in alive:
            _kill(pid, signal.SIGKILL)
        return bool(alive)

    def _signal_group(self, number: int) -> None:
        """Signal the agent's group, whose id stays its own at least until the agent is reaped."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._leader, number)


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _group(pid: int) -> int:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        return os.getpgid(pid)
    return -1


def processes() -> dict[int, Entry]:
    """Return the machine's processes that this user can see, by process id."""
    return _of_proc() if sys.platform == "linux" else _of_ps()


def _of_proc() -> dict[int, Entry]:
    table: dict[int, Entry] = {}
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            stat = Path(f"/proc/{name}/stat").read_bytes()
        except OSError:
            continue
        # The program's name, in brackets, may itself contain blanks and brackets.
        words = stat.rpartition(b")")[2].split()
        table[int(name)] = Entry(
            int(words[1]), int(words[3]), words[19].decode(), words[0] in (b"Z", b"X")
        )
    return table


def _of_ps() -> dict[int, Entry]:
    # Not every `ps` shows sessions; use the group, since a session leader leads a group too.
    command = ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat=,lstart="]
    output = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    table: dict[int, Entry] = {}
    for line in output.stdout.splitlines():
        pid, parent, group, state, started = line.split(None, 4)
        table[int(pid)] = Entry(int(parent), int(group), started, state.startswith("Z"))
    return table
