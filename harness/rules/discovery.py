"""Finds the rules: every module below this package is imported, and its rules register themselves.

Nothing outside names a single rule; whoever wants rules asks `all_rules`.
"""

import importlib
import pkgutil
from functools import cache

import harness.rules
from harness.judge.base import Monitor, registered


def all_rules() -> dict[str, type[Monitor]]:
    """Every rule by id, sorted."""
    _import_all()
    return registered()


@cache
def _import_all() -> None:
    for module in pkgutil.walk_packages(harness.rules.__path__, "harness.rules."):
        importlib.import_module(module.name)
