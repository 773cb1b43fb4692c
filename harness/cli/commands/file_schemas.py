"""`harness schema`: JSON Schemas of the files that users write or read."""

import json
from collections.abc import Callable
from typing import Any, Final

from harness.errors import UsageError
from harness.report.report_schema import report_schema
from harness.report.trace_schema import trace_schema
from harness.scenario.explain import unknown_name
from harness.scenario.schema import family_schema, json_schema

FILE_SCHEMAS: Final[dict[str, Callable[[], dict[str, Any]]]] = {
    "report": report_schema,
    "trace": trace_schema,
    "scenario": json_schema,
    "family": family_schema,
}


def file_schema(name: str) -> str:
    """Return the schema of a kind of file as JSON text. Raises `UsageError` for another name."""
    if name not in FILE_SCHEMAS:
        raise UsageError(unknown_name("schema", name, sorted(FILE_SCHEMAS)))
    return json.dumps(FILE_SCHEMAS[name](), indent=2, ensure_ascii=False) + "\n"
