"""`harness faulty --listen`: a server with injected faults, for clients that connect."""

from collections.abc import Callable, Sequence

from harness.cli.commands.faulty import OPTION, Say
from harness.cli.commands.proxy import find_server
from harness.cli.commands.proxy_sockets import RelayOptions, take_clients
from harness.faults.live.chain import FaultChain
from harness.faults.live.lines import BreakableSide
from harness.faults.live.relay import Side


def listen(
    address: str,
    command: Sequence[str],
    chain: Callable[[int], FaultChain],
    quiet: float,
    say: Say,
    bad_line: Callable[[BreakableSide, int], Side] | None = None,
) -> int:
    """Serve clients at an address until a signal or the server's end; return the exit status.

    `chain` returns the faults for the client with a number. Raises `UsageError` if the address,
    the command or a fault is not usable.
    """
    find_server(command, OPTION)
    chain(0)
    between = RelayOptions(
        chain, quiet, lambda line: say(f"faulty: {line}"), OPTION, bad_line=bad_line
    )
    return take_clients(address, command, between)
