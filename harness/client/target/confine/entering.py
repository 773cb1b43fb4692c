"""The start of a run whose programs are confined: what this machine needs for it."""

import threading

from harness.client.target.confine.command import describe_network_problem, find_problem
from harness.client.target.confine.network import enter_own_network
from harness.errors import UsageError

OPTION, AUTO_OPTION = "--confine", "--confine-auto"


def enter_confined_run(*, is_required: bool) -> str:
    """Prepare this process for confined programs: from now on its network is loopback alone.

    Returns "" if programs can be confined. If not, raises `UsageError` if that `is_required`, else
    returns a line that says why. Call it before any thread or program is started.
    """
    problem = find_problem()
    if not problem and (cause := _enter_network()):
        problem = describe_network_problem(cause)
    if not problem:
        return ""
    if is_required:
        raise UsageError(f"{OPTION}: nothing can be confined here: {problem}")
    return f"NOT CONFINED: {problem}"


def _enter_network() -> str:
    cause = enter_own_network()
    return (
        f"{cause}; {threading.active_count()} threads run"
        if (cause and threading.active_count() > 1)
        else cause
    )
