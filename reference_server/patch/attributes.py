"""Copying of extended attributes from an old file to the new one.

User attributes and access lists are copied, on Linux only. Others (capabilities, security labels)
belong to the program or the place, and are not copied.
"""

import contextlib
import os
import sys

_ACCESS_LIST = "system.posix_acl_access"


def copy_attributes(source: int, target: int) -> None:
    """Copy attributes between open files, as far as the target's file system allows."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError):
        names = os.listxattr(source)
        if _ACCESS_LIST not in names:
            # The folder may have given the new file an access list, which could admit more users
            # than the old file did.
            with contextlib.suppress(OSError):
                mode = os.fstat(target).st_mode
                os.removexattr(target, _ACCESS_LIST)
                os.fchmod(target, mode & 0o7777)
        for name in names:
            if name.startswith("user.") or name == _ACCESS_LIST:
                with contextlib.suppress(OSError):
                    os.setxattr(target, name, os.getxattr(source, name))
