"""Symbolic links in the paths of writable roots, which an earlier command may have made.

A link that a command makes while another starts is noticed by `warden.py`.
"""

import os
from collections.abc import Iterable

from reference_server.sandbox.mounts import Refused
from reference_server.sandbox.places import inside

_MAX_LINKS = 40
"""Links that are followed in one path: the kernel's own limit."""


def follow(path: str) -> tuple[str, list[str]]:
    """Follow an absolute path as the kernel does and return its target, and the links on the way.

    Each link is given by its real path. A path with too many links ends at one of them.
    """
    rest = path.split("/")[::-1]
    at = "/"
    links: list[str] = []
    while rest:
        name = rest.pop()
        if name in ("", "."):
            continue
        if name == "..":
            at = os.path.dirname(at)
            continue
        here = os.path.join(at, name)
        try:
            target = os.readlink(here) if len(links) < _MAX_LINKS else ""
        except OSError:
            target = ""
        if not target:
            at = here
            continue
        links.append(here)
        rest += target.split("/")[::-1]
        at = "/" if target.startswith("/") else at
    return at, links


class KnownRoots:
    """Targets of roots when they were first used, and the folders that commands may write."""

    def __init__(self) -> None:
        self._led: dict[str, str] = {}
        self._written: set[str] = set()

    def are_written(self, roots: Iterable[str]) -> None:
        """Remember that commands may write in these resolved folders, so links there are theirs."""
        self._written |= set(roots)

    def judge(self, folder: str, real: str) -> None:
        """Raise Refused if a command may have changed where the folder leads."""
        if self._led.get(folder) == real:
            return
        led, links = follow(folder)
        if led != real:
            raise Refused(f"the root {folder} leads to a different place each time it is followed")
        for link in links:
            if any(inside(link, root) and link != root for root in self._written):
                raise Refused(
                    f"the root {folder} leads through the link {link}, which a command may have "
                    f"made or changed; name the folder that is meant ({real}?)"
                )
        self._led[folder] = real
