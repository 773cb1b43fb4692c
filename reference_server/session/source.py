"""Source of a thread: the kind of client that it was made for.

Cited: session-protocol "thread/list" (`sourceKinds`: "`cli`, `vscode`, and others"). The others,
and how a server recognizes the kind of its client, are not shown.
"""

from reference_server.rollout.records import APP_SERVER

KINDS = frozenset({"cli", "vscode", "exec", APP_SERVER})


def source_of(client_name: str | None) -> str:
    """Return the kind of a client by its name in `initialize`; APP_SERVER if it is unknown."""
    return client_name if client_name in KINDS else APP_SERVER
