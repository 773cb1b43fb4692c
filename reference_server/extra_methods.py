"""Methods that the text lacks and a server with a dialect carries out itself."""

from collections.abc import Callable
from typing import NamedTuple

from harness.protocol.wire.base import WireModel
from harness.protocol.wire.rpc import ErrorCode
from reference_server.handlers.registry import AnyHandler


class ExtraMethod(NamedTuple):
    """The model of a method's params, its handler, and the code of params that do not fit."""

    params: type[WireModel]
    handler: AnyHandler
    malformed: ErrorCode = ErrorCode.INVALID_PARAMS


FindExtraMethod = Callable[[str], ExtraMethod | None]
"""Returns what carries out a method, None for one that there is not."""


def no_extra_method(_method: str) -> None:
    """Find nothing: the server has the methods of the text."""
