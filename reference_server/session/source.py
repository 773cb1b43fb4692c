"""The source of a thread: the kind of client that it was made for.

Source: session-protocol "thread/list" (`sourceKinds`: "`cli`, `vscode`, and others"); which others,
and by what a server knows its client, is not shown.
"""

from reference_server.rollout.records import APP_SERVER

KINDS = frozenset({"cli", "vscode", "exec", APP_SERVER})


def source_of(client_name: str | None) -> str:
    """Return the kind of a client by its name in `initialize`, if it said one."""
    return client_name if client_name in KINDS else APP_SERVER
