"""The start of a run whose programs are confined: what this machine needs for it."""

import os
import threading

from harness.client.target.confine.command import describe_network_problem, find_problem
from harness.client.target.confine.network import enter_own_network
from harness.errors import UsageError

OPTION = "--confine"
_AS_ROOT = (
    "confined as root: a server's own sandbox of namespaces does not work inside, and findings on "
    "commands and patches may come from that; an ordinary user loses nothing"
)


def enter_confined_run(*, is_required: bool) -> tuple[bool, str]:
    """Prepare this process for confined programs: from now on its network is loopback alone.

    Returns whether programs can be confined, and a line for the summary: why they cannot be, or
    what is lost, "" for nothing. Raises `UsageError` if they cannot be and that `is_required`. Call
    it before any thread or program is started.
    """
    problem = find_problem()
    if not problem and (cause := enter_own_network()):
        threads = threading.active_count()
        cause = f"{cause}, with {threads} threads" if threads > 1 else cause
        problem = describe_network_problem(cause)
    if problem and is_required:
        raise UsageError(f"{OPTION}: nothing can be confined here: {problem}")
    if problem:
        return False, f"NOT CONFINED: {problem}"
    return True, _AS_ROOT if os.geteuid() == 0 else ""
