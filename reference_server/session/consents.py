"""Operations that the client accepted for the session (`acceptForSession`).

A consent belongs to one loaded thread and ends when the thread is unloaded or the server exits.
The specification says "approve and cache for the session" and does not define the session. A
consent covers later commands with the same argv and cwd that run in the same place, inside or
outside the sandbox. A later file change is covered if each of its files was accepted before. A
consent given under one sandbox policy does not hold under another.
"""

from collections.abc import Iterable

from harness.protocol.wire.settings import SandboxPolicy


class Consents:
    """Operations accepted for the session on one thread."""

    def __init__(self) -> None:
        self._commands: dict[tuple[bytes, tuple[str, ...], str, bool], set[str | None]] = {}
        self._files: set[tuple[bytes, str]] = set()

    def accept_command(
        self,
        under: SandboxPolicy,
        argv: tuple[str, ...],
        cwd: str,
        *,
        outside: bool,
        reason: str | None,
    ) -> None:
        """Remember a command and the reason that the client was shown.

        `outside`: it was accepted to run outside the sandbox.
        """
        self._commands.setdefault((under.encode(), argv, cwd, outside), set()).add(reason)

    def has_command(
        self, under: SandboxPolicy, argv: tuple[str, ...], cwd: str, *, outside: bool
    ) -> bool:
        """Return whether a command with this argv, cwd and place was accepted under this policy."""
        return (under.encode(), argv, cwd, outside) in self._commands

    def has_question(
        self, under: SandboxPolicy, argv: tuple[str, ...], cwd: str, reason: str | None
    ) -> bool:
        """Return whether this command was accepted for this reason, to run in the sandbox."""
        return reason in self._commands.get((under.encode(), argv, cwd, False), ())

    def accept_files(self, under: SandboxPolicy, paths: Iterable[str]) -> None:
        """Remember the files of an accepted change."""
        self._files.update((under.encode(), path) for path in paths)

    def has_files(self, under: SandboxPolicy, paths: Iterable[str]) -> bool:
        """Return whether changes of all these files were accepted under this policy."""
        policy = under.encode()
        return self._files.issuperset((policy, path) for path in paths)
