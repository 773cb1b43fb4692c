"""A network of loopback alone for this process and all that it starts from now on.

The scripted model, the servers and the harness share one loopback, so nothing has to be forwarded,
and nothing else of the machine listens there.
"""

import ctypes
import fcntl
import os
import socket
import struct

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_GET_FLAGS, _SET_FLAGS, _IS_UP = 0x8913, 0x8914, 1


def enter_own_network() -> str:
    """Move this process into a network namespace; return why that is not possible, "" if it is.

    Threads that already run stay outside, and without root's rights there may be none.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(_NEW_NETWORK) != 0:
        if libc.unshare(_NEW_USER | _NEW_NETWORK) != 0:
            return os.strerror(ctypes.get_errno())
        maps = {"setgroups": "deny", "uid_map": f"{uid} {uid} 1", "gid_map": f"{gid} {gid} 1"}
        try:
            for name, text in maps.items():
                with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                    file.write(text)
        except OSError as error:
            return f"{error.filename}: {error.strerror}"
    try:
        _start_loopback()
    except OSError as error:
        return f"its loopback cannot be started: {error.strerror}"
    return ""


def _start_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        request = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(handle, _GET_FLAGS, request)[:18])[1]
        fcntl.ioctl(handle, _SET_FLAGS, struct.pack("16sh", b"lo", flags | _IS_UP))
