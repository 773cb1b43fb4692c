"""The clients of fixtures/clients/clients.toml."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "fixtures" / "clients"
TABLE = PROGRAMS / "clients.toml"
SCENARIO = PROGRAMS / "wild.scenario.yaml"


@dataclass(frozen=True)
class Client:
    """A client, the program that uses it, and the written cells of its row."""

    name: str
    version: str
    registry: str
    packages: tuple[str, ...]
    program: str
    surface: str
    uses: str
    remark: str
    python: str = "3.11"
    breaks: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """Return a name for folders of this client."""
        name = self.name.removeprefix("@").replace("/", "-")
        return f"{self.registry.lower()}-{name}"


def load_release() -> str:
    """Return the release on which the programs run."""
    return _load()["release"]


def load_clients() -> list[Client]:
    """Return the clients, in the order of the page."""
    return [_client(row) for row in _load()["client"]]


def _client(row: dict[str, Any]) -> Client:
    lists: dict[str, Any] = {
        name: tuple(row[name]) for name in ("packages", "breaks", "differs") if name in row
    }
    return Client(**{**row, **lists})


def _load() -> dict[str, Any]:
    return tomllib.loads(TABLE.read_text("utf-8"))
