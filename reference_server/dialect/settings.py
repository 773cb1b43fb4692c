"""The settings of a home, for the answers of a release that repeat them."""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any


class Settings(Mapping[str, Any]):
    """The top-level settings of `config.toml` in a home, read at first use; empty without one."""

    def __init__(self, home: str) -> None:
        self._path = Path(home) / "config.toml"

    def __getitem__(self, name: str) -> Any:
        return self._settings[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __len__(self) -> int:
        return len(self._settings)

    @cached_property
    def _settings(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self._path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
