"""Discovery of rules: every module of this package is imported, and its rules register themselves.

Nothing outside names a single rule. Code that judges servers calls `all_rules`, code that judges
clients `client_rules`; the docs and the book call `every_rule`.
"""

import importlib
import inspect
import pkgutil
from functools import cache
from pathlib import Path

import harness.judge.rules
from harness.judge.base import Monitor, Side, registered_rules


def all_rules() -> dict[str, type[Monitor]]:
    """Return every rule that judges a server, or the harness itself, by id, sorted."""
    return _of(Side.SERVER)


def client_rules() -> dict[str, type[Monitor]]:
    """Return every rule that judges a client, by id, sorted."""
    return _of(Side.CLIENT)


def every_rule() -> dict[str, type[Monitor]]:
    """Import all rule modules and return the rules for both sides, by id, sorted."""
    _import_all()
    return registered_rules()


def class_place(rule: type[Monitor]) -> str:
    """Return `Name at file:line` of a rule's class; a file below the current folder is relative."""
    path = Path(inspect.getsourcefile(rule) or rule.__module__)
    near = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return f"{rule.__name__} at {near}:{inspect.getsourcelines(rule)[1]}"


def _of(side: Side) -> dict[str, type[Monitor]]:
    return {name: one for name, one in every_rule().items() if one.side is side}


@cache
def _import_all() -> None:
    for module in pkgutil.walk_packages(harness.judge.rules.__path__, "harness.judge.rules."):
        importlib.import_module(module.name)
