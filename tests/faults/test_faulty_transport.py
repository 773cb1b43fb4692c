"""A transport with a fault: the harness receives the changed messages of a correct server."""

from collections.abc import AsyncGenerator, Callable

import anyio
import pytest

from harness.errors import TargetGone
from harness.faults.changes import delay, every, first
from harness.faults.live.fault import LiveFault
from harness.faults.live.transport import FaultyTransport
from harness.faults.operators import drop, duplicate
from harness.faults.queue import Change
from harness.faults.selectors import Selector, notification, our_request
from tests.contract.links import Far, Link, memory_link
from tests.faults.feeding import fault_of

BOUND = 20.0
A, B, Z = b'{"method":"a"}', b'{"method":"b"}', b'{"method":"z"}'
Make = Callable[..., FaultyTransport]


@pytest.fixture
async def link() -> AsyncGenerator[Link]:
    with anyio.fail_after(BOUND):
        async with memory_link() as made:
            yield made


@pytest.fixture
def far(link: Link) -> Far:
    return link.far


@pytest.fixture
def faulty(link: Link) -> Make:
    def make(change: Change | None, *, quiet: float = BOUND) -> FaultyTransport:
        live = None if change is None else LiveFault(fault_of(change))
        return FaultyTransport(link.near, live, quiet_seconds=quiet)

    return make


async def received(near: FaultyTransport, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        found += [line.raw for line in await near.receive()]
    return found


def late(name: str, behind: str) -> Change:
    return delay(notification(name), behind, lambda _, __, now: now.method == behind)


async def test_the_harness_receives_what_the_fault_made(faulty: Make, far: Far) -> None:
    near = faulty(first(notification("a"), duplicate))
    await far.send(A + b"\n" + B + b"\nno json\n")
    assert await received(near, 4) == [A, A, B, b"no json"]


async def test_a_fault_acts_on_what_the_client_says_too(faulty: Make, far: Far) -> None:
    near = faulty(every(our_request("r"), drop))
    await near.send(b'{"method":"r","id":1}')
    await near.send(A)
    await near.send_bytes(b'{"method":"r","id":2}\n')
    assert await far.receive() == A + b"\n"
    assert await far.receive() == b'{"method":"r","id":2}\n'


async def test_lines_held_for_nothing_come_when_the_server_is_silent(
    faulty: Make, far: Far
) -> None:
    near = faulty(late("a", "z"), quiet=0.01)
    await far.send(A + b"\n" + B + b"\n")
    assert await received(near, 2) == [B, A]


async def test_held_lines_come_before_the_end(faulty: Make, far: Far) -> None:
    near = faulty(late("a", "z"))
    await far.send(A + b"\n")
    await far.close_output()
    assert await received(near, 1) == [A]
    with pytest.raises(TargetGone, match="the server closed its output"):
        await near.receive()


async def test_a_message_of_the_client_lets_a_held_one_of_the_server_go(
    faulty: Make, far: Far
) -> None:
    """A client that waits for the message gets it, though the server sends nothing more."""
    near = faulty(late("a", "r"))
    await far.send(A + b"\n" + B + b"\n")
    assert await received(near, 1) == [B]
    found: list[bytes] = []

    async def wait() -> None:
        found.extend(await received(near, 1))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await near.send(b'{"method":"r","id":1}')
    assert found == [A]


async def test_a_fault_can_be_exchanged_while_somebody_waits(faulty: Make, far: Far) -> None:
    near = faulty(None)
    found: list[bytes] = []

    async def wait() -> None:
        found.extend(await received(near, 3))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await near.exchange(LiveFault(fault_of(late("a", "z"))))
        await far.send(A + b"\n" + B + b"\n")
        await anyio.wait_all_tasks_blocked()
        await near.exchange(LiveFault(fault_of(first(notification("z"), drop))))
        await far.send(Z + b"\n" + B + b"\n")
    assert found == [B, A, B]


async def test_closing_passes_on_what_was_held_of_the_client(faulty: Make, far: Far) -> None:
    pick = Selector("r", lambda _, frame: frame.method == "r")
    near = faulty(delay(pick, "z", lambda *_: False))
    await near.send(b'{"method":"r"}')
    await near.aclose()
    assert await far.receive() == b'{"method":"r"}\n'
    assert await far.receive() == b""
