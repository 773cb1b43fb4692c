"""Generator of docs/clients.md from a run of all clients on both servers."""

from collections.abc import Iterator, Sequence

from tools.clients.run import Outcome
from tools.clients.table import ROOT, Client

PAGE = ROOT / "docs" / "clients.md"

HEAD = """\
# Public clients, on a release and on our double

Made by `make clients` (part of `make real`); do not edit. Each client is installed unchanged, by
exact version, and used by a program of `fixtures/clients/`, offline. The program runs on Codex
{release}, and on `agent` started by the name `codex`, which speaks that release. The same scripted
model plays for both. The cells count the checks that passed.

Session clients are recorded on both, and judged by the [duties of clients](client-duties.md); each
finding was read by hand. A client of `exec` has no such duties. What the programs use, and remarks,
are written in `fixtures/clients/clients.toml`.

| client | version | what the program uses | release | ours | duties broken | remark |
|---|---|---|---|---|---|---|
"""


def page(release: str, rows: Sequence[tuple[Outcome, Outcome]]) -> str:
    """Return the page; a row is a client's outcomes on the release and on our double."""
    return HEAD.format(release=release) + "".join(_lines(rows))


def _lines(rows: Sequence[tuple[Outcome, Outcome]]) -> Iterator[str]:
    for first, second in rows:
        client = first.client
        broken = sorted({*first.breaks, *second.breaks})
        duties = ", ".join(f"`{duty.split()[0]}` {duty.split()[1]}" for duty in broken) or "none"
        cells = (
            f"`{client.name}`",
            f"{client.version} ({client.registry})",
            client.uses,
            _count(first),
            _count(second),
            duties if client.surface == "session" else "not judged",
            client.remark,
        )
        yield f"| {' | '.join(cells)} |\n"


def _count(outcome: Outcome) -> str:
    return f"{outcome.passed_count} of {len(outcome.lines)}"


def versions_on(text: str) -> dict[str, str]:
    """Return the versions of the clients that a page lists."""
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return {cells[0].strip("| `"): cells[1].split()[0] for cells in rows}


def versions_of(clients: Sequence[Client]) -> dict[str, str]:
    """Return the versions that are installed, by the packages' own words."""
    return {
        client.name: client.packages[0].rpartition("@")[2].rpartition("==")[2] for client in clients
    }
