"""Filter of system calls for confined commands: a program for bubblewrap's `--seccomp`.

Namespaces confine files, processes and the network, but not these:

- **keyrings** (keyctl, add_key, request_key): the keys of the user who runs the server;
- **sockets of other families** than Unix, Internet and netlink, such as AF_VSOCK, which reaches
  the host of a virtual machine from every network namespace; io_uring, which can make sockets
  without this filter, is refused;
- **calls of another architecture** (32 bit programs, x32), which have other numbers.

All fail with an errno that means "this kernel does not have it" to programs.
"""

import errno
import platform
import struct
from collections.abc import Sequence
from dataclasses import dataclass

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K
_ALLOW = 0x7FFF0000  # SECCOMP_RET_ALLOW
_ERRNO = 0x00050000  # SECCOMP_RET_ERRNO
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets in struct seccomp_data; that of the argument's lower half: these machines are
little-endian."""
_X32 = 0x40000000
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
"""Socket families that a network namespace confines."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Numbers of one architecture, from Linux's audit.h and unistd.h."""

    audit: int
    socket: int
    socketpair: int
    refused_calls: tuple[int, ...]
    """The numbers of keyctl, add_key, request_key, io_uring_setup."""
    x32: bool = False


MACHINES = {
    "x86_64": Machine(0xC000003E, 41, 53, (250, 248, 249, 425), x32=True),
    "aarch64": Machine(0xC00000B7, 198, 199, (219, 217, 218, 425)),
}

_Instruction = tuple[int, int, int, int]


def program(machine: str | None = None) -> bytes | None:
    """Return the program for `machine`, by default this one; None for an unknown architecture."""
    numbers = MACHINES.get(machine or platform.machine())
    return (
        None
        if numbers is None
        else b"".join(struct.pack("=HBBI", *one) for one in _instructions(numbers))
    )


def _instructions(machine: Machine) -> Sequence[_Instruction]:
    absent, family = _ERRNO | errno.ENOSYS, _ERRNO | errno.EAFNOSUPPORT
    instructions: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, machine.audit),
        (_RETURN, 0, 0, absent),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine.x32:
        instructions += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, absent)]
    for number in machine.refused_calls:
        instructions += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, absent)]
    # A jump counts the instructions that it skips. Any call except socket(pair) is allowed here.
    instructions += [
        (_EQUAL, 2, 0, machine.socket),
        (_EQUAL, 1, 0, machine.socketpair),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
    ]
    for number in FAMILIES.values():
        instructions += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    return [*instructions, (_RETURN, 0, 0, family)]
