"""The cluster of a run with `--on`."""

import argparse
import contextlib

import pytest

from harness.errors import UsageError
from harness.play.config import Config
from harness.search.cluster.connection import Cluster, open_cluster


def open_run_cluster(
    pytest_config: pytest.Config, option: argparse.Namespace, config: Config
) -> Cluster | None:
    """Return the cluster of a run, open until pytest ends; None without `--on`.

    Raises `UsageError` if it cannot be used, or for an option that a run on it cannot have.
    """
    if not option.on or pytest_config.option.collectonly:
        return None
    problems = {
        "-n": getattr(pytest_config.option, "numprocesses", None) and "the cluster has workers",
        "-m fuzz": not option.harness_run and option.markexpr and "give harness fuzz --on",
        "--snapshots": option.snapshots and "its scenarios are played again on this machine",
        "--confine": option.confine and "servers are not confined on a cluster",
        "--confine-auto": option.confine_auto and "servers are not confined on a cluster",
    }
    for name, problem in problems.items():
        if problem:
            raise UsageError(f"--on {option.on}: leave out {name}: {problem}")
    opened = contextlib.ExitStack()
    pytest_config.add_cleanup(opened.close)
    return opened.enter_context(open_cluster(option.on, config))
