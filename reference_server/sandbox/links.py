"""Check of symbolic links in the paths of writable roots, which an earlier command may have made.

`warden.py` notices a link that a command makes while another one starts.
"""

import os
from collections.abc import Iterable

from reference_server.sandbox.mounts import Refused
from reference_server.sandbox.places import is_inside

_MAX_LINKS = 40
"""Maximum links that are followed in one path: the kernel's own limit."""


def follow(path: str) -> tuple[str, list[str]]:
    """Follow an absolute path as the kernel does; return its target and the links on the way.

    Each link is returned by its real path. After _MAX_LINKS no link is followed, so the target is
    or contains one then.
    """
    rest = path.split("/")[::-1]
    position = "/"
    links: list[str] = []
    while rest:
        name = rest.pop()
        if name in ("", "."):
            continue
        if name == "..":
            position = os.path.dirname(position)
            continue
        current = os.path.join(position, name)
        try:
            target = os.readlink(current) if len(links) < _MAX_LINKS else ""
        except OSError:
            target = ""
        if not target:
            position = current
            continue
        links.append(current)
        rest += target.split("/")[::-1]
        position = "/" if target.startswith("/") else position
    return position, links


class KnownRoots:
    """Targets of roots when they were last accepted, and the folders that commands may write."""

    def __init__(self) -> None:
        self._targets: dict[str, str] = {}
        self._writable: set[str] = set()

    def add_writable(self, roots: Iterable[str]) -> None:
        """Remember resolved folders that commands may write, so that links there may be theirs."""
        self._writable |= set(roots)

    def check(self, folder: str, real: str) -> None:
        """Raise Refused if a command may have changed the target `real` of the root `folder`."""
        if self._targets.get(folder) == real:
            return
        target, links = follow(folder)
        if target != real:
            raise Refused(f"the root {folder} leads to a different place each time it is followed")
        for link in links:
            if any(is_inside(link, root) and link != root for root in self._writable):
                raise Refused(
                    f"the root {folder} leads through the link {link}, which a command may have "
                    f"made or changed; name the folder that is meant ({real}?)"
                )
        self._targets[folder] = real
