"""`harness faulty --listen`: a server with faults in it, for clients that connect."""

from collections.abc import Callable, Sequence

from harness.cli.commands.faulty import OPTION, Say
from harness.cli.commands.proxy import found
from harness.cli.commands.proxy_sockets import Between, take_clients
from harness.faults.live.chain import FaultChain


def listen(
    address: str, command: Sequence[str], chain: Callable[[int], FaultChain], quiet: float, say: Say
) -> int:
    """Serve clients at an address until a signal or the end of the server; gives the exit status.

    `chain` makes the faults for the client of a number. Raises `UsageError`.
    """
    found(command, OPTION)
    chain(0)
    between = Between(chain, quiet, lambda line: say(f"faulty: {line}"), OPTION)
    return take_clients(address, command, between)
