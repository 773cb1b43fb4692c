"""The parts between connection and session: tables, lanes, outbox, registration."""

import anyio
import pytest

from harness.protocol.wire.methods import BY_METHOD, Direction
from harness.protocol.wire.turn import TurnStartParams
from reference_server.deltas import DeltaLine
from reference_server.handlers import discover
from reference_server.handlers.registry import handles
from reference_server.lanes import Lanes
from reference_server.outbox import HIGH_WATER, Outbox
from reference_server.session.transitions import (
    COUPLING,
    THREAD,
    TURN,
    IllegalTransition,
    next_thread_state,
    next_turn_status,
)
from reference_server.transport.base import Incoming, PeerGone


def test_every_request_of_the_table_has_a_handler_and_no_other_method_has() -> None:
    requests = {s.method for s in BY_METHOD.values() if s.direction is Direction.CLIENT_REQUEST}
    assert set(discover()) == requests


def test_handlers_take_the_params_of_their_row() -> None:
    for method, handler in discover().items():
        assert handler.__annotations__["params"] is BY_METHOD[method].params, method


def test_a_method_cannot_have_two_handlers() -> None:
    discover()

    async def another(call, params) -> None: ...

    with pytest.raises(ValueError, match="turn/start already has a handler"):
        handles("turn/start")(another)


def test_every_turn_status_moves_its_thread_somewhere_from_active() -> None:
    for status, event in COUPLING.items():
        state = "idle" if status == "inProgress" else "active"
        assert (state, event) in THREAD


def test_terminal_turns_take_no_event() -> None:
    ends = set(TURN.values()) - {"inProgress"}
    assert ends == {"completed", "interrupted", "failed"}
    assert not ends & {status for status, _ in TURN}
    with pytest.raises(IllegalTransition, match="completed cannot take failed"):
        next_turn_status("completed", "failed")


def test_a_thread_takes_one_turn_at_a_time() -> None:
    assert next_thread_state("systemError", "turn-started") == "active"
    with pytest.raises(IllegalTransition, match="active cannot take turn-started"):
        next_thread_state("active", "turn-started")


def test_a_delta_line_needs_its_delta_last() -> None:
    with pytest.raises(ValueError, match="TurnStartParams"):
        DeltaLine(_named(TurnStartParams(thread_id="t", input=[])))


def _named(params: TurnStartParams) -> TurnStartParams:
    from harness.protocol.wire.methods import BY_PARAMS

    BY_PARAMS.setdefault(TurnStartParams, "test/params")
    return params


@pytest.fixture(autouse=True)
def table_as_it_was():
    from harness.protocol.wire.methods import BY_PARAMS

    yield
    BY_PARAMS.pop(TurnStartParams, None)


async def test_lanes_keep_order_inside_and_run_side_by_side_between() -> None:
    log: list[str] = []
    gate = anyio.Event()

    def job(name: str, waits: bool = False):
        async def run() -> None:
            if waits:
                await gate.wait()
            log.append(name)
            if name == "b1":
                gate.set()

        return run

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            lanes = Lanes(tasks)
            lanes.submit("a", job("a1", waits=True))
            lanes.submit("a", job("a2"))
            lanes.submit("b", job("b1"))
    assert log == ["b1", "a1", "a2"]


class Recording:
    """A transport that writes only while its gate is open."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.gate = anyio.Event()
        self.gone = False
        self.amount_read = 0

    async def wait_for_end(self) -> None:
        await anyio.sleep_forever()

    async def receive(self) -> list[Incoming]:
        return []

    async def send(self, messages: list[bytes]) -> None:
        await self.gate.wait()
        if self.gone:
            raise PeerGone
        self.batches.append(messages)


async def test_messages_queued_together_are_written_together_and_in_order() -> None:
    transport = Recording()
    outbox = Outbox(transport)
    for number in range(5):
        outbox.put(b"%d" % number)
    transport.gate.set()
    outbox.close()
    await outbox.run()
    assert transport.batches == [[b"0", b"1", b"2", b"3", b"4"]]


async def test_a_full_outbox_asks_to_wait_and_drops_nothing() -> None:
    transport = Recording()
    outbox = Outbox(transport)
    big = b"x" * (HIGH_WATER // 2)
    waited: list[bool] = []

    async def produce() -> None:
        for _ in range(6):
            outbox.put(big)
            waited.append(not transport.gate.is_set())
            await outbox.wait_for_room()
        outbox.close()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outbox.run)
            tasks.start_soon(produce)
            await anyio.wait_all_tasks_blocked()
            assert len(waited) == 3
            transport.gate.set()
    assert sum(map(len, transport.batches)) == 6


async def test_when_the_peer_is_gone_nobody_waits_for_it() -> None:
    transport = Recording()
    outbox = Outbox(transport)
    transport.gone = True
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            outbox.put(b"x" * (HIGH_WATER + 1))
            tasks.start_soon(outbox.run)
            tasks.start_soon(outbox.wait_for_room)
            await anyio.wait_all_tasks_blocked()
            transport.gate.set()
        outbox.put(b"y")
        await outbox.wait_for_room()
    assert outbox.gone
    assert transport.batches == []
