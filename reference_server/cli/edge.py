"""The edge of a process: how the clients of its transports speak, and which methods they have."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from reference_server.extra_methods import FindExtraMethod, no_extra_method
from reference_server.transport.base import Edge, plain_edge

if TYPE_CHECKING:
    from reference_server.model.errors import ReadFailure


def edge_of_process(environment: Mapping[str, str], home: Path) -> Edge:
    """Return the edge for the dialect in the environment; its clients are told of `home`."""
    if not environment.get("AGENT_DIALECT"):
        # Without a dialect nothing of it is imported.
        return plain_edge
    from reference_server.dialect.choice import edge_of

    return edge_of(environment, str(home))


def extra_methods_of_process(environment: Mapping[str, str]) -> FindExtraMethod:
    """Return what finds the methods that the dialect in the environment adds to the text's."""
    if not environment.get("AGENT_DIALECT"):
        return no_extra_method
    from reference_server.dialect.choice import extra_methods_of

    return extra_methods_of(environment)


def failures_of_process(environment: Mapping[str, str]) -> "ReadFailure | None":
    """Return how the dialect in the environment sees failed calls of the model, or None."""
    if not environment.get("AGENT_DIALECT"):
        return None
    from reference_server.dialect.choice import failures_of

    return failures_of(environment)


def told_to_all_by_process(environment: Mapping[str, str]) -> Collection[str]:
    """Return the notifications of a thread that the dialect in the environment sends everyone."""
    if not environment.get("AGENT_DIALECT"):
        return ()
    from reference_server.dialect.choice import told_to_all_of

    return told_to_all_of(environment)
