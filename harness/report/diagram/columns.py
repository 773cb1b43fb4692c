"""Columns of a diagram: who takes part in a conversation."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from harness.report.diagram.labels import shorten
from harness.report.diagram.model import Participant, ParticipantKind
from harness.trace.frame import Frame
from harness.trace.marks import MarkBody, ModelCall, ModelEnd
from harness.trace.mcp_marks import McpAnswer, McpRequest, McpStarted
from harness.trace.surfaces import COMMAND, EXEC, SDK, SESSION
from harness.trace.trace import Mark, Trace

SERVER: Final = "server"
MODEL: Final = "model"
# Columns of clients; the connections of further ones share the last.
MAX_CLIENTS: Final = 6
MAX_TOOLS: Final = 6
_SERVER_LABELS: Final = {EXEC: "agent exec", COMMAND: "agent", SDK: "SDK"}
MAX_NAME_CHARACTERS: Final = 24


@dataclass(frozen=True, slots=True)
class Columns:
    """The participants, with the column of each connection and of each MCP server."""

    participants: tuple[Participant, ...]
    clients: Mapping[str, str]
    tools: Mapping[str, str]

    def ends_of(self, frame: Frame, *, sent: bool) -> tuple[str, str]:
        """Return source and target of a message; `sent` to the server."""
        client = self.clients.get(frame.connection, "client")
        return (client, SERVER) if sent else (SERVER, client)


def columns_of(trace: Trace, frames: Iterable[Frame], marks: Iterable[Mark[MarkBody]]) -> Columns:
    """Return the columns for the chosen frames and marks of a trace.

    A connection that begins when another one has ended shares its column.
    """
    clients = _client_columns(trace, {frame.connection for frame in frames})
    names = list(dict.fromkeys(clients.values())) or ["client"]
    bodies = [mark.body for mark in marks]
    participants = [_client(name, clients, only=len(names) == 1) for name in names]
    server = _SERVER_LABELS.get(trace.header.surface, "server")
    participants.append(Participant(SERVER, server, ParticipantKind.SERVER))
    if any(isinstance(body, ModelCall | ModelEnd) for body in bodies):
        participants.append(Participant(MODEL, "model", ParticipantKind.MODEL))
    servers = [body.server for body in bodies if isinstance(body, McpRequest | McpStarted)]
    if not servers and any(isinstance(body, McpAnswer) for body in bodies):
        servers = [""]
    tools: dict[str, str] = {}
    for name in dict.fromkeys(servers):
        tools[name] = f"tool{min(len(tools) + 1, MAX_TOOLS)}"
    for column in dict.fromkeys(tools.values()):
        called = ", ".join(name for name, own in tools.items() if own == column)
        label = shorten(f"MCP {called}".rstrip(), MAX_NAME_CHARACTERS)
        participants.append(Participant(column, label, ParticipantKind.TOOL))
    return Columns(tuple(participants), clients, tools)


def _client(name: str, clients: Mapping[str, str], *, only: bool) -> Participant:
    connections = [connection for connection, column in clients.items() if column == name]
    label = "client" if only else shorten(f"client {', '.join(connections)}", MAX_NAME_CHARACTERS)
    return Participant(name, label, ParticipantKind.CLIENT)


def _client_columns(trace: Trace, connections: set[str]) -> dict[str, str]:
    """Return the column of each connection, in the order in which they begin."""
    spans: dict[str, tuple[int, int]] = {}
    for frame in trace.frames:
        first = spans.get(frame.connection, (frame.seq, 0))[0]
        spans[frame.connection] = (first, frame.seq)
    if trace.header.surface != SESSION:
        return dict.fromkeys(spans, "client")
    columns: dict[str, str] = {}
    ends: list[int] = []
    for connection, (first, last) in spans.items():
        if connection not in connections:
            continue
        free = next((index for index, end in enumerate(ends) if end < first), len(ends))
        index = min(free, MAX_CLIENTS - 1)
        if index == len(ends):
            ends.append(last)
        ends[index] = max(ends[index], last)
        columns[connection] = f"client{index + 1}"
    if set(columns.values()) == {"client1"}:
        return dict.fromkeys(columns, "client")
    order = sorted(columns.items(), key=lambda pair: int(re.sub(r"\D", "", pair[1])))
    return dict(order)
