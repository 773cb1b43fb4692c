"""`--json FILE|-` of every command with results: a file, or standard output in place of text."""

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

from harness.errors import UsageError

STANDARD_OUTPUT: Final = "-"
JSON_HELP: Final = "the results as JSON to FILE, or - for standard output in place of text"
JSON_METAVAR: Final = "FILE|-"


def write_json(value: Any, target: str) -> None:
    """Write a value to a file or to standard output. Raises `UsageError` if it cannot."""
    text = json.dumps(value, indent=2) + "\n"
    if target == STANDARD_OUTPUT:
        sys.stdout.write(text)
        return
    path = Path(target)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--json {path}: {os.strerror(error.errno or 0)}") from error
