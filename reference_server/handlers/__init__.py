"""One function per method, in files per resource, found by walking this package.

Here lives what each request does, step by step: check, change state, answer, then go on. A handler
raises `Refusal` to refuse. To add a method: a row in `harness.wire.methods`, a function here.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

from reference_server.handlers.registry import AnyHandler, registered


def handler_of(method: str) -> AnyHandler | None:
    """Give the handler of a method, if it has one."""
    return registered().get(method) or discover().get(method)


@cache
def discover() -> Mapping[str, AnyHandler]:
    """Import every module of the package and give the handlers by method."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return registered()


# The other modules are imported with the first request that needs them, after the handshake.
importlib.import_module(f"{__name__}.initialize")
