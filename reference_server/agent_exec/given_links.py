"""Checks of symbolic links in paths of the command line.

Somebody else may have made a link in the folder that the agent works in: the repository came with
it, or a command of an earlier run left it. Followed, it could overwrite a file of the user or a git
hook with the last message, send a file that commands cannot read to the model as a schema, or make
another folder writable.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from reference_server.agent_exec.ending import NotBegun
from reference_server.sandbox.links import follow
from reference_server.sandbox.mounts import REPOSITORY
from reference_server.sandbox.places import is_inside, is_kernel_path


class LinkGuard:
    """Judges paths of the command line by the links on their way. All raise NotBegun.

    `folders`: where the agent works and may write, absolute; the repository around one counts too.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self._written = [os.path.realpath(one) for one in folders]
        self._repositories = [_repository_of(one) for one in self._written]

    def check_read(self, path: str, option: str) -> None:
        """Refuse a file to read that such a link leads to from elsewhere."""
        _check(path, option, self._repositories, leads=self._repositories)

    def check_root(self, path: str, option: str) -> None:
        """Refuse a writable folder that such a link leads to from elsewhere."""
        _check(path, option, self._written, leads=self._written)
        _check(path, option, self._repositories, leads=self._repositories)

    def check_written(self, path: str, option: str) -> None:
        """Refuse a file to write that such a link leads to: it may be in `.git`."""
        _check(path, option, self._repositories, leads=())


def _check(path: str, option: str, places: Sequence[str], *, leads: Sequence[str]) -> None:
    """Refuse a path with a link in one of these places, unless it leads to one of those."""
    # Not made normal: the way through a link and back by `..` leads elsewhere.
    real, links = follow(path if os.path.isabs(path) else os.path.join(os.getcwd(), path))
    if any(is_inside(real, place) for place in leads):
        return
    for link in links:
        if not is_kernel_path(link) and any(is_inside(link, place) for place in places):
            raise NotBegun(
                f"agent exec: {option} {path}: {link} is a link to elsewhere, which a command or "
                f"the repository may have made; name what is meant ({real}?)"
            )


def _repository_of(folder: str) -> str:
    """Return the repository around a folder; the folder itself without one, or if it is a home.

    A link that leads to a file of the home must not count as staying in the repository.
    """
    home = os.path.realpath(os.path.expanduser("~"))
    for parent in (folder, *map(str, Path(folder).parents)):
        if is_inside(home, parent):
            break
        if os.path.lexists(os.path.join(parent, REPOSITORY)):
            return parent
    return folder
