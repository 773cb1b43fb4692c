"""Gates are known to both sides, in any order."""

from __future__ import annotations

import anyio

from harness.model.gates import Gates


async def test_stream_waits_until_the_gate_is_opened() -> None:
    gates, passed = Gates(), anyio.Event()

    async def stream() -> None:
        await gates.pass_through("g")
        passed.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream)
        await gates.wait_until_reached("g")
        await anyio.wait_all_tasks_blocked()
        assert not passed.is_set()
        gates.open("other")
        await anyio.wait_all_tasks_blocked()
        assert not passed.is_set()
        gates.open("g")
    assert passed.is_set()


async def test_gate_opened_first_does_not_hold() -> None:
    gates = Gates()
    gates.open("g")
    with anyio.fail_after(1):
        await gates.pass_through("g")
        await gates.pass_through("g")


async def test_all_open_holds_nobody_now_or_later() -> None:
    gates, passed = Gates(), list[str]()

    async def stream(name: str) -> None:
        await gates.pass_through(name)
        passed.append(name)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream, "held")
        await gates.wait_until_reached("held")
        gates.open_all()
    with anyio.fail_after(1):
        await stream("never named before")
    assert passed == ["held", "never named before"]


async def test_reached_stays_known_after_the_stream_passed() -> None:
    gates = Gates()
    gates.open("g")
    await gates.pass_through("g")
    with anyio.fail_after(1):
        await gates.wait_until_reached("g")
