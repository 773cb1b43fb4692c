"""Kernel calls that namespaces do not confine: keyrings, sockets of odd families, io_uring.

A small interpreter runs the filter program for every machine; the kernel runs it on this one.
"""

import errno
import platform
import struct
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from attacks import CONFINING, OPEN, Attack, attack, places, python_of
from confined import IDENTITIES, SECRET, Place, sandboxed, workspace_write
from model_side import runs, says

from harness.protocol.wire.settings import ExternalSandbox
from reference_server.sandbox.seccomp import FAMILIES, MACHINES, Machine, program

for_real = [
    *sandboxed,
    pytest.mark.skipif(platform.machine() not in MACHINES, reason="no program for this machine"),
]
ALLOWED, UNKNOWN, NO_FAMILY = "allowed", errno.ENOSYS, errno.EAFNOSUPPORT
X32 = 0x40000000


def verdict(made: bytes, number: int, argument: int = 0, *, architecture: int) -> str | int:
    """Run a program on one system call, as the kernel does (seccomp_data, little-endian)."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, argument, 0, 0, 0, 0, 0)
    code = [struct.unpack_from("=HBBI", made, at) for at in range(0, len(made), 8)]
    at = held = 0
    while True:
        operation, yes, no, value = code[at]
        at += 1
        match operation:
            case 0x20:
                [held] = struct.unpack_from("<I", data, value)
            case 0x15:
                at += yes if held == value else no
            case 0x35:
                at += yes if held >= value else no
            case 0x06:
                return ALLOWED if value == 0x7FFF0000 else value & 0xFFFF
            case _:
                raise AssertionError(f"no such operation: {operation}")


@pytest.mark.parametrize("name", MACHINES)
def test_the_program_refuses_what_it_is_to_and_nothing_else(name: str) -> None:
    machine: Machine = MACHINES[name]
    made = program(name)
    assert made is not None

    def asked(number: int, argument: int = 0) -> str | int:
        return verdict(made, number, argument, architecture=machine.audit)

    special = {*machine.refused_calls, machine.socket, machine.socketpair}
    assert {asked(number, 99) for number in range(500) if number not in special} == {ALLOWED}
    assert {asked(number) for number in machine.refused_calls} == {UNKNOWN}
    for call in (machine.socket, machine.socketpair):
        allowed = {family for family in range(64) if asked(call, family) == ALLOWED}
        assert allowed == set(FAMILIES.values())
        assert {asked(call, one) for one in set(range(64)) - allowed} == {NO_FAMILY}
        # Only the lower half of an argument is a family: the kernel takes no more of it either.
        assert asked(call, (1 << 32) | 40) == NO_FAMILY


@pytest.mark.parametrize("name", MACHINES)
def test_the_program_refuses_every_call_of_another_architecture(name: str) -> None:
    made = program(name)
    assert made is not None
    others = [one.audit for other, one in MACHINES.items() if other != name] + [0x40000003]
    for other in others:
        answers = {verdict(made, number, 1, architecture=other) for number in range(500)}
        assert answers == {UNKNOWN}
    if MACHINES[name].x32:
        own = MACHINES[name].audit
        assert verdict(made, X32 | MACHINES[name].socket, 1, architecture=own) == UNKNOWN


def test_a_machine_that_is_not_known_has_no_program() -> None:
    assert program("pdp11") is None


KEYCTL, ADD_KEY = {"x86_64": (250, 248), "aarch64": (219, 217)}.get(platform.machine(), (0, 0))
RINGS = {"of the session": -3, "of the user": -4}
"""KEY_SPEC_SESSION_KEYRING and KEY_SPEC_USER_KEYRING."""
BEGIN = "import ctypes, os, sys; libc = ctypes.CDLL(None, use_errno=True); "


def holder(ring: int) -> str:
    """Run the rest of the command line with a key in the ring, for a minute at most."""
    return (
        f"{BEGIN}libc.syscall({KEYCTL}, 1, None); "
        f'key = libc.syscall({ADD_KEY}, b"user", b"held", b"{SECRET}", {len(SECRET)}, {ring}); '
        f"libc.syscall({KEYCTL}, 15, key, 60); os.execvp(sys.argv[1], sys.argv[1:])"
    )


def finder(ring: int) -> str:
    """Look for the key in the ring and print what it holds."""
    return (
        # Linked to a keyring of its own, the user's is possessed, and so are the keys in it.
        f"{BEGIN}{ring} == -4 and libc.syscall({KEYCTL}, 8, -4, -3); "
        f'key = libc.syscall({KEYCTL}, 10, {ring}, b"user", b"held", 0); '
        "room = ctypes.create_string_buffer(99); "
        f"key > 0 and libc.syscall({KEYCTL}, 11, key, room, 99); "
        "print(key, os.strerror(ctypes.get_errno()), room.value.decode())"
    )


def interpreter(place: Place) -> str:
    """A Python that the user of the place can run."""
    found = python_of(*place.become)
    assert found is not None
    return found


@pytest.fixture(params=IDENTITIES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with places(request) as found:
        yield found


class TestForReal:
    """The same, asked of this machine's kernel."""

    pytestmark = for_real

    @pytest.mark.parametrize("name", RINGS)
    async def test_no_confined_command_finds_the_keys_of_the_server(
        self, place: Place, name: str
    ) -> None:
        ring, python = RINGS[name], interpreter(place)
        holding = [python, "-c", holder(ring)]
        plain = [*place.become, *holding, python, "-c", finder(ring)]
        found = await anyio.run_process(plain)
        if SECRET.encode() not in found.stdout:
            pytest.skip("this machine lets nobody use the kernel's keyrings: no attempt is one")
        async with attack(place, before=holding) as one:
            for sandbox in (*CONFINING.values(), OPEN):
                told = await run(one, f"{python} -c '{finder(ring)}'", sandbox)
                # What nothing confines is the user, who has a keyring; not the server's session.
                assert (SECRET in told) is (sandbox is OPEN and name == "of the user")
                if sandbox is not OPEN:
                    assert "Function not implemented" in told

    @pytest.mark.parametrize("family", ["AF_VSOCK", "AF_PACKET", "AF_ALG", "AF_TIPC"])
    async def test_no_confined_command_makes_a_socket_that_a_network_does_not_confine(
        self, place: Place, family: str
    ) -> None:
        python = interpreter(place)
        script = f"{python} -c 'import socket; socket.socket(socket.{family}, socket.SOCK_RAW)'"
        external = ExternalSandbox(network_access="restricted")
        for policy in (workspace_write(), workspace_write(network=True), external):
            result = await place.run(script, policy)
            assert "Address family not supported" in result.output

    async def test_system_calls_that_programs_need_are_allowed(self, place: Place) -> None:
        python = interpreter(place)
        script = (
            f"{python} -c 'import socket; [socket.socket(f, socket.SOCK_DGRAM) for f in "
            "(socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)]; socket.socketpair(); "
            'socket.socket(socket.AF_NETLINK, socket.SOCK_RAW); print("made")\''
        )
        assert (await place.run(script, workspace_write())).output == "made\n"

    async def test_io_uring_is_not_there(self, place: Place) -> None:
        python = interpreter(place)
        script = f"{python} -c '{BEGIN}print(libc.syscall(425, 1, None), ctypes.get_errno())'"
        assert (await place.run(script, workspace_write())).output == f"-1 {errno.ENOSYS}\n"


async def run(one: Attack, command: str, sandbox: Any) -> str:
    thread = await one.thread(sandbox, "never")
    await one.turn(thread, runs(command), says("done"))
    return one.peer.completed_items("commandExecution")[-1]["aggregatedOutput"]
