"""Probe of whether bubblewrap works on this machine.

It may be installed and still not work: user namespaces may be off, or /proc may not be mountable
inside another container.
"""

import os
import shutil
from collections.abc import Mapping

from reference_server.sandbox.process import Command, run

PLACES = "/usr/bin:/usr/local/bin:/bin"
"""Folders searched before the server's PATH, which may name folders that others can write to."""
ADVICE = "install the package `bubblewrap`, or allow user namespaces"
_BOUND = 10.0


class SandboxUnavailable(Exception):
    """A policy cannot be enforced here, so the command must not run; str() says why."""


class Probe:
    """Results of probes, one per set of options. A missing bubblewrap is looked for each time."""

    def __init__(self) -> None:
        self._tried: dict[tuple[str, ...], str | None] = {}

    def program(self) -> str:
        """Return the path of bubblewrap. Raises SandboxUnavailable if it is not installed."""
        path = shutil.which("bwrap", path=f"{PLACES}:{os.environ.get('PATH', '')}")
        if path is None:
            raise SandboxUnavailable(f"no sandbox: bubblewrap (bwrap) was not found; {ADVICE}")
        return os.path.realpath(path)

    async def require(self, *options: str, inputs: Mapping[int, bytes]) -> str:
        """Return the path of a bubblewrap that works with these options. Raises SandboxUnavailable.

        `inputs`: see `Command`.
        """
        program = self.program()
        key = (program, *options)
        if key not in self._tried:
            self._tried[key] = await _fault(program, options, inputs)
        if fault := self._tried[key]:
            raise SandboxUnavailable(f"no sandbox: {program} does not work here: {fault}; {ADVICE}")
        return program


async def _fault(program: str, options: tuple[str, ...], inputs: Mapping[int, bytes]) -> str | None:
    async def ignore(_: str) -> None:
        pass

    wrapper = (program, *options, "--")
    command = Command(("true",), "/", timeout=_BOUND, wrapper=wrapper, inputs=inputs)
    result = await run(command, ignore)
    if result.exit_code == 0:
        return None
    lines = result.output.strip().splitlines()
    return result.failure or (lines[0] if lines else f"it ended with status {result.exit_code}")
