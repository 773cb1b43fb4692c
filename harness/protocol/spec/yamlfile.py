"""Strict reading of the book's YAML and JSON files.

An invalid row raises a `BookError` of one line that names the file and the row.
"""

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias, cast

import yaml

from harness.errors import HarnessError

Row: TypeAlias = dict[str, Any]


class BookError(HarnessError):
    """The judge's book is wrong, or does not hold the requested entry."""


@cache
def _loader() -> type[yaml.SafeLoader]:
    base = cast(type[yaml.SafeLoader], getattr(yaml, "CSafeLoader", yaml.SafeLoader))

    class Strict(base):
        """A loader that rejects duplicate keys; YAML would silently keep the last one."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen: set[str] = set()
            for key, _ in node.value:
                name = str(key.value)
                if name in seen:
                    line = key.start_mark.line + 1
                    raise BookError(f"line {line}: key {name!r} is given twice")
                seen.add(name)
            return super().construct_mapping(node, deep=deep)

    return Strict


def read_text(name: str) -> str:
    """Return the text of a data file of this package, by its path within the package."""
    return files("harness.protocol.spec").joinpath(name).read_text(encoding="utf-8")


def names_in(folder: str, suffix: str = ".yaml") -> tuple[str, ...]:
    """Return the sorted files of a folder of this package, as `read_text` takes them."""
    entries = files("harness.protocol.spec").joinpath(folder).iterdir()
    names = sorted(entry.name for entry in entries if entry.name.endswith(suffix))
    return tuple(f"{folder}/{name}" for name in names)


def schema_files() -> tuple[str, ...]:
    """Return the sorted names of the schema files, as `load_schemas` takes them."""
    return tuple(name.removeprefix("schema/") for name in names_in("schema", ".json"))


def parse_mapping(name: str, text: str) -> dict[str, Any]:
    """Return the mapping in a YAML text. Raises `BookError` if it is not one mapping."""
    data = yaml.load(text, Loader=_loader())
    if not isinstance(data, dict):
        raise BookError(f"{name}: expected a mapping")
    return cast("dict[str, Any]", data)


def parse_rows(name: str, text: str) -> list[Row]:
    """Return the rows of a YAML text. Raises `BookError` if it is not a list of mappings."""
    try:
        # The loader is a SafeLoader: tags can only build plain values.
        data = yaml.load(text, Loader=_loader())
    except BookError as error:
        raise BookError(f"{name}: {error}") from None
    except yaml.YAMLError as error:
        raise BookError(f"{name}: {' '.join(str(error).split())}") from None
    if not isinstance(data, list):
        raise BookError(f"{name}: expected a list of rows")
    rows: list[Row] = []
    for index, row in enumerate(cast(list[Any], data)):
        if not isinstance(row, dict):
            raise BookError(f"{name}: row {index + 1}: expected a mapping")
        rows.append(cast(Row, row))
    return rows


def load_schemas(names: Iterable[str]) -> dict[str, Any]:
    """Return parsed schema files by name. Raises `BookError` for invalid JSON or repeated keys."""
    loaded: dict[str, Any] = {}
    for name in names:
        try:
            text = read_text(f"schema/{name}")
            loaded[name] = json.loads(text, object_pairs_hook=_unique_members)
        except json.JSONDecodeError as error:
            raise BookError(f"schema/{name}: line {error.lineno}: {error.msg}") from None
        except BookError as error:
            raise BookError(f"schema/{name}: {error}") from None
    return loaded


def _unique_members(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Raises `BookError` for a repeated member; JSON would keep the last one."""
    merged = dict(members)
    if len(merged) < len(members):
        names = [name for name, _ in members]
        twice = next(name for name in names if names.count(name) > 1)
        raise BookError(f"key {twice!r} is given twice")
    return merged


def check_keys(place: str, row: Row, required: Iterable[str], optional: Iterable[str] = ()) -> None:
    """Raise `BookError` for a row with a missing or unknown key."""
    needed = tuple(required)
    missing = [key for key in needed if key not in row]
    if missing:
        raise BookError(f"{place}: missing {', '.join(missing)}")
    unknown = sorted(set(row) - set(needed) - set(optional))
    if unknown:
        raise BookError(f"{place}: unknown key {', '.join(unknown)}")
