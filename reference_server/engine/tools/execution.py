"""Preparation of commands: environment, sandbox, lasting rules. `shell` carries out the calls."""

import logging
import os
from dataclasses import dataclass
from functools import partial

from anyio import to_thread

from harness.protocol.wire.settings import DangerFullAccess, WorkspaceWrite
from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.engine.approvals import CommandAnswer
from reference_server.sandbox.environment import command_environment, path_without
from reference_server.sandbox.process import Finished, Running
from reference_server.sandbox.rules import NETWORK_FILE, BadRule, RulesFile
from reference_server.sandbox.sandbox import Confinement, Sandbox, looks_denied, sandbox_failure
from reference_server.settings import ThreadSettings

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RuleCoverage:
    """Coverage of a command by lasting rules, before the client is asked.

    `is_allowed`: they cover all of it; `network`: they also let it reach the network; `is_trusted`:
    each part of it is covered by a rule or can only read.
    """

    is_allowed: bool
    network: bool
    is_trusted: bool


@dataclass(frozen=True, slots=True)
class PreparedCommand:
    """A command that is ready to run, and its confinement."""

    process: Running
    confinement: Confinement

    def was_denied(self, finished: Finished, *, forbidden_files: bool = True) -> bool:
        """Return whether the sandbox seems to have stopped it.

        Without `forbidden_files`, a stop by a hidden file does not count, only one by the policy.
        """
        return looks_denied(finished, self.confinement, forbidden_files=forbidden_files)

    def sandbox_failure(self, finished: Finished) -> str | None:
        """Return why the sandbox itself failed, so that nothing ran; None if the command ran."""
        return sandbox_failure(finished, self.confinement)


class Execution:
    """Preparation of one server's commands, and its lasting rules."""

    def __init__(self, home: Home, config: Config, sandbox: Sandbox) -> None:
        self._rules = RulesFile(home.root)
        self._network_rules = RulesFile(home.root, NETWORK_FILE)
        self._sandbox = sandbox
        self._environment = config.environment
        self._variables = config.command_variables

    async def prepare(
        self,
        argv: tuple[str, ...],
        cwd: str,
        settings: ThreadSettings,
        *,
        tty: bool,
        timeout: float | None,
        outside: bool,
        network: bool,
        by_trust: bool,
    ) -> PreparedCommand:
        """Prepare a command, with its environment and its sandbox.

        `outside`: without sandbox; `network`: with the network; `by_trust`: it runs without asking
        the client, since its programs can only read.
        Raises SandboxUnavailable if the policy of `settings` cannot be enforced.
        """
        env = command_environment(self._environment, self._variables, tty=tty)
        if outside or by_trust:
            # A program in a folder that the model may write must not replace the one that the
            # client knows by this name.
            env["PATH"] = path_without(env.get("PATH", os.defpath), _writable_folders(settings))
        confinement = await self._sandbox.confine(
            DangerFullAccess() if outside else settings.sandbox,
            workspace=settings.cwd,
            cwd=cwd,
            env=env,
            tty=tty,
            network=network,
        )
        command = confinement.command(argv, cwd, tty=tty, timeout=timeout)
        return PreparedCommand(Running(command), confinement)

    def rule_coverage(self, argv: tuple[str, ...], cwd: str, workspace: str) -> RuleCoverage:
        """Return which lasting rules cover a command, and whether it can only read.

        `workspace`: the thread's working directory; `cwd`: that of the command.
        """
        rules = self._rules.read()
        network = self._network_rules.read().allow(argv, cwd)
        return RuleCoverage(
            is_allowed=network or rules.allow(argv, cwd),
            network=network,
            is_trusted=rules.allow(argv, cwd, trusted_in=workspace),
        )

    async def keep_rule(self, argv: tuple[str, ...], cwd: str, answer: CommandAnswer) -> None:
        """Store the client's rule for later commands.

        Without a prefix the rule covers only this command in this folder, as the client has seen no
        more. A rule that cannot be stored is logged; the command runs only this time.
        """
        rules = self._network_rules if answer.network else self._rules
        if answer.prefix is None:
            add = partial(rules.add_exactly, argv, cwd)
        else:
            add = partial(rules.add, answer.prefix)
        try:
            await to_thread.run_sync(add, abandon_on_cancel=True)
        except (BadRule, OSError) as error:
            _log.warning("not kept as a rule: %s", error)


def _writable_folders(settings: ThreadSettings) -> list[str]:
    policy = settings.sandbox
    roots = policy.writable_roots if isinstance(policy, WorkspaceWrite) else []
    return [settings.cwd, *roots]
