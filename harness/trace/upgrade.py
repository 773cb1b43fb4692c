"""Trace files of an older format, rewritten line by line in the current one.

Only lines that the format changed are touched: a file that was cut off stays cut off, and a message
keeps its bytes. A mark of a kind that is gone is dropped, as the reader drops it.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.trace.frame import DamageKind
from harness.trace.mark_rows import from_former_row, to_row
from harness.trace.marks import MARKS_VERSION
from harness.trace.store import ClassifyOf, load, session_only
from harness.trace.trace import FORMAT_VERSION


def upgrade_trace(path: Path, classify_of: ClassifyOf = session_only) -> bool:
    """Rewrite a trace in the current format; return False if it has it already.

    The file is replaced whole. Raises `TraceFormatError` for one that is not a trace, `OSError`.
    """
    load(path, classify_of=classify_of)  # Says what is wrong with it, with its line.
    lines = path.read_bytes().splitlines(keepends=True)
    if _is_current(lines):
        return False
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(b"".join(_upgrade_lines(lines)))
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    load(path, classify_of=classify_of)
    return True


def _is_current(lines: list[bytes]) -> bool:
    head = next(json.loads(line)["trace"] for line in lines if line.strip())
    return head["version"] == FORMAT_VERSION and head.get("marks") == MARKS_VERSION


def _upgrade_lines(lines: list[bytes]) -> Iterator[bytes]:
    for line in lines:
        try:
            row: Any = json.loads(line)
        except ValueError:
            yield line  # Empty, or the last line of a file that was cut off.
            continue
        changed = _upgrade_row(row)
        if changed is row:
            yield line
        elif changed is not None:
            yield json.dumps(changed, separators=(",", ":")).encode() + b"\n"


def _upgrade_row(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the row in the current format, itself if that changes nothing; None to drop it."""
    if "trace" in row:
        versions = {"version": FORMAT_VERSION, "marks": MARKS_VERSION}
        return {"trace": {**row["trace"], **versions}}
    if "mark" in row:
        body = from_former_row(str(row["mark"]), row["data"])
        return None if body is None else {**row, "data": to_row(body)}
    if "note" in row and "damage" not in row:
        return {**row, "damage": str(DamageKind.UNKNOWN)}
    return row
