"""The report as JSON: stable ids, plain values, everything that the other forms show.

Format version 1; a change of meaning raises it. Verdicts, levels and ids are texts.
"""

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from harness.report.model import Report

VERSION = 1

_REPORT = TypeAdapter(Report)


def to_plain(report: Report) -> dict[str, Any]:
    """Builtins only."""
    plain: dict[str, Any] = _REPORT.dump_python(report, mode="json")
    return {"version": VERSION, "red": report.red, **plain}


def from_plain(plain: dict[str, Any]) -> Report:
    """The reverse. Raises `ValueError` for another version."""
    if plain.get("version") != VERSION:
        raise ValueError(f"report version {plain.get('version')!r}; this reads {VERSION}")
    fields = {key: value for key, value in plain.items() if key not in ("version", "red")}
    return _REPORT.validate_python(fields)


def read_report(path: Path) -> Report:
    """A report from a file. Raises `OSError`, or `ValueError` for what is no report."""
    return from_plain(json.loads(path.read_text("utf-8")))
