"""Waits by predicate: no message is dropped, and no wait outlives its connection."""

from __future__ import annotations

import anyio
import pytest
from anyio.abc import TaskGroup

from harness.client.inbox import Inbox, Predicate
from harness.errors import TargetGone
from harness.trace.frame import Direction, Frame
from harness.trace.recorder import Recorder


def frame(method: str, recorder: Recorder | None = None) -> Frame:
    raw = b'{"method":"%s","params":{}}' % method.encode()
    return (recorder or Recorder()).record(raw, Direction.FROM_TARGET)


def is_method(method: str) -> Predicate:
    return lambda frame: frame.method == method


class Waits:
    """Frames that several waiters got, by name; `gone` are the waiters that met the end."""

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self.found: dict[str, Frame] = {}
        self.gone: list[str] = []

    async def begin(self, tasks: TaskGroup, name: str, method: str) -> None:
        tasks.start_soon(self._wait, name, method)
        await anyio.wait_all_tasks_blocked()

    async def _wait(self, name: str, method: str) -> None:
        try:
            self.found[name] = await self.inbox.wait(is_method(method))
        except TargetGone:
            self.gone.append(name)


async def test_frame_that_came_before_is_found() -> None:
    inbox = Inbox()
    first = frame("a")
    inbox.put(first)
    inbox.put(frame("a"))
    assert await inbox.wait(is_method("a")) is first


async def test_wait_from_an_index_skips_what_came_before_it() -> None:
    inbox = Inbox()
    first, second = frame("a"), frame("a")
    inbox.put(first)
    inbox.put(second)
    assert await inbox.wait(is_method("a"), start=1) is second


async def test_messages_that_a_wait_skips_stay_for_the_next() -> None:
    inbox = Inbox()
    waits = Waits(inbox)
    async with anyio.create_task_group() as tasks:
        await waits.begin(tasks, "late", "c")
        for method in "abc":
            inbox.put(frame(method))
    assert waits.found["late"].method == "c"
    for method in "abc":
        assert (await inbox.wait(is_method(method))).method == method


async def test_one_frame_serves_every_waiter_that_it_fits() -> None:
    inbox = Inbox()
    waits = Waits(inbox)
    async with anyio.create_task_group() as tasks:
        await waits.begin(tasks, "one", "a")
        await waits.begin(tasks, "two", "a")
        inbox.put(frame("a"))
    assert waits.found["one"] is waits.found["two"]


async def test_end_of_the_connection_wakes_every_waiter() -> None:
    inbox = Inbox()
    waits = Waits(inbox)
    async with anyio.create_task_group() as tasks:
        for name in ("one", "two", "three"):
            await waits.begin(tasks, name, "never")
        inbox.close()
    assert sorted(waits.gone) == ["one", "three", "two"]


async def test_frame_before_the_end_is_found_after_it() -> None:
    inbox = Inbox()
    inbox.put(frame("a"))
    inbox.close()
    assert (await inbox.wait(is_method("a"))).method == "a"
    with pytest.raises(TargetGone):
        await inbox.wait(is_method("b"))


async def test_frame_that_came_just_before_the_end_reaches_its_waiter() -> None:
    inbox = Inbox()
    waits = Waits(inbox)
    async with anyio.create_task_group() as tasks:
        await waits.begin(tasks, "one", "a")
        inbox.put(frame("a"))
        inbox.close()
    assert waits.gone == []
    assert waits.found["one"].method == "a"


async def test_waiter_that_gave_up_takes_no_frame() -> None:
    inbox = Inbox()
    with anyio.move_on_after(0) as scope:
        await inbox.wait(is_method("a"))
    assert scope.cancelled_caught
    inbox.put(frame("a"))
    assert (await inbox.wait(is_method("a"))).method == "a"


async def test_restart_forgets_what_was_received() -> None:
    inbox = Inbox()
    inbox.put(frame("a"))
    inbox.restart()
    assert inbox.frames == []
    with anyio.move_on_after(0) as scope:
        await inbox.wait(is_method("a"))
    assert scope.cancelled_caught
