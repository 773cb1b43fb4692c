"""Methods that the text lacks and a server with a dialect carries out itself."""

from collections.abc import Callable
from typing import NamedTuple

from harness.protocol.wire.base import WireModel
from reference_server.handlers.registry import AnyHandler


class ExtraMethod(NamedTuple):
    """The model of a method's params, and its handler."""

    params: type[WireModel]
    handler: AnyHandler


FindExtraMethod = Callable[[str], ExtraMethod | None]
"""Returns what carries out a method, None for one that there is not."""


def no_extra_method(_method: str) -> None:
    """Find nothing: the server has the methods of the text."""
