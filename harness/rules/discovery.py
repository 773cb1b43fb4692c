"""Finds the rules: every module below this package is imported, and its rules register themselves.

Nothing outside names a single rule; whoever wants rules asks `all_rules`.
"""

import importlib
import pkgutil

import harness.rules
from harness.judge.base import Monitor, registered


def all_rules() -> dict[str, type[Monitor]]:
    """Every rule by id, sorted."""
    for module in pkgutil.walk_packages(harness.rules.__path__, "harness.rules."):
        importlib.import_module(module.name)
    return registered()
