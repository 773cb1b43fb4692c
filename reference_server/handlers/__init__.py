"""One function per method, in files per resource, found by walking this package.

Here lives what each request does, step by step: check, change state, answer, then go on. A handler
raises `Refusal` to refuse. To add a method: a row in `harness.wire.methods`, a function here.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

from reference_server.handlers.registry import AnyHandler, registered

FIRST_TURN = ("thread/start", "turn/start")
"""What a client asks for to have its first turn."""


def handler_of(method: str) -> AnyHandler | None:
    """Give the handler of a method, if it has one."""
    return registered().get(method) or _by_name(method) or discover().get(method)


def discover_first() -> None:
    """Import what a first turn needs; may run in a worker thread."""
    for method in FIRST_TURN:
        handler_of(method)


def _by_name(method: str) -> AnyHandler | None:
    """Look in the module that is named like the resource: the others need not be there yet."""
    resource = method.partition("/")[0]
    if resource not in _modules():
        return None
    importlib.import_module(f"{__name__}.{resource}")
    return registered().get(method)


@cache
def _modules() -> frozenset[str]:
    return frozenset(module.name for module in pkgutil.iter_modules(__path__))


@cache
def discover() -> Mapping[str, AnyHandler]:
    """Import every module of the package and give the handlers by method."""
    for module in sorted(_modules()):
        importlib.import_module(f"{__name__}.{module}")
    return registered()


# The other modules are imported with the first request that needs them, after the handshake.
importlib.import_module(f"{__name__}.initialize")
