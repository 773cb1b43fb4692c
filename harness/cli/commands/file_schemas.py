"""`harness schema`: JSON Schemas of the files that users write or read."""

from collections.abc import Callable

from harness.errors import UsageError
from harness.report.report_schema import report_schema_text
from harness.report.trace_schema import trace_schema_text
from harness.scenario.explain import unknown_name
from harness.scenario.schema import schema_text


def _family_text() -> str:
    return schema_text(family=True)


FILE_SCHEMAS: dict[str, Callable[[], str]] = {
    "report": report_schema_text,
    "trace": trace_schema_text,
    "scenario": schema_text,
    "family": _family_text,
}


def file_schema(name: str) -> str:
    """Return the schema of a kind of file as JSON text. Raises `UsageError` for another name."""
    if name not in FILE_SCHEMAS:
        raise UsageError(unknown_name("schema", name, sorted(FILE_SCHEMAS)))
    return FILE_SCHEMAS[name]()
