"""What the client has accepted for the session.

Here lives the memory of `acceptForSession`. The session is the loaded thread: it is not shared with
other threads, and forgotten when the thread is unloaded or the server ends ("acceptForSession
(approve and cache for the session)"; which session is not shown). A later command is the same when
its words, its folder and where it is to run are the same; a later file change is covered when each
of its files is.
"""

from collections.abc import Iterable


class Consents:
    """The memory of one thread."""

    def __init__(self) -> None:
        self._commands: set[tuple[tuple[str, ...], str, bool]] = set()
        self._files: set[str] = set()

    def accept_command(self, argv: tuple[str, ...], cwd: str, *, outside: bool) -> None:
        """Remember a command; `outside`: it was accepted to run outside the sandbox."""
        self._commands.add((argv, cwd, outside))

    def has_command(self, argv: tuple[str, ...], cwd: str, *, outside: bool) -> bool:
        """Tell whether this very command was accepted."""
        return (argv, cwd, outside) in self._commands

    def accept_files(self, paths: Iterable[str]) -> None:
        """Remember the files of a change."""
        self._files.update(paths)

    def has_files(self, paths: Iterable[str]) -> bool:
        """Tell whether changes of all these files were accepted."""
        return self._files.issuperset(paths)
