"""Links on the way to what the command line names.

Somebody else may have made a link in the folder that the agent works in: the repository came with
it, or a command of an earlier run left it. Followed, it would have the last message written over a
file of the user or a hook of git, have a file that commands cannot read sent to the model as a
schema, or make another folder writable.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from reference_server.agent_exec.ending import NotBegun
from reference_server.sandbox.links import follow
from reference_server.sandbox.mounts import REPOSITORY
from reference_server.sandbox.places import inside, of_kernel


class GivenLinks:
    """Judges paths of the command line by the links on their way. All raise NotBegun.

    `folders`: where the agent works and may write, absolute; the repository around one counts too.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self._written = [os.path.realpath(one) for one in folders]
        self._repositories = [_repository_of(one) for one in self._written]

    def check_read(self, named: str, option: str) -> None:
        """Refuse a file to read that such a link leads to from elsewhere."""
        _check(named, option, self._repositories, leads=self._repositories)

    def check_root(self, named: str, option: str) -> None:
        """Refuse a writable folder that such a link leads to from elsewhere."""
        _check(named, option, self._written, leads=self._written)
        _check(named, option, self._repositories, leads=self._repositories)

    def check_written(self, named: str, option: str) -> None:
        """Refuse a file to write that such a link leads to: it may be in `.git`."""
        _check(named, option, self._repositories, leads=())


def _check(named: str, option: str, places: Sequence[str], *, leads: Sequence[str]) -> None:
    """Refuse a path with a link in one of these places, unless it leads to one of those."""
    # Not made normal: the way through a link and back by `..` leads elsewhere.
    real, links = follow(named if os.path.isabs(named) else os.path.join(os.getcwd(), named))
    if any(inside(real, place) for place in leads):
        return
    for link in links:
        if not of_kernel(link) and any(inside(link, place) for place in places):
            raise NotBegun(
                f"agent exec: {option} {named}: {link} is a link to elsewhere, which a command or "
                f"the repository may have made; name what is meant ({real}?)"
            )


def _repository_of(folder: str) -> str:
    """Return the repository that a folder is in; the folder, if there is none or it is a whole home.

    What leads to a file of the home must not count as staying in the repository.
    """
    home = os.path.realpath(os.path.expanduser("~"))
    for above in (folder, *map(str, Path(folder).parents)):
        if inside(home, above):
            break
        if os.path.lexists(os.path.join(above, REPOSITORY)):
            return above
    return folder
