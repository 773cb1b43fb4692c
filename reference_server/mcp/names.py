"""The names by which the model calls the tools of MCP servers.

A model takes names of at most 64 letters, digits, hyphens and underscores, and each once. Servers
know no such bounds.
"""

import hashlib
import re
from collections.abc import Iterable

MAX_NAME_CHARACTERS = 64
_DIGEST = 8


def model_names(tools: Iterable[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Name each pair of a server and its tool: `mcp__SERVER__TOOL` where that is possible.

    A name that is too long, or that another pair has already, ends with a digest of the pair. So
    it does not depend on which other tools there are, but for the first of two that collide.
    """
    pairs: dict[str, tuple[str, str]] = {}
    for server, tool in tools:
        name = re.sub(r"[^a-zA-Z0-9_-]", "_", f"mcp__{server}__{tool}")
        if len(name) > MAX_NAME_CHARACTERS or pairs.get(name, (server, tool)) != (server, tool):
            digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "replace")).hexdigest()
            name = f"{name[: MAX_NAME_CHARACTERS - _DIGEST - 1]}_{digest[:_DIGEST]}"
        pairs.setdefault(name, (server, tool))
    return pairs
