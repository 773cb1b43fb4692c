"""The edge of a process: how the clients of its transports speak."""

from collections.abc import Mapping
from pathlib import Path

from reference_server.transport.base import Edge, plain_edge


def edge_of_process(environment: Mapping[str, str], home: Path) -> Edge:
    """Return the edge for the dialect in the environment; its clients are told of `home`."""
    if not environment.get("AGENT_DIALECT"):
        # Without a dialect nothing of it is imported.
        return plain_edge
    from reference_server.dialect.choice import edge_of

    return edge_of(environment, str(home))
