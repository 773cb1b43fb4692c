"""Links on the way to a folder, and which of them a command may have made.

Here lives what is remembered of folders that the client named: where they led when they were first
used. Whether a command can still put a link in the way is `warden.py`'s to see.
"""

import os
from collections.abc import Iterable

from reference_server.exec.mounts import Refused
from reference_server.exec.places import inside

_MOST = 40
"""Links in one path, as the kernel has it."""


def follow(path: str) -> tuple[str, list[str]]:
    """Follow an absolute path once: what it leads to, and the links, each where it really lies.

    As the kernel does it; a path of too many links ends at one of them.
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
            target = os.readlink(here) if len(links) < _MOST else ""
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
    """Where the roots of one server led to when they were first used, and what commands write."""

    def __init__(self) -> None:
        self._led: dict[str, str] = {}
        self._written: set[str] = set()

    def are_written(self, roots: Iterable[str]) -> None:
        """Remember that commands write in these resolved folders: what is there may be theirs."""
        self._written |= set(roots)

    def judge(self, folder: str, real: str) -> None:
        """Raise Refused where a command may have made the folder lead to what it leads to."""
        if self._led.get(folder) == real:
            return
        led, links = follow(folder)
        if led != real:
            raise Refused(f"the root {folder} leads to another place each time it is looked at")
        for link in links:
            if any(inside(link, root) and link != root for root in self._written):
                raise Refused(
                    f"the root {folder} leads through the link {link}, which a command may have "
                    f"made or changed; name the folder that is meant ({real}?)"
                )
        self._led[folder] = real
