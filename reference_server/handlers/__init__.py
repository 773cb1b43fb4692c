"""Handlers: one function per method, in files per resource, found by walking this package.

A handler raises `Refusal` to refuse. To add a method: a row in `harness.protocol.wire.methods`, a
function here.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

from reference_server.handlers.registry import AnyHandler, registered_handlers
from reference_server.late_imports import fast_imports

_MODULE_OF = {
    "thread/unarchive": "thread_archive",
    "thread/unsubscribe": "thread_loading",
    "thread/loaded/list": "thread_loading",
    "thread/compact/start": "compaction",
}
"""Modules that are not named like their method; a missing row only costs time."""


def handler_of(method: str) -> AnyHandler | None:
    """Return the handler of a method, or None. Only its own module is imported, where possible."""
    if (handler := registered_handlers().get(method)) is not None:
        return handler
    with fast_imports():
        return _find_by_name(method) or discover().get(method)


def _find_by_name(method: str) -> AnyHandler | None:
    """Return the handler from a module named like the method or its resource, else None."""
    resource, _, rest = method.partition("/")
    verb = rest.partition("/")[0]
    for name in (_MODULE_OF.get(method), f"{resource}_{verb}", resource):
        if name in _modules():
            importlib.import_module(f"{__name__}.{name}")
            if (handler := registered_handlers().get(method)) is not None:
                return handler
    return None


@cache
def _modules() -> frozenset[str]:
    return frozenset(module.name for module in pkgutil.iter_modules(__path__))


@cache
def discover() -> Mapping[str, AnyHandler]:
    """Import every module of the package and return the handlers by method."""
    for module in sorted(_modules()):
        importlib.import_module(f"{__name__}.{module}")
    return registered_handlers()


# The other modules are imported with the first request that needs them, after the handshake.
importlib.import_module(f"{__name__}.initialize")
