"""Probes for commands that an agent does not know: `exec`, `mcp`, `mcp login`.

A command that fails may be broken, and is then judged. An unknown command is rejected like a word
that no program knows: so both are run with the same arguments, and the outputs are compared. The
agent must name the word and end with the same status, not 0; with any other output it knows the
command.
"""

import contextlib
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from harness.client.target.profile import Profile
from harness.client.target.program import NotStarted
from harness.play.agent_mcp.run import CommandResult
from harness.scenario.surfaces import COMMANDS, EXEC_COMMAND, LOGIN_COMMAND, MCP_COMMAND

UNKNOWN_WORD: Final = "zqxj"
# Words of a command, and the index of the word that an agent may not know.
_MCP: Final = (("mcp", "list"), 0)
_LOGINS: Final = ((("mcp", "login", "nobody"), 1), (("mcp", "logout", "nobody"), 1))

Ask = Callable[[Sequence[str]], Awaitable[CommandResult]]


class CommandProber:
    """Probes of one worker's agent. `ask` runs the agent with these words, without input.

    An agent that seems to know none of its commands is broken: then no command counts as missing.
    """

    def __init__(self, profile: Profile, ask: Ask) -> None:
        self._profile = profile
        self._ask = ask
        self._known_commands: dict[str, bool] = {}

    async def missing_needs(self, needs: Sequence[str]) -> list[str]:
        """Return the needs that are commands unknown to the agent; [] if needs are not probed."""
        if self._profile.capabilities != "probe":
            return []
        # The scenario reports a program that cannot be started.
        with contextlib.suppress(NotStarted):
            return [need for need in needs if not await self._is_offered(need)]
        return []

    async def _is_offered(self, need: str) -> bool:
        if need not in COMMANDS or await self._is_known(need):
            return True
        other = {EXEC_COMMAND: MCP_COMMAND, MCP_COMMAND: EXEC_COMMAND}.get(need)
        return other is not None and not await self._is_known(other)

    async def _is_known(self, need: str) -> bool:
        if need not in self._known_commands:
            self._known_commands[need] = await self._probe_command(need)
        return self._known_commands[need]

    async def _probe_command(self, need: str) -> bool:
        if need == MCP_COMMAND:
            return not await self._is_refused(*_MCP)
        if need == LOGIN_COMMAND:
            for words, place in _LOGINS:
                if not await self._is_refused(words, place):
                    return True
            return False
        words = self._profile.exec.arguments
        # Options alone name no command.
        return not words or words[0].startswith("-") or not await self._is_refused(words, 0)

    async def _is_refused(self, words: Sequence[str], place: int) -> bool:
        """Return whether the word at index `place` is rejected like one that no program knows."""
        control = [*words[:place], UNKNOWN_WORD, *words[place + 1 :]]
        unknown = await self._ask(control)
        if unknown.cut or not unknown.status or unknown.status < 0:
            return False
        return is_refused_alike(words[place], await self._ask(words), unknown)


def is_refused_alike(word: str, finished: CommandResult, unknown: CommandResult) -> bool:
    """Return whether a run names and rejects `word` as another one did `UNKNOWN_WORD`."""
    if finished.cut or finished.status != unknown.status:
        return False
    lines = _masked_lines(finished, word)
    return bool(lines) and lines == _masked_lines(unknown, word)


def _masked_lines(finished: CommandResult, word: str) -> list[str]:
    """Return the lines of output that name `word` or `UNKNOWN_WORD`, both masked."""
    printed = (finished.stdout + b"\n" + finished.stderr).decode("utf-8", "replace")
    either = re.compile(rf"(?<![A-Za-z0-9_])({re.escape(word)}|{UNKNOWN_WORD})(?![A-Za-z0-9_])")
    return [either.sub("…", line) for line in printed.splitlines() if either.search(line)]
