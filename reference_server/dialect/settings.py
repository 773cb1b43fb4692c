"""The settings of a home, for the answers of a release that repeat them."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from harness.protocol.dialects.table import UnknownNoteRow


class Settings(Mapping[str, Any]):
    """The top-level settings of `config.toml` in a home, read at first use; empty without one.

    Two more: `mcpServers`, the names of the MCP servers that are enabled, and `unknownNote`, what
    the release says about the settings that it ignores, "" if there are none.
    """

    def __init__(
        self, home: str, unknown: Sequence[str] = (), note: UnknownNoteRow | None = None
    ) -> None:
        self._note = note
        self._path = Path(home) / "config.toml"
        self._unknown = unknown

    def __getitem__(self, name: str) -> Any:
        return self._settings[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __len__(self) -> int:
        return len(self._settings)

    @cached_property
    def _settings(self) -> dict[str, Any]:
        try:
            settings = tomllib.loads(self._path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        servers = settings.get("mcp_servers")
        servers = cast("dict[str, Any]", servers) if isinstance(servers, dict) else {}
        enabled = [
            name
            for name, server in servers.items()
            if isinstance(server, dict) and cast("Any", server).get("enabled", True)
        ]
        return {**settings, "mcpServers": enabled, "unknownNote": self._note_unknown(settings)}

    def _note_unknown(self, settings: dict[str, Any]) -> str:
        paths = [one for path in self._unknown for one in _paths(settings, path.split("."), "")]
        if not paths or self._note is None:
            return ""
        head = self._note.one if len(paths) == 1 else self._note.several
        lines = [self._note.line.format(file=self._path, path=path) for path in sorted(paths)]
        return "\n".join([head.format(count=len(paths)), *lines])


def _paths(settings: Any, names: Sequence[str], before: str) -> Iterator[str]:
    """Yield the paths that settings have of a pattern, whose names are given."""
    if not names:
        yield before.removesuffix(".")
    elif isinstance(settings, dict):
        members = cast("dict[str, Any]", settings)
        for name in members if names[0] == "*" else [names[0]]:
            if name in members:
                yield from _paths(members[name], names[1:], f"{before}{name}.")
