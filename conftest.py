"""Settings of hypothesis: `dev` by default, `ci` where CI is set, `soak` for a long search.

Interrupts are heeded, also by programs of tests. Collecting goes without garbage collection, and
tests with less of it. The plugin of the harness is registered by its entry point alone, never here.
A failure that hypothesis found is kept as a stored trace or a scenario; its database is no archive.
"""

import gc
import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# How long generating takes says something of the machine's load, nothing of what is tested.
UNHURRIED = [HealthCheck.too_slow]

settings.register_profile("dev", max_examples=50, deadline=None, suppress_health_check=UNHURRIED)
settings.register_profile(
    "ci",
    max_examples=100,
    derandomize=True,
    print_blob=True,
    deadline=None,
    database=None,
    suppress_health_check=UNHURRIED,
)
settings.register_profile(
    "soak",
    max_examples=5_000,
    deadline=None,
    suppress_health_check=UNHURRIED,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


# Whatever a shell starts behind `&`, or behind `nohup`, ignores one of them, and so would every
# program of every test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Import the test modules once for all workers."""
    from tests.imported_tests import fork_workers

    fork_workers(config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage: of what is made, nearly everything stays.

    To look through it again and again takes two fifths of the time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        # By default, a test that judges deeply nested messages takes 2.4 times as long.
        gc.set_threshold(10_000, 10, 10)
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests that may take long first, so that no worker is left with one at the end."""
    items.sort(key=_timeout_seconds, reverse=True)


def _timeout_seconds(item: pytest.Item) -> float:
    """Return the bound that the test sets itself, 0 if it has the usual one."""
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0]) if mark and mark.args else 0.0
