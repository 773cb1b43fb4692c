"""Finds out, once, which commands a probed agent does not know: `exec`, `mcp`, `mcp login`.

A command that fails may be broken, and is then judged. One that the agent does not know is refused
like a word that no program knows: so both are run, with the same words behind them, and the agent
is asked whether it says the same of both. It must name the word and end with the same status, not
0; who says anything else of the command knows it.
"""

import contextlib
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from harness.client.target.profile import Profile
from harness.client.target.program import NotStarted
from harness.play.agent_mcp.run import Finished
from harness.scenario.surfaces import COMMANDS, EXEC_COMMAND, LOGIN_COMMAND, MCP_COMMAND

UNKNOWN: Final = "zqxj"
# The words of a command, and the place of the one that an agent may not know.
_MCP: Final = (("mcp", "list"), 0)
_LOGINS: Final = ((("mcp", "login", "nobody"), 1), (("mcp", "logout", "nobody"), 1))

Ask = Callable[[Sequence[str]], Awaitable[Finished]]


class CommandProber:
    """Probes of one worker's agent. `ask` runs it with these words, and nothing to read.

    An agent that seems to know none of its commands is broken: then nothing is said to be absent.
    """

    def __init__(self, profile: Profile, ask: Ask) -> None:
        self._profile = profile
        self._ask = ask
        self._known: dict[str, bool] = {}

    async def lacking(self, needs: Sequence[str]) -> list[str]:
        """Those needs that are commands which the agent does not know."""
        if self._profile.capabilities != "probe":
            return []
        # One that cannot be started is told by the scenario that wants to.
        with contextlib.suppress(NotStarted):
            return [need for need in needs if not await self._offers(need)]
        return []

    async def _offers(self, need: str) -> bool:
        if need not in COMMANDS or await self._knows(need):
            return True
        other = {EXEC_COMMAND: MCP_COMMAND, MCP_COMMAND: EXEC_COMMAND}.get(need)
        return other is not None and not await self._knows(other)

    async def _knows(self, need: str) -> bool:
        if need not in self._known:
            self._known[need] = await self._asked(need)
        return self._known[need]

    async def _asked(self, need: str) -> bool:
        if need == MCP_COMMAND:
            return not await self._refuses(*_MCP)
        if need == LOGIN_COMMAND:
            for words, place in _LOGINS:
                if not await self._refuses(words, place):
                    return True
            return False
        words = self._profile.exec.arguments
        # Options alone name no command.
        return not words or words[0].startswith("-") or not await self._refuses(words, 0)

    async def _refuses(self, words: Sequence[str], place: int) -> bool:
        """Return whether the word at that place is refused like one that no program knows."""
        control = [*words[:place], UNKNOWN, *words[place + 1 :]]
        unknown = await self._ask(control)
        if unknown.cut or not unknown.status or unknown.status < 0:
            return False
        return refused_alike(words[place], await self._ask(words), unknown)


def refused_alike(word: str, asked: Finished, unknown: Finished) -> bool:
    """Return whether a run says of a word what the agent says of `UNKNOWN`, and names it."""
    if asked.cut or asked.status != unknown.status:
        return False
    said = _named(asked, word)
    return bool(said) and said == _named(unknown, word)


def _named(finished: Finished, word: str) -> list[str]:
    """The lines that name either word, with the same mark in the place of both."""
    printed = (finished.stdout + b"\n" + finished.stderr).decode("utf-8", "replace")
    either = re.compile(rf"(?<![A-Za-z0-9_])({re.escape(word)}|{UNKNOWN})(?![A-Za-z0-9_])")
    return [either.sub("…", line) for line in printed.splitlines() if either.search(line)]
