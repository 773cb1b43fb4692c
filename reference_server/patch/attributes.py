"""What a file has beside its content, owner and permissions.

Here live extended attributes of users and access lists, where the system has them. Others
(capabilities, labels) belong to the program or the place, and are not taken over.
"""

import contextlib
import os
import sys

_ACCESS_LIST = "system.posix_acl_access"


def copy_attributes(source: int, target: int) -> None:
    """Give an open file the attributes of another, as far as its file system takes them."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError):
        names = os.listxattr(source)
        if _ACCESS_LIST not in names:
            # One that the folder gave it would let in whom the old file kept out.
            with contextlib.suppress(OSError):
                mode = os.fstat(target).st_mode
                os.removexattr(target, _ACCESS_LIST)
                os.fchmod(target, mode & 0o7777)
        for name in names:
            if name.startswith("user.") or name == _ACCESS_LIST:
                with contextlib.suppress(OSError):
                    os.setxattr(target, name, os.getxattr(source, name))
